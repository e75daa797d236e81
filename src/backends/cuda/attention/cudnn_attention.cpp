#include "backends/cuda/attention/cudnn_attention.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "backends/cuda/attention/attention_needs.h"
#include "backends/cuda/attention/kernels/segments.h"
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

class PreparedSegments : public Prepared {
 public:
  PreparedSegments(std::shared_ptr<const SegmentPlan> plan, const SegmentAttention& shape,
                   const SegmentScratch& scratch)
      : plan_(std::move(plan)), shape_(shape), scratch_(scratch) {}
  const SegmentPlan& plan() const { return *plan_; }
  const SegmentAttention& shape() const { return shape_; }
  const SegmentScratch& scratch() const { return scratch_; }
  static const PreparedSegments& of(const Invocation& invocation) {
    return static_cast<const PreparedSegments&>(*invocation.prepared);
  }

 private:
  std::shared_ptr<const SegmentPlan> plan_;
  SegmentAttention shape_;
  SegmentScratch scratch_;
};

// Everything except the strides.
template <typename Attributes>
SegmentAttention shape_of(const Attributes& attention, const OperationView& view) {
  return {.is_gradient = std::is_same_v<Attributes, AttentionGrad>,
          .format = format_of(view[Attributes::kQ].dtype),
          .segments = view[Attributes::kKBounds].shape[0],
          .segment_tokens = attention.segment_tokens,
          .tokens = view[Attributes::kQ].shape[0],
          .heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .scale = attention.scale,
          .causal = attention.causal,
          // A window longer than every segment hides nothing, but the library would still apply it.
          .window = attention.window < attention.segment_tokens ? attention.window : 0,
          .strides = {}};
}

std::unique_ptr<Prepared> prepare(const SegmentAttention& shape, const SegmentScratch& scratch,
                                  CudaContext& context) {
  const CudaContext::SegmentAnswer& answer = context.segment_plan(shape, scratch.library_bytes);
  if (answer.plan == nullptr)
    base::throw_user_error(
        "cuDNN now refuses an attention of {} heads of {} that the plan gave to it ({}); plan "
        "again",
        shape.heads, shape.head_dim, answer.refusal);
  return std::make_unique<PreparedSegments>(answer.plan, shape, scratch);
}

template <typename Attributes>
bool accepts(const Attributes& attention, const OperationView& view, CudaContext& context) {
  const int64_t scratch = segment_scratch(attention, view).library_bytes;
  return context.accepts_segments(segments_of(attention, view), scratch);
}

// The parts of a prepared invocation's scratch, and its bounds.
class Segments {
 public:
  Segments(const Invocation& invocation, const Buffer& bounds)
      : prepared_(PreparedSegments::of(invocation)),
        base_(invocation.workspace.data),
        bounds_(integers_of(bounds)) {}

  const SegmentAttention& shape() const { return prepared_.shape(); }
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

  void write_tables(cudaStream_t stream) const {
    SegmentTablesRun run{.bounds = bounds_,
                         .segments = shape().segments,
                         .tokens = shape().tokens,
                         .tables = static_cast<int32_t>(shape().operands()),
                         .lengths = at<int32_t>(prepared_.scratch().lengths),
                         .begins = at<int64_t>(prepared_.scratch().begins)};
    std::copy(shape().strides.begin(), shape().strides.end(), run.strides);
    write_segment_tables(run, stream);
  }

  // `operands` does not include lse, which is in scratch.
  void run_plan(std::array<void*, kSegmentOperands> operands, cudaStream_t stream) const {
    if (KernelLoading::is_on()) return;
    operands[static_cast<size_t>(SegmentOperand::lse)] = lse();
    prepared_.plan().run({.operands = operands,
                          .lengths = at<int32_t>(prepared_.scratch().lengths),
                          .begins = at<int64_t>(prepared_.scratch().begins)},
                         at<std::byte>(prepared_.scratch().library), stream);
    launch_count().add(stream);
  }

