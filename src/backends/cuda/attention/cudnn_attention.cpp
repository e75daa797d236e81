#include "backends/cuda/attention/cudnn_attention.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "backends/cuda/attention/cudnn_needs.h"
#include "backends/cuda/attention/kernels/segments.h"
#include "backends/cuda/attention/library_check.h"
#include "backends/cuda/device/kernel_loading.h"
#include "backends/cuda/device/launch_count.h"
#include "backends/cuda/elementwise/kernels/elementwise.h"
#include "backends/cuda/needs/row_stride.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::cuda {
namespace {

using program::Attention;
using program::AttentionGrad;
using program::OperationView;

// A call of the library: the segments of one bucket.
struct PreparedCall {
  std::shared_ptr<const SegmentPlan> plan;
  SegmentAttention shape;
  SegmentBucket bucket;
};

class PreparedSegments : public Prepared {
 public:
  PreparedSegments(std::vector<PreparedCall> calls, const SegmentScratch& scratch)
      : calls_(std::move(calls)), scratch_(scratch) {}
  const std::vector<PreparedCall>& calls() const { return calls_; }
  const SegmentScratch& scratch() const { return scratch_; }
  static const PreparedSegments& of(const Invocation& invocation) {
    return static_cast<const PreparedSegments&>(*invocation.prepared);
  }

 private:
  std::vector<PreparedCall> calls_;
  SegmentScratch scratch_;
};

template <typename Attributes>
std::vector<SegmentAttention> shapes_of(const Attributes& attention, const OperationView& view,
                                        const std::array<int64_t, kSegmentOperands>& strides) {
  std::vector<SegmentAttention> shapes;
  for (const SegmentBucket& bucket : buckets_of(attention, view))
    // NOLINTNEXTLINE(performance-inefficient-vector-operation): a few
    shapes.push_back(
        {.is_gradient = std::is_same_v<Attributes, AttentionGrad>,
         .format = format_of(view[Attributes::kQ].dtype),
         .segments = bucket.segments,
         .segment_tokens = bucket.longest,
         .tokens = view[Attributes::kQ].shape[0],
         .heads = attention.heads,
         .kv_heads = attention.kv_heads,
         .head_dim = attention.head_dim,
         .scale = attention.scale,
         .causal = attention.causal,
         // A window longer than every segment hides nothing, but the library would still apply it.
         .window = attention.window < bucket.longest ? attention.window : 0,
         .softcap = attention.softcap,
         .strides = strides});
  return shapes;
}

template <typename Attributes>
std::unique_ptr<Prepared> prepare(const Attributes& attention, const OperationView& view,
                                  CudaContext& context) {
  const SegmentScratch scratch = segment_scratch(attention, view);
  const std::vector<SegmentBucket> buckets = buckets_of(attention, view);
  const std::vector<SegmentAttention> shapes = segments_of(attention, view);
  std::vector<PreparedCall> calls;
  calls.reserve(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const SegmentAnswer& answer = context.segment_plan(shapes[i], scratch.library_bytes);
    if (answer.plan == nullptr)
      base::throw_user_error(
          "cuDNN now refuses an attention of {} heads of {} that the plan gave to it ({}); plan "
          "again",
          attention.heads, attention.head_dim, answer.refusal);
    calls.push_back({answer.plan, shapes[i], buckets[i]});
  }
  return std::make_unique<PreparedSegments>(std::move(calls), scratch);
}

template <typename Attributes>
std::string why_left(const Attributes& attention, const OperationView& view, CudaContext& context) {
  const int64_t scratch = segment_scratch(attention, view).library_bytes;
  for (const SegmentAttention& shape : segments_of(attention, view))
    if (const SegmentAnswer& answer = context.segment_plan(shape, scratch); answer.plan == nullptr)
      return answer.refusal;
  return why_unlike_own(attention, view, context);
}

// The parts of a prepared invocation's scratch, and its bounds.
class Segments {
 public:
  Segments(const Invocation& invocation, const Buffer& bounds)
      : prepared_(PreparedSegments::of(invocation)),
        base_(invocation.workspace.data),
        segments_(bounds.shape.rows()),
        bounds_(integers_of(bounds)) {}

  int64_t segments() const { return segments_; }
  // Where the library finds q, k, v, dq, dk or dv (0 to 5): the tensor itself, or a copy without
  // gaps between rows.
  Matrix dense(size_t which, const Matrix& tensor) const {
    const int64_t offset = prepared_.scratch().dense[which];
    if (offset == SegmentScratch::kInPlace) return tensor;
    Matrix copy = tensor;
    copy.operand.data = at<std::byte>(offset);
    copy.operand.stride = tensor.columns;
    return copy;
  }
  float* lse() const { return at<float>(prepared_.scratch().lse); }

