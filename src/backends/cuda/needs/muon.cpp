#include "backends/cuda/needs/muon.h"

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/operation_checks.h"

namespace snug::backends::cuda {
namespace {

using program::MuonMomentum;
using program::MuonStep;
using program::Normalize;

int64_t partials_of(const OperationView& view) {
  return norm_partials(1, view[Normalize::kX].shape.elements());
}

bool supports(const MuonMomentum&, const OperationView& view, const Card&) {
  return are_floats<MuonMomentum>(view, {MuonMomentum::kGradient, MuonMomentum::kDirection}) &&
         are_f32<MuonMomentum>(view, {MuonMomentum::kMomentum});
}

bool supports(const MuonStep& step, const OperationView& view, const Card&) {
  return are_floats<MuonStep>(view, {MuonStep::kDirection, MuonStep::kWeight}) &&
         are_f32<MuonStep>(view, {step.has_master ? MuonStep::kMaster : MuonStep::kWeight});
}

int64_t workspace_bytes(const Normalize&, const OperationView& view, const Card&) {
  return kNormFloats * int64_t{sizeof(float)} + norm_scratch_bytes(partials_of(view));
}

// Sums of squares, the norm of them in one or two, the quotient.
int32_t launches(const Normalize&, const OperationView& view, const Card&) {
  return norm_sums(partials_of(view)) == 0 ? 3 : 4;
}

}  // namespace

SNUG_CARD_NEEDS(MuonMomentum, .supports = supports);
SNUG_CARD_NEEDS(Normalize, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(MuonStep, .supports = supports);

}  // namespace snug::backends::cuda