 private:
  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  const PreparedSegments& prepared_;
  std::byte* base_;
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

// The bounds of as many full segments as there can be.
std::vector<int32_t> full_bounds(const SegmentAttention& shape) {
  const int64_t length = std::clamp<int64_t>(shape.tokens / std::max<int64_t>(shape.segments, 1), 1,
                                             std::max<int64_t>(shape.segment_tokens, 1));
  std::vector<int32_t> bounds;
  for (int64_t s = 0; s < shape.segments; ++s)
    for (const int64_t end : {s, s + 1})
      bounds.push_back(static_cast<int32_t>(std::min(end * length, shape.tokens)));
  return bounds;
}

template <typename Attributes>
void load_segments(const Attributes& attention, const Invocation& invocation,
                   std::initializer_list<program::Operand<Attributes>> written,
                   CudaContext& context) {
  const PreparedSegments& prepared = PreparedSegments::of(invocation);
  bool& is_loaded =
      context.segment_plan(prepared.shape(), prepared.scratch().library_bytes).is_loaded;
  if (is_loaded) return;
  cudaStream_t stream = context.stream.get();
  const Buffer& bounds = bounds_of<Attributes>(invocation);
  const std::vector<int32_t> full = full_bounds(prepared.shape());
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
  is_loaded = true;
}

// to = from, unless the two are the same. Returns whether it copied.
bool copy_rows(const Matrix& from, const Matrix& to, cudaStream_t stream) {
  if (from.operand.data == to.operand.data) return false;
  cast({.walk = walk_rows({&from, &to}), .x = from.operand, .y = to.operand}, stream);
  return true;
}

}  // namespace

SegmentAttention segments_of(const Attention& attention, const OperationView& view) {
  SegmentAttention shape = shape_of(attention, view);
  shape.strides = {row_stride(view[Attention::kQ]), row_stride(view[Attention::kK]),
                   row_stride(view[Attention::kV]), row_stride(view[Attention::kO]),
                   attention.heads};
  return shape;
}

SegmentAttention segments_of(const AttentionGrad& grad, const OperationView& view) {
  const SegmentScratch scratch = segment_scratch(grad, view);
  const auto stride = [&](size_t which, const program::Tensor& tensor) {
    return scratch.dense[which] == SegmentScratch::kInPlace ? row_stride(tensor) : tensor.shape[1];
  };
  SegmentAttention shape = shape_of(grad, view);
  shape.strides = {stride(0, view[AttentionGrad::kQ]),
                   stride(1, view[AttentionGrad::kK]),
                   stride(2, view[AttentionGrad::kV]),
                   row_stride(view[AttentionGrad::kO]),
                   grad.heads,
                   row_stride(view[AttentionGrad::kDO]),
                   stride(3, view[AttentionGrad::kDQ]),
                   stride(4, view[AttentionGrad::kDK]),
                   stride(5, view[AttentionGrad::kDV])};
  return shape;
}

bool cudnn_accepts(const OperationView& view, CudaContext& context) {
  if (!is_by_cudnn(view)) return true;
  const auto& attributes = view.operation.attributes;
  if (const auto* attention = attributes.get_if<Attention>())
    return accepts(*attention, view, context);
  return accepts(attributes.get<AttentionGrad>(), view, context);
}

std::unique_ptr<Prepared> prepare_cudnn(const Attention& attention, const OperationView& view,
                                        CudaContext& context) {
  return prepare(segments_of(attention, view), segment_scratch(attention, view), context);
}

std::unique_ptr<Prepared> prepare_cudnn(const AttentionGrad& grad, const OperationView& view,
                                        CudaContext& context) {
  return prepare(segments_of(grad, view), segment_scratch(grad, view), context);
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
  segments.write_tables(stream);
  segments.run_plan({invocation[Attention::kQ].data, invocation[Attention::kK].data,
                     invocation[Attention::kV].data, o.operand.data},
                    stream);
  turn_lse({.from = segments.lse(),
            .to = lse,
            .tokens = o.rows,
            .heads = attention.heads,
            .to_heads = true},
           stream);
  clear_outside({.bounds = integers_of(invocation[Attention::kQBounds]),
                 .segments = segments.shape().segments,
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
  segments.write_tables(stream);
  turn_lse({.from = floats_of(invocation[Grad::kLse]),
            .to = segments.lse(),
            .tokens = dq.rows,
            .heads = grad.heads,
            .to_heads = false},
           stream);
  std::array<bool, kOperands.size()> copied{};
  for (size_t i = 0; i < 3; ++i) copied[i] = copy_rows(tensors[i], taken[i], stream);
  segments.run_plan({taken[0].operand.data, taken[1].operand.data, taken[2].operand.data,
                     invocation[Grad::kO].data, nullptr, invocation[Grad::kDO].data,
                     taken[3].operand.data, taken[4].operand.data, taken[5].operand.data},
                    stream);
  for (size_t i = 3; i < 6; ++i) copied[i] = copy_rows(taken[i], tensors[i], stream);
  invocation.note_decision<&Grad::dense>(
      {copied[0], copied[1], copied[2], copied[3] && copied[4] && copied[5]});
  clear_outside({.bounds = integers_of(invocation[Grad::kQBounds]),  // those of keys too
                 .segments = segments.shape().segments,
                 .tokens = dq.rows,
                 .rows = {dq.operand, dk.operand, dv.operand},
                 .columns = {dq.columns, dk.columns, dv.columns},
                 .lse = nullptr,
                 .heads = 0},
                stream);
}

}  // namespace snug::backends::cuda