  // Of each bucket its tables, then the library's call. `operands` does not include lse, which is
  // in scratch.
  void run_plans(std::array<void*, kSegmentOperands> operands, cudaStream_t stream) const {
    operands[static_cast<size_t>(SegmentOperand::lse)] = lse();
    for (const PreparedCall& call : prepared_.calls()) {
      write_tables(call, stream);
      if (KernelLoading::is_on()) continue;
      call.plan->run({.operands = operands,
                      .lengths = at<int32_t>(prepared_.scratch().lengths),
                      .begins = at<int64_t>(prepared_.scratch().begins)},
                     at<std::byte>(prepared_.scratch().library), stream);
      launch_count().add(stream);
    }
  }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  void write_tables(const PreparedCall& call, cudaStream_t stream) const {
    SegmentTablesRun run{.bounds = bounds_,
                         .segments = segments_,
                         .above = call.bucket.above,
                         .longest = call.bucket.longest,
                         .entries = call.bucket.segments,
                         .max_tokens = prepared_.calls().back().bucket.longest,
                         .tokens = call.shape.tokens,
                         .tables = static_cast<int32_t>(call.shape.operands()),
                         .lengths = at<int32_t>(prepared_.scratch().lengths),
                         .begins = at<int64_t>(prepared_.scratch().begins)};
    std::copy(call.shape.strides.begin(), call.shape.strides.end(), run.strides);
    write_segment_tables(run, stream);
  }

  const PreparedSegments& prepared_;
  std::byte* base_;
  int64_t segments_;
  const int32_t* bounds_;
};

// The bounds of queries and keys, which are the same tensor wherever the library is used.
template <typename Attributes>
const Buffer& bounds_of(const Invocation& invocation) {
  const Buffer& bounds = invocation[Attributes::kKBounds];
  SNUG_CHECK(invocation[Attributes::kQBounds].data == bounds.data,
             "cuDNN is given queries of other segments than their keys");
  return bounds;
}

// The bounds of as many segments of one length as there can be, at most `longest` tokens.
std::vector<int32_t> full_bounds(int64_t segments, int64_t longest, int64_t tokens) {
  const int64_t length = std::clamp<int64_t>(tokens / std::max<int64_t>(segments, 1), 1,
                                             std::max<int64_t>(longest, 1));
  std::vector<int32_t> bounds;
  bounds.reserve(static_cast<size_t>(2 * segments));
  for (int64_t s = 0; s < segments; ++s)
    for (const int64_t end : {s, s + 1})
      bounds.push_back(static_cast<int32_t>(std::min(end * length, tokens)));
  return bounds;
}

template <typename Attributes>
void load_segments(const Attributes& attention, const Invocation& invocation,
                   std::initializer_list<program::Operand<Attributes>> written,
                   CudaContext& context) {
  const PreparedSegments& prepared = PreparedSegments::of(invocation);
  std::vector<SegmentAnswer*> answers;
  answers.reserve(prepared.calls().size());
  for (const PreparedCall& call : prepared.calls())
    answers.push_back(&context.segment_plan(call.shape, prepared.scratch().library_bytes));
  if (std::ranges::all_of(answers, &SegmentAnswer::is_loaded)) return;
  cudaStream_t stream = context.stream.get();
  const Buffer& bounds = bounds_of<Attributes>(invocation);
  const std::vector<int32_t> full =
      full_bounds(bounds.shape.rows(), attention.segment_tokens, prepared.calls()[0].shape.tokens);
  SNUG_CHECK_EQ(bounds.bytes(), std::ssize(full) * int64_t{sizeof(int32_t)});
  CUDA_CHECK(cudaMemcpyAsync(bounds.data, full.data(), static_cast<size_t>(bounds.bytes()),
                             cudaMemcpyDefault, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));  // the copied bounds are local to this function
  run_cudnn(attention, invocation, context);
  for (const auto& operand : written) {
    const Matrix matrix = matrix_of(invocation[operand]);
    fill_zero({walk_rows({&matrix}), matrix.operand}, stream);
  }
  CUDA_CHECK(cudaMemsetAsync(bounds.data, 0, static_cast<size_t>(bounds.bytes()), stream));
  for (SegmentAnswer* answer : answers) answer->is_loaded = true;
}

// to = from, unless the two are the same. Returns whether it copied.
bool copy_rows(const Matrix& from, const Matrix& to, cudaStream_t stream) {
  if (from.operand.data == to.operand.data) return false;
  cast({.walk = walk_rows({&from, &to}), .x = from.operand, .y = to.operand}, stream);
  return true;
}

}  // namespace

std::vector<SegmentAttention> segments_of(const Attention& attention, const OperationView& view) {
  return shapes_of(
      attention, view,
      {row_stride(view[Attention::kQ]), row_stride(view[Attention::kK]),
       row_stride(view[Attention::kV]), row_stride(view[Attention::kO]), attention.heads});
}

