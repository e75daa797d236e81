#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/operation_checks.h"

namespace snug::backends::cuda {
namespace {

using program::Adafactor;

bool supports(const Adafactor& adafactor, const OperationView& view, const Card&) {
  const auto is_f32 = [&](const program::Operand<Adafactor>& operand) {
    return view[operand].dtype == base::DType::f32;
  };
  return are_floats<Adafactor>(view, {Adafactor::kGradient, Adafactor::kWeight}) &&
         is_f32(Adafactor::kRows) && (!adafactor.factored || is_f32(Adafactor::kColumns)) &&
         is_f32(adafactor.has_master ? Adafactor::kMaster : Adafactor::kWeight);
}

int64_t workspace_bytes(const Adafactor& adafactor, const OperationView& view, const Card&) {
  const program::Shape& shape = view[Adafactor::kWeight].shape;
  return adafactor.factored ? adafactor_scratch_bytes(shape[0], shape[1], true)
                            : adafactor_scratch_bytes(1, shape.elements(), false);
}

// The stages of kernels/adafactor.cu.
int32_t launches(const Adafactor& adafactor, const OperationView&, const Card&) {
  return adafactor.factored ? 7 : 4;
}

}  // namespace

SNUG_CARD_NEEDS(Adafactor, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);

}  // namespace snug::backends::cuda
