// Kinds whose kernels take any rows of floats, and at most sums of columns as scratch.
#include "backends/collective_scratch.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/few_rows.h"
#include "backends/cuda/needs/kind_needs.h"

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

template <typename Struct>
requires(program::traits_of<Struct>().is_collective) int64_t
    workspace_bytes(const Struct&, const OperationView& view, const Card&) {
  return collective_scratch_bytes(view);
}

// The table is cleared first.
int32_t launches(const program::EmbeddingGrad& grad, const OperationView&, const Card&) {
  return grad.accumulate ? 1 : 2;
}

// Sums of blocks of rows, then of blocks.
int32_t launches(const program::SumRows&, const OperationView&, const Card&) { return 2; }
int32_t launches(const program::ColumnGainGrad&, const OperationView&, const Card&) { return 2; }

// Losses of rows, then their sum.
int32_t launches(const program::CrossEntropy&, const OperationView&, const Card&) { return 2; }

}  // namespace

SNUG_CARD_NEEDS(AllGather);
SNUG_CARD_NEEDS(ReduceScatter, .workspace_bytes = workspace_bytes);
SNUG_CARD_NEEDS(AllReduce, .workspace_bytes = workspace_bytes);
SNUG_CARD_NEEDS(Embedding);
SNUG_CARD_NEEDS(EmbeddingGrad, .launches = launches);
SNUG_CARD_NEEDS(RotaryTable);
SNUG_CARD_NEEDS(Rope, .launched_together = rotations_together);
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
SNUG_CARD_NEEDS(Transfer);
SNUG_CARD_NEEDS(Await);
SNUG_CARD_NEEDS(Copy);

}  // namespace snug::backends::cuda
