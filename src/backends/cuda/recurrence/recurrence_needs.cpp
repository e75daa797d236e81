#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/recurrence/delta_sizes.h"
#include "program/kinds/recurrence/causal_convolution.h"
#include "program/kinds/recurrence/delta_gates.h"

namespace snug::backends::cuda {
namespace {

using program::CausalConvolution;
using program::CausalConvolutionGrad;
using program::DeltaGatesGrad;
using program::GatedDeltaRule;
using program::GatedDeltaRuleGrad;

// A number of each token (segment_taps.h).
int64_t taps_bytes(int64_t tokens) { return tokens * int64_t{sizeof(int32_t)}; }

int64_t workspace_bytes(const CausalConvolution&, const OperationView& view, const Card&) {
  return taps_bytes(view[CausalConvolution::kX].shape[0]);
}

int64_t workspace_bytes(const CausalConvolutionGrad& grad, const OperationView& view, const Card&) {
  const int64_t rows = view[CausalConvolutionGrad::kX].shape[0];
  const int64_t weights = view[CausalConvolutionGrad::kW].shape.elements();
  return taps_bytes(rows) + (grad.weight_gradient ? column_sums_bytes(rows, weights) : 0);
}

// The tokens' places, the rows, and what sequences keep of them; for dw the sums of blocks and
// their sum.
int32_t launches(const CausalConvolution& convolution, const OperationView&, const Card&) {
  return convolution.cached ? 3 : 2;
}
int32_t launches(const CausalConvolutionGrad& grad, const OperationView&, const Card&) {
  return grad.weight_gradient ? 4 : 2;
}

int32_t launches(const DeltaGatesGrad& grad, const OperationView&, const Card&) {
  return grad.weight_gradient ? 2 : 1;
}

int64_t workspace_bytes(const GatedDeltaRule& rule, const OperationView& view, const Card&) {
  const DeltaSizes sizes = delta_sizes(rule, view);
  return sizes.forward_scratch() * int64_t{sizeof(float)} + taps_bytes(sizes.tokens);
}

int64_t workspace_bytes(const GatedDeltaRuleGrad& rule, const OperationView& view, const Card&) {
  const DeltaSizes sizes = delta_sizes(rule, view);
  return sizes.backward_scratch() * int64_t{sizeof(float)} + taps_bytes(sizes.tokens);
}

// The tokens' places, zeros of those in no segment, and the chunks; of the gradient zeros of three
// outputs, and the sums of dq and dk.
int32_t launches(const GatedDeltaRule&, const OperationView&, const Card&) { return 3; }
int32_t launches(const GatedDeltaRuleGrad&, const OperationView&, const Card&) { return 7; }

}  // namespace

SNUG_CARD_NEEDS(CausalConvolution, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(CausalConvolutionGrad, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(DeltaGates);
SNUG_CARD_NEEDS(DeltaGatesGrad, .launches = launches);
SNUG_CARD_NEEDS(GatedDeltaRule, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(GatedDeltaRuleGrad, .workspace_bytes = workspace_bytes, .launches = launches);

}  // namespace snug::backends::cuda