std::vector<SegmentAttention> segments_of(const AttentionGrad& grad, const OperationView& view) {
  const SegmentScratch scratch = segment_scratch(grad, view);
  const auto stride = [&](size_t which, const program::Tensor& tensor) {
    return scratch.dense[which] == SegmentScratch::kInPlace ? row_stride(tensor) : tensor.shape[1];
  };
  return shapes_of(
      grad, view,
      {stride(0, view[AttentionGrad::kQ]), stride(1, view[AttentionGrad::kK]),
       stride(2, view[AttentionGrad::kV]), row_stride(view[AttentionGrad::kO]), grad.heads,
       row_stride(view[AttentionGrad::kDO]), stride(3, view[AttentionGrad::kDQ]),
       stride(4, view[AttentionGrad::kDK]), stride(5, view[AttentionGrad::kDV])});
}

std::string why_cudnn_is_left(const OperationView& view, CudaContext& context) {
  if (!is_by_cudnn(view)) return {};
  const auto& attributes = view.operation.attributes;
  if (const auto* attention = attributes.get_if<Attention>())
    return why_left(*attention, view, context);
  return why_left(attributes.get<AttentionGrad>(), view, context);
}

std::unique_ptr<Prepared> prepare_cudnn(const Attention& attention, const OperationView& view,
                                        CudaContext& context) {
  return prepare(attention, view, context);
}

std::unique_ptr<Prepared> prepare_cudnn(const AttentionGrad& grad, const OperationView& view,
                                        CudaContext& context) {
  return prepare(grad, view, context);
}

void load_cudnn(const Attention& attention, const Invocation& invocation, CudaContext& context) {
  load_segments(attention, invocation, {Attention::kO, Attention::kLse}, context);
}

void load_cudnn(const AttentionGrad& grad, const Invocation& invocation, CudaContext& context) {
  using Grad = AttentionGrad;
  load_segments(grad, invocation, {Grad::kDQ, Grad::kDK, Grad::kDV}, context);
}

void run_cudnn(const Attention& attention, const Invocation& invocation, CudaContext& context) {
  invocation.note_decision<&Attention::kernel>({.by = program::AttentionBy::library});
  cudaStream_t stream = context.stream.get();
  const Segments segments(invocation, bounds_of<Attention>(invocation));
  const Matrix o = matrix_of(invocation[Attention::kO]);
  float* lse = floats_of(invocation[Attention::kLse]);
  segments.run_plans({invocation[Attention::kQ].data, invocation[Attention::kK].data,
                      invocation[Attention::kV].data, o.operand.data},
                     stream);
  turn_lse({.from = segments.lse(),
            .to = lse,
            .tokens = o.rows,
            .heads = attention.heads,
            .to_heads = true},
           stream);
  clear_outside({.bounds = integers_of(invocation[Attention::kQBounds]),
                 .segments = segments.segments(),
                 .tokens = o.rows,
                 .rows = {o.operand},
                 .columns = {o.columns},
                 .lse = lse,
                 .heads = attention.heads},
                stream);
}

void run_cudnn(const AttentionGrad& grad, const Invocation& invocation, CudaContext& context) {
  invocation.note_decision<&AttentionGrad::kernel>({.by = program::AttentionBy::library});
  cudaStream_t stream = context.stream.get();
  const Segments segments(invocation, bounds_of<AttentionGrad>(invocation));
  using Grad = AttentionGrad;
  constexpr std::array kOperands{Grad::kQ, Grad::kK, Grad::kV, Grad::kDQ, Grad::kDK, Grad::kDV};
  std::array<Matrix, kOperands.size()> tensors, taken;  // taken: the matrices that the library uses
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = matrix_of(invocation[kOperands[i]]);
    taken[i] = segments.dense(i, tensors[i]);
  }
  const auto& [q, k, v, dq, dk, dv] = tensors;
  turn_lse({.from = floats_of(invocation[Grad::kLse]),
            .to = segments.lse(),
            .tokens = dq.rows,
            .heads = grad.heads,
            .to_heads = false},
           stream);
  std::array<bool, kOperands.size()> copied{};
  for (size_t i = 0; i < 3; ++i) copied[i] = copy_rows(tensors[i], taken[i], stream);
  segments.run_plans({taken[0].operand.data, taken[1].operand.data, taken[2].operand.data,
                      invocation[Grad::kO].data, nullptr, invocation[Grad::kDO].data,
                      taken[3].operand.data, taken[4].operand.data, taken[5].operand.data},
                     stream);
  for (size_t i = 3; i < 6; ++i) copied[i] = copy_rows(taken[i], tensors[i], stream);
  invocation.note_decision<&Grad::dense>(
      {copied[0], copied[1], copied[2], copied[3] && copied[4] && copied[5]});
  clear_outside({.bounds = integers_of(invocation[Grad::kQBounds]),  // those of keys too
                 .segments = segments.segments(),
                 .tokens = dq.rows,
                 .rows = {dq.operand, dk.operand, dv.operand},
                 .columns = {dq.columns, dk.columns, dv.columns},
                 .lse = nullptr,
                 .heads = 0},
                stream);
}

}  // namespace snug::backends::cuda
