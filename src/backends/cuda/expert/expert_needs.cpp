// The needs of the kinds for mixtures of experts. The bounds of experts' rows are on the device,
// where kernels read them, so that the host does not wait and a recording is valid for any bounds.
#include "backends/cuda/expert/expert_needs.h"

#include <algorithm>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/needs/row_stride.h"
#include "backends/operation_checks.h"
#include "program/kinds/expert/balance_loss.h"
#include "program/kinds/expert/expert_bias.h"
#include "program/kinds/expert/expert_rows.h"
#include "program/kinds/expert/route.h"
#include "program/kinds/product/grouped_matmul.h"

namespace snug::backends::cuda {
namespace {

using program::BalanceLoss;
using program::GroupedMatmul;
using program::GroupedMatmulGrad;
using program::ProductAlgorithm;
using program::Route;
using program::RouteGrad;
using program::Tensor;

// Whether kernels can read the tensor's rows as vectors of 16-bit elements; its address is a
// multiple of 16.
bool is_read_in_vectors(const Tensor& tensor) {
  const int64_t stride = tensor.shape.rank() == 2 ? row_stride(tensor) : tensor.shape.columns();
  return is_narrow(tensor.dtype) && tensor.shape.columns() % kVectorElements == 0 &&
         stride % kVectorElements == 0 && tensor.view.offset % kVectorElements == 0;
}

}  // namespace

ProductAlgorithm grouped_algorithm(const Tensor& a, const Tensor& b, const Card& card) {
  const bool has_cores = card.compute_capability >= 80 && card.shared_bytes >= kGroupedSharedBytes;
  return has_cores && is_read_in_vectors(a) && is_read_in_vectors(b)
             ? ProductAlgorithm::blocked_tensor_cores
             : ProductAlgorithm::blocked;
}

program::Tensor grouped_factor(const GroupedMatmul& grouped, const OperationView& view) {
  if (!grouped.stored) return view[GroupedMatmul::kB];
  const int64_t k = view[GroupedMatmul::kA].shape[1];
  const int64_t n = view[GroupedMatmul::kC].shape[1];
  Tensor values;
  values.shape = {view[GroupedMatmul::kBounds].shape[0], grouped.transpose_b ? n : k,
                  grouped.transpose_b ? k : n};
  values.dtype = view[GroupedMatmul::kA].dtype;
  return values;
}

const Tensor& grouped_factor(const GroupedMatmulGrad&, const OperationView& view) {
  return view[GroupedMatmulGrad::kB];
}

// Enough that the products of these experts fill a card, and little next to what a layer takes: of
// qwen3-30b-a3b the gate and up of ten experts.
int64_t experts_at_once(const OperationView& view) {
  constexpr int64_t kValueBytes = int64_t{64} << 20;
  constexpr int64_t kMaxAtOnce = 16;
  const Tensor& a = view[GroupedMatmul::kA];
  const int64_t bytes = a.shape[1] * view[GroupedMatmul::kC].shape[1] * base::size_of(a.dtype);
  const int64_t experts = view[GroupedMatmul::kBounds].shape[0];
  return std::clamp<int64_t>(kValueBytes / std::max<int64_t>(1, bytes), 1,
                             std::min(kMaxAtOnce, experts));
}

namespace {

bool is_within_grid(int64_t columns) { return columns / kGroupedPlainTile < kMaxGridY; }

bool supports(const GroupedMatmul& grouped, const OperationView& view, const Card&) {
  return are_floats<GroupedMatmul>(view, {GroupedMatmul::kA, GroupedMatmul::kC}) &&
         (grouped.stored || are_floats<GroupedMatmul>(view, {GroupedMatmul::kB})) &&
         is_within_grid(view[GroupedMatmul::kC].shape[1]);
}

int64_t workspace_bytes(const GroupedMatmul& grouped, const OperationView& view, const Card&) {
  if (!grouped.stored) return 0;
  const Tensor& a = view[GroupedMatmul::kA];
  return experts_at_once(view) * a.shape[1] * view[GroupedMatmul::kC].shape[1] *
         base::size_of(a.dtype);
}

// Dequantising and multiplying take turns.
int32_t launches(const GroupedMatmul& grouped, const OperationView& view, const Card&) {
  if (!grouped.stored) return 1;
  const int64_t at_once = experts_at_once(view);
  const int64_t experts = view[GroupedMatmul::kBounds].shape[0];
  return static_cast<int32_t>(2 * ((experts + at_once - 1) / at_once));
}

bool supports(const GroupedMatmulGrad&, const OperationView& view, const Card&) {
  const program::Shape& c = view[GroupedMatmulGrad::kC].shape;
  return are_floats<GroupedMatmulGrad>(
             view, {GroupedMatmulGrad::kA, GroupedMatmulGrad::kB, GroupedMatmulGrad::kC}) &&
         c[0] <= kMaxGridY && is_within_grid(c[1]);
}

GroupedMatmul decide(const GroupedMatmul& grouped, const OperationView& view, const Card& card) {
  GroupedMatmul decided = grouped;
  decided.choice.algorithm =
      grouped_algorithm(view[GroupedMatmul::kA], grouped_factor(grouped, view), card);
  return decided;
}

GroupedMatmulGrad decide(const GroupedMatmulGrad& grad, const OperationView& view,
                         const Card& card) {
  GroupedMatmulGrad decided = grad;
  decided.choice.algorithm =
      grouped_algorithm(view[GroupedMatmulGrad::kA], view[GroupedMatmulGrad::kB], card);
  return decided;
}

// With balanced experts, a block keeps a sum per expert in shared memory.
bool supports(const Route& route, const OperationView& view, const Card& card) {
  return are_f32<Route>(view, {Route::kWeights, Route::kSums, Route::kCorrection}) &&
         are_floats<Route>(view, {Route::kLogits}) &&
         (!route.balance ||
          route_shared_bytes(view[Route::kLogits].shape[1]) + kDeclaredSharedBytes <=
              card.shared_bytes);
}

int64_t workspace_bytes(const Route& route, const OperationView& view, const Card&) {
  const program::Shape& logits = view[Route::kLogits].shape;
  return route.balance ? route_load_bytes(logits[0], logits[1]) : 0;
}

bool supports(const RouteGrad&, const OperationView& view, const Card&) {
  return are_f32<RouteGrad>(view, {RouteGrad::kDWeights, RouteGrad::kDSums}) &&
         are_floats<RouteGrad>(view, {RouteGrad::kLogits, RouteGrad::kDLogits});
}

// One launch chooses experts, one places rows.
int32_t launches(const Route&, const OperationView&, const Card&) { return 2; }

int64_t workspace_bytes(const program::ExpertBiasGrad& grad, const OperationView& view,
                        const Card&) {
  const int64_t rows = view[program::ExpertBiasGrad::kDY].shape[0];
  return grad.weighted ? rows * int64_t{sizeof(float)} : 0;
}

// With weights, another launch first orders them by row.
int32_t launches(const program::ExpertBiasGrad& grad, const OperationView&, const Card&) {
  return grad.weighted ? 2 : 1;
}

template <program::BalanceKind Loss>
bool supports(const Loss&, const OperationView& view, const Card&) {
  return is_of_f32_and_indices(view);
}

template <program::BalanceKind Loss>
int64_t workspace_bytes(const Loss&, const OperationView& view, const Card&) {
  return view[Loss::kLayers].shape.elements() * int64_t{sizeof(RouteLoad)};
}

template <program::BalanceKind Loss>
int32_t launches(const Loss&, const OperationView& view, const Card&) {
  return static_cast<int32_t>(
      balance_launches(program::balanced_layers(view.operation.reads.size())));
}

}  // namespace

SNUG_CARD_NEEDS(Route, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(BalanceLoss, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(BalanceLossTrain, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(RouteGrad, .supports = supports);
SNUG_CARD_NEEDS(Permute);
SNUG_CARD_NEEDS(Combine);
SNUG_CARD_NEEDS(ScaleRows);
SNUG_CARD_NEEDS(ScaleRowsGrad);
SNUG_CARD_NEEDS(AddExpertBias);
SNUG_CARD_NEEDS(ExpertBiasGrad, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(ExpertBiasWeightsGrad);
SNUG_CARD_NEEDS(GroupedMatmul, .supports = supports, .decide = decide,
                .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(GroupedMatmulGrad, .supports = supports, .decide = decide);

}  // namespace snug::backends::cuda
