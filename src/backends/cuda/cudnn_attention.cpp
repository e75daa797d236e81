#include "backends/cuda/cudnn_attention.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "backends/cuda/kernels/segments.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/needs/attention.h"
#include "backends/cuda/needs/row_stride.h"
#include "base/error.h"

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

 private:
  std::shared_ptr<const SegmentPlan> plan_;
  SegmentAttention shape_;
  SegmentScratch scratch_;
};

// All but the strides; `q`: where q stands among the reads.
template <typename Attributes>
SegmentAttention shape_of(const Attributes& attention, const OperationView& view, size_t q) {
  return {.is_gradient = std::is_same_v<Attributes, AttentionGrad>,
          .segments = view.read(view.operation.reads.size() - 1).shape[0],
          .segment_tokens = attention.segment_tokens,
          .tokens = view.read(q).shape[0],
          .heads = attention.heads,
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .scale = attention.scale,
          .causal = attention.causal,
          .window = attention.window,
          .strides = {}};
}

std::unique_ptr<Prepared> prepare(const SegmentAttention& shape, const SegmentScratch& scratch,
                                  CudaContext& context) {
  auto plan = context.segment_plan(shape, scratch.library_bytes);
  if (plan == nullptr) return nullptr;
  return std::make_unique<PreparedSegments>(std::move(plan), shape, scratch);
}

// Of a prepared invocation: its scratch in parts, and its bounds.
class Segments {
 public:
  explicit Segments(const Invocation& invocation)
      : prepared_(static_cast<const PreparedSegments&>(*invocation.prepared)),
        base_(invocation.workspace.data),
        bounds_(integers_of(invocation.reads.back())) {}

  const SegmentAttention& shape() const { return prepared_.shape(); }
  const int32_t* bounds() const { return bounds_; }
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

  // `operands` without lse's, which is scratch.
  void run_plan(std::array<void*, kSegmentOperands> operands, cudaStream_t stream) const {
    operands[static_cast<size_t>(SegmentOperand::lse)] = lse();
    prepared_.plan().run({.operands = operands,
                          .lengths = at<int32_t>(prepared_.scratch().lengths),
                          .begins = at<int64_t>(prepared_.scratch().begins)},
                         at<std::byte>(prepared_.scratch().library), stream);
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

}  // namespace

std::unique_ptr<Prepared> prepare_cudnn(const Attention& attention, const OperationView& view,
                                        CudaContext& context) {
  if (!is_by_cudnn(attention, view, context.device.card)) return nullptr;
  SegmentAttention shape = shape_of(attention, view, 0);
  shape.strides = {row_stride(view.read(0)), row_stride(view.read(1)), row_stride(view.read(2)),
                   row_stride(view.write(0)), attention.heads};
  return prepare(shape, segment_scratch(attention, view), context);
}

std::unique_ptr<Prepared> prepare_cudnn(const AttentionGrad& grad, const OperationView& view,
                                        CudaContext& context) {
  if (!is_by_cudnn(grad, view, context.device.card)) return nullptr;
  SegmentAttention shape = shape_of(grad, view, 1);
  shape.strides = {row_stride(view.read(1)),
                   row_stride(view.read(2)),
                   row_stride(view.read(3)),
                   row_stride(view.read(4)),
                   grad.heads,
                   row_stride(view.read(0)),
                   row_stride(view.write(0)),
                   row_stride(view.write(1)),
                   row_stride(view.write(2))};
  return prepare(shape, segment_scratch(grad, view), context);
}

void run_cudnn(const Attention& attention, const Invocation& invocation, CudaContext& context) {
  cudaStream_t stream = context.stream.get();
  const Segments segments(invocation);
  const Matrix o = matrix_of(invocation.writes[0]);
  float* lse = floats_of(invocation.writes[1]);
  segments.write_tables(stream);
  segments.run_plan({invocation.reads[0].data, invocation.reads[1].data, invocation.reads[2].data,
                     o.operand.data},
                    stream);
  turn_lse({.from = segments.lse(),
            .to = lse,
            .tokens = o.rows,
            .heads = attention.heads,
            .to_heads = true},
           stream);
  clear_outside({.bounds = segments.bounds(),
                 .segments = segments.shape().segments,
                 .tokens = o.rows,
                 .rows = {o.operand},
                 .columns = {o.columns},
                 .lse = lse,
                 .heads = attention.heads},
                stream);
}

void run_cudnn(const AttentionGrad& grad, const Invocation& invocation, CudaContext& context) {
  cudaStream_t stream = context.stream.get();
  const Segments segments(invocation);
  const std::span<const Buffer> reads = invocation.reads;  // do, q, k, v, o, lse
  const Matrix dq = matrix_of(invocation.writes[0]);
  const Matrix dk = matrix_of(invocation.writes[1]);
  const Matrix dv = matrix_of(invocation.writes[2]);
  segments.write_tables(stream);
  turn_lse({.from = floats_of(reads[5]),
            .to = segments.lse(),
            .tokens = dq.rows,
            .heads = grad.heads,
            .to_heads = false},
           stream);
  segments.run_plan({reads[1].data, reads[2].data, reads[3].data, reads[4].data, nullptr,
                     reads[0].data, dq.operand.data, dk.operand.data, dv.operand.data},
                    stream);
  clear_outside({.bounds = segments.bounds(),
                 .segments = segments.shape().segments,
                 .tokens = dq.rows,
                 .rows = {dq.operand, dk.operand, dv.operand},
                 .columns = {dq.columns, dk.columns, dv.columns},
                 .lse = nullptr,
                 .heads = 0},
                stream);
}

}  // namespace snug::backends::cuda
