// Kinds whose kernels take any rows of floats, and need at most sums over columns as scratch.
#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "backends/cuda/transfer/kernels/rank_sum_sizes.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/clamped_swiglu.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/gelu.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/noise.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/sigmoid_mul.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/loss/dpo.h"
#include "program/kinds/loss/grpo.h"
#include "program/kinds/loss/kto.h"
#include "program/kinds/loss/loss_scale.h"
#include "program/kinds/loss/orpo.h"
#include "program/kinds/loss/segment_sums.h"
#include "program/kinds/norm/row_norms.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/transfer/collective.h"
#include "program/kinds/transfer/collective_pieces.h"
#include "program/kinds/transfer/transfer.h"

namespace snug::backends::cuda {
namespace {

int64_t workspace_bytes(const program::SumRows&, const OperationView& view, const Card&) {
  const program::Shape& shape = view[program::SumRows::kX].shape;
  return column_sums_bytes(shape[0], shape[1]);
}

int64_t workspace_bytes(const program::ColumnGainGrad&, const OperationView& view, const Card&) {
  const program::Shape& shape = view[program::ColumnGainGrad::kX].shape;
  return column_sums_bytes(shape[0], shape[1]);
}

// The size of a piece over all ranks, which equals what is collected before sums begin
// (passes/sharding/shard.cpp). With 8 H100 over NVLink, a piece's messages and launches take 40 us
// and its bytes 64 us; with pieces of 4 MiB the former would take four times as long as the latter.
constexpr int64_t kPieceBytes = int64_t{25} << 20;

template <program::SumOverRanks Struct>
Struct decide(const Struct& sum, const OperationView& view, const Card&) {
  Struct decided = sum;
  decided.piece_elements = program::piece_elements_within(kPieceBytes, sum, view);
  return decided;
}

template <program::SumOverRanks Struct>
int64_t workspace_bytes(const Struct& sum, const OperationView& view, const Card&) {
  return program::scratch_bytes(sum, view);
}

// A single rank has one launch for each tensor whose type is not `unchanged`.
int32_t launches_alone(const std::vector<program::TensorId>& ids, const OperationView& view,
                       std::optional<program::DType> unchanged) {
  return static_cast<int32_t>(std::ranges::count_if(ids, [&](program::TensorId id) {
    const program::Tensor& tensor = view.program.tensor(id);
    return tensor.shape.elements() > 0 && tensor.dtype != unchanged;
  }));
}

// For each piece: collecting the data for each rank, and the sums (card_sums.cpp).
int32_t launches(const program::ReduceScatter& reduce, const OperationView& view, const Card&) {
  const program::Operation& operation = view.operation;
  if (reduce.ranks == 1)
    return launches_alone(reduce.in_place ? operation.updates : operation.reads, view, {});
  int64_t launches = 0;
  for (const program::SumPiece& piece : program::pieces_of_sum(reduce, view))
    launches += (piece.is_packed ? rank_sum_launches(piece.ranges * reduce.ranks) : 0) +
                rank_sum_launches(piece.ranges);
  return static_cast<int32_t>(launches);
}

// For each piece: collecting the data, the sums of a slice, and copying all sums to their tensors.
int32_t launches(const program::AllReduce& reduce, const OperationView& view, const Card&) {
  if (reduce.ranks == 1)
    return reduce.sent_bf16 ? launches_alone(view.operation.updates, view, program::DType::bf16)
                            : 0;
  int64_t launches = 0;
  for (const program::SumPiece& piece : program::pieces_of_sum(reduce, view))
    launches += 2 * rank_sum_launches(piece.ranges) + 1;
  return static_cast<int32_t>(launches);
}

// Without accumulation the table is cleared first.
int32_t launches(const program::EmbeddingGrad& grad, const OperationView&, const Card&) {
  return grad.accumulate ? 1 : 2;
}

// One launch sums within blocks of rows, one over blocks.
int32_t launches(const program::SumRows&, const OperationView&, const Card&) { return 2; }
int32_t launches(const program::ColumnGainGrad&, const OperationView&, const Card&) { return 2; }

// One launch for the losses of rows, one for their sum.
int32_t launches(const program::CrossEntropy&, const OperationView&, const Card&) { return 2; }

// One launch for what each segment adds, one for the sums; zeros, then what is learned.
int32_t launches(const program::Grpo&, const OperationView&, const Card&) { return 2; }
int32_t launches(const program::GrpoGrad&, const OperationView&, const Card&) { return 2; }

}  // namespace

SNUG_CARD_NEEDS(AllGather);
SNUG_CARD_NEEDS(ReduceScatter, .decide = decide, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(AllReduce, .decide = decide, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(Embedding);
SNUG_CARD_NEEDS(EmbeddingGrad, .launches = launches);
SNUG_CARD_NEEDS(RotaryTable);
SNUG_CARD_NEEDS(Rope, .launched_together = rotations_together);
SNUG_CARD_NEEDS(SigmoidMul);
SNUG_CARD_NEEDS(SigmoidMulGrad);
SNUG_CARD_NEEDS(SiluMul);
SNUG_CARD_NEEDS(SiluMulGrad);
SNUG_CARD_NEEDS(GeluMul);
SNUG_CARD_NEEDS(GeluMulGrad);
SNUG_CARD_NEEDS(ClampedSwiglu);
SNUG_CARD_NEEDS(ClampedSwigluGrad);
SNUG_CARD_NEEDS(Gelu);
SNUG_CARD_NEEDS(GeluGrad);
SNUG_CARD_NEEDS(Relu);
SNUG_CARD_NEEDS(ReluGrad);
SNUG_CARD_NEEDS(Xielu);
SNUG_CARD_NEEDS(XieluGrad);
SNUG_CARD_NEEDS(XieluSlope);
SNUG_CARD_NEEDS(Multiply);
SNUG_CARD_NEEDS(MultiplyGrad);
SNUG_CARD_NEEDS(Softcap);
SNUG_CARD_NEEDS(SoftcapGrad);
SNUG_CARD_NEEDS(SumRows, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(Scale);
SNUG_CARD_NEEDS(Zeros);
SNUG_CARD_NEEDS(ScaleColumns);
SNUG_CARD_NEEDS(ColumnGainGrad, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(RowNorms);
SNUG_CARD_NEEDS(Add);
SNUG_CARD_NEEDS(Accumulate);
SNUG_CARD_NEEDS(AddBias);
SNUG_CARD_NEEDS(Dropout);
SNUG_CARD_NEEDS(AddNoise);
SNUG_CARD_NEEDS(Cast);
SNUG_CARD_NEEDS(CrossEntropy, .launches = launches);
SNUG_CARD_NEEDS(CrossEntropyGrad);
SNUG_CARD_NEEDS(ScaleBy);
SNUG_CARD_NEEDS(ScaledClipFactor);
SNUG_CARD_NEEDS(SumSegments);
SNUG_CARD_NEEDS(SpreadSegments);
SNUG_CARD_NEEDS(WeighRows);
SNUG_CARD_NEEDS(Dpo);
SNUG_CARD_NEEDS(DpoGrad);
SNUG_CARD_NEEDS(Orpo);
SNUG_CARD_NEEDS(OrpoGrad);
SNUG_CARD_NEEDS(KlEstimate);
SNUG_CARD_NEEDS(Kto);
SNUG_CARD_NEEDS(KtoGrad);
SNUG_CARD_NEEDS(Grpo, .launches = launches);
SNUG_CARD_NEEDS(GrpoGrad, .launches = launches);
SNUG_CARD_NEEDS(Transfer);
SNUG_CARD_NEEDS(Await);
SNUG_CARD_NEEDS(Copy);

}  // namespace snug::backends::cuda
