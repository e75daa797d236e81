#include "methods/loss_scale.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "program/kinds/loss/loss_scale.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

Tensor run_scalar(std::string_view name, int64_t count) {
  Tensor tensor;
  tensor.name = name;
  tensor.shape = {count};
  tensor.dtype = DType::f32;
  tensor.role = Role::scalar;
  tensor.lifetime = Lifetime::run;
  return tensor;
}

// The operands of a loss that its gradients are proportional to.
std::vector<TensorId> factors_of(const Operation& loss) {
  std::vector<TensorId> factors;
  for (const OperandName name : traits_of(loss).loss_factors)
    if (!name.empty()) factors.push_back(find_operand(loss, name));
  SNUG_CHECK(!factors.empty(), "{} has no number to scale", name_of(loss.kind()));
  return factors;
}

// Adds a tensor like another one, of lifetime program, for a value that is still scaled.
TensorId add_scaled(Builder& builder, TensorId like) {
  Tensor tensor = builder.program().tensor(like);
  tensor.name += ".scaled";
  tensor.role = Role::scalar;
  tensor.lifetime = Lifetime::program;
  return builder.add(std::move(tensor));
}

// Whether the tensor is a result of a loss operation, from which gradients begin or which is
// reported.
bool is_result(const Tensor& tensor) {
  constexpr std::array kResults{kLossName, kRouterLossName, kMeasuresName};
  return std::ranges::find(kResults, tensor.name) != kResults.end();
}

}  // namespace

Tensor loss_scale_tensor() { return run_scalar(kLossScaleName, 1); }

Tensor loss_scale_counts_tensor() { return run_scalar(kLossScaleCountsName, kLossScaleCounts); }

Program scale_losses(const Program& forward) {
  Program copy = forward;
  std::vector<Operation> operations = std::move(copy.operations);
  copy.operations.clear();
  Builder builder(std::move(copy));
  const TensorId scale = builder.add(loss_scale_tensor());
  bool found = false;
  for (Operation& operation : operations) {
    std::vector<TensorId> results;
    for (const TensorId id : operation.writes)
      if (is_result(builder.program().tensor(id))) results.push_back(id);
    if (results.empty()) {
      builder.emit(std::move(operation));
      continue;
    }
    found = true;
    builder.set_layer(operation.layer);
    for (const TensorId factor : factors_of(operation)) {
      const TensorId scaled_factor = add_scaled(builder, factor);
      builder.emit(ScaleBy{}, {factor, scale}, {scaled_factor});
      std::ranges::replace(operation.reads, factor, scaled_factor);
    }
    std::vector<std::pair<TensorId, TensorId>> scaled;
    for (const TensorId id : results) {
      scaled.emplace_back(add_scaled(builder, id), id);
      std::ranges::replace(operation.writes, id, scaled.back().first);
    }
    builder.emit(std::move(operation));
    for (const auto& [from, to] : scaled)
      builder.emit(ScaleBy{.divides = true}, {from, scale}, {to});
  }
  SNUG_CHECK(found, "{} has no loss to scale", forward.name);
  return builder.take();
}

void emit_scaled_clip(Builder& builder, const std::vector<TensorId>& gradients, TensorId norm,
                      TensorId factor, double max_grad_norm, const LossScaleOptions& options) {
  const TensorId scaled_norm = add_scaled(builder, norm);
  const TensorId scale = builder.add(loss_scale_tensor());
  const TensorId counts = builder.add(loss_scale_counts_tensor());
  builder.emit(GlobalNorm{}, gradients, {scaled_norm});
  builder.emit(ScaledClipFactor{.max_norm = static_cast<float>(max_grad_norm),
                                .window = options.window,
                                .hysteresis = static_cast<int32_t>(options.hysteresis),
                                .least = static_cast<float>(options.least)},
               {scaled_norm}, {norm, factor}, {scale, counts});
}

}  // namespace snug::methods
