#include "gradient_check.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "backends/reference/reference_backend.h"
#include "backends/reference/with_float_type.h"
#include "base/error.h"
#include "operation_check.h"
#include "program/ir/operands.h"
#include "program/ir/tape.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/xielu.h"
#include "program/kinds/expert/route.h"
#include "program/kinds/kind.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/loss/grpo.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/grouped_matmul.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::TensorId;

// The sum that finite differences look at.
double weighted_sum(const GradientCase& gradient_case, const program::Program& program,
                    const Inputs& inputs) {
  reference::ReferenceBackend reference({});
  const RunResult result = guarded_run(reference, program, inputs);
  double sum = 0;
  for (const auto& [output, weights] : gradient_case.output_gradients)
    for (size_t i = 0; i < weights.size(); ++i) sum += weights[i] * result.values.at(output)[i];
  return sum;
}

// A tape over one operation: every input asked for is wanted, gradients of outputs are inputs of
// the backward program.
class OneOperationTape : public program::Tape {
 public:
  OneOperationTape(program::Program program, std::vector<TensorId> wanted)
      : builder_(std::move(program)), wanted_(std::move(wanted)) {
    builder_.set_phase(program::Phase::backward);
  }

  void set_gradient(TensorId output, TensorId gradient) { gradients_[output] = gradient; }
  TensorId add_like(TensorId like, const std::string& name) {
    const program::Tensor& tensor = program().tensor(like);
    return builder_.activation(name, tensor.shape, tensor.dtype);
  }

  const program::Program& program() const override { return builder_.program(); }
  bool wants(TensorId tensor) const override {
    return std::find(wanted_.begin(), wanted_.end(), tensor) != wanted_.end();
  }
  TensorId gradient(TensorId output) const override {
    const auto found = gradients_.find(output);
    return found == gradients_.end() ? program::kNone : found->second;
  }
  TensorId contribute(TensorId input) override {
    const TensorId id = add_like(input, fmt::format("contribution{}", program().tensors.size()));
    contributions_.emplace_back(input, id);
    return id;
  }
  void pass_through(TensorId input, TensorId gradient) override {
    contributions_.emplace_back(input, gradient);
  }
  void emit(program::Attributes attributes, std::vector<TensorId> reads,
            std::vector<TensorId> writes) override {
    builder_.emit(std::move(attributes), std::move(reads), std::move(writes));
  }
  TensorId temporary(const char* suffix, const program::Shape& shape, DType dtype) override {
    return builder_.activation(fmt::format("{}{}", suffix, program().tensors.size()), shape, dtype);
  }
  bool is_read(TensorId) const override { return false; }
  void later(std::function<void()>) override { SNUG_CHECK(false, "nothing follows the operation"); }

  const std::vector<std::pair<TensorId, TensorId>>& contributions() const { return contributions_; }

 private:
  program::Builder builder_;
  std::vector<TensorId> wanted_;
  std::map<TensorId, TensorId> gradients_;
  std::vector<std::pair<TensorId, TensorId>> contributions_;
};

}  // namespace

std::vector<program::Kind> differentiable_kinds() {
  std::vector<program::Kind> kinds = all_kinds();
  std::erase_if(kinds, [](program::Kind kind) { return !program::has_derivative(kind); });
  return kinds;
}

bool is_differentiated(const OperationCase& operation_case) {
  const program::Operation& operation = operation_case.operation();
  const auto* attention = operation.attributes.get_if<program::Attention>();
  // Without old ones, the log-probabilities of a step count as constants in its ratios but for the
  // derivative.
  const auto* grpo = operation.attributes.get_if<program::Grpo>();
  // Nothing is learned where hits are counted.
  const auto* loss = operation.attributes.get_if<program::CrossEntropy>();
  const auto* linear_loss = operation.attributes.get_if<program::LinearCrossEntropy>();
  // Products by stored matrices are made of others after their derivatives.
  const auto* grouped = operation.attributes.get_if<program::GroupedMatmul>();
  return operation.updates.empty() && (grouped == nullptr || !grouped->stored) &&
         (attention == nullptr || !attention->paged) && (grpo == nullptr || grpo->old) &&
         (loss == nullptr || !loss->hits) && (linear_loss == nullptr || !linear_loss->hits);
}

std::vector<TensorId> differentiable_inputs(const OperationCase& operation_case) {
  constexpr std::array<std::string_view, 11> kConstants{"inverse_tokens",
                                                        "inverse_pairs",
                                                        "inverse_chosen_tokens",
                                                        "reference",
                                                        "kl_sums",
                                                        "inverse_desirable",
                                                        "inverse_undesirable",
                                                        "inverse_sequences",
                                                        "advantages",
                                                        "token_weights",
                                                        "old"};
  const program::Operation& operation = operation_case.operation();
  std::vector<TensorId> ids;
  for (const program::NamedOperand& operand : program::operands_of(operation)) {
    const bool is_read = std::ranges::count(operation.reads, operand.tensor) > 0;
    const bool is_constant =
        (operation.kind() == program::Kind::rope && operand.name == program::Rope::kTable.name) ||
        (operation.kind() == program::Kind::scale_columns &&
         operand.name == program::ScaleColumns::kDivisor.name) ||
        (operation.kind() == program::Kind::route &&
         operand.name == program::Route::kCorrection.name) ||
        (operation.kind() == program::Kind::xielu &&
         (operand.name == program::Xielu::kBeta.name ||
          operand.name == program::Xielu::kEpsilon.name)) ||
        (program::traits_of(operation).is_loss() &&
         std::ranges::count(kConstants, operand.name.text) > 0);
    if (is_read && !is_constant &&
        base::is_float(operation_case.program.tensor(operand.tensor).dtype))
      ids.push_back(operand.tensor);
  }
  return ids;
}

Inputs finite_differences(const GradientCase& gradient_case) {
  const program::Program program =
      reference::with_float_type(gradient_case.forward.program, DType::f64);
  Inputs inputs = gradient_case.forward.inputs;
  constexpr double kStep = 1e-5;
  Inputs result;
  for (const auto& [input, elements] : gradient_case.elements) {
    for (const size_t element : elements) {
      double& value = inputs.at(input)[element];
      const double original = value;
      value = original + kStep;
      const double above = weighted_sum(gradient_case, program, inputs);
      value = original - kStep;
      const double below = weighted_sum(gradient_case, program, inputs);
      value = original;
      result[input].push_back((above - below) / (2 * kStep));
    }
  }
  return result;
}

Inputs derivatives(const GradientCase& gradient_case) {
  std::vector<TensorId> wanted;
  for (const auto& [input, elements] : gradient_case.elements) wanted.push_back(input);
  OneOperationTape tape(gradient_case.forward.program, wanted);
  Inputs inputs = gradient_case.forward.inputs;
  for (const auto& [output, weights] : gradient_case.output_gradients) {
    const TensorId gradient = tape.add_like(output, fmt::format("gradient{}", output));
    tape.set_gradient(output, gradient);
    inputs[gradient] = weights;
  }
  const program::Operation operation = gradient_case.forward.operation();
  program::differentiate(operation, tape);
  program::Program program = reference::with_float_type(tape.program(), DType::f64);
  // A training form takes the place of the operation that it differentiates.
  if (program::traits_of(operation).has_training_form)
    program.operations.erase(program.operations.begin());
  for (const program::Operation& emitted : program.operations) {
    const std::string error = program::shape_error({program, emitted});
    SNUG_CHECK(error.empty(), "the derivative of {} emits {}: {}",
               program::name_of(operation.kind()), program::name_of(emitted.kind()), error);
  }
  reference::ReferenceBackend reference({});
  RunResult result = guarded_run(reference, program, inputs);
  for (const auto& [id, values] : inputs) result.values.emplace(id, values);
  Inputs gradients;
  for (const auto& [input, contribution] : tape.contributions()) {
    const std::vector<size_t>& elements = gradient_case.elements.at(input);
    Values& sum = gradients[input];
    sum.resize(elements.size());
    for (size_t i = 0; i < elements.size(); ++i)
      sum[i] += result.values.at(contribution)[elements[i]];
  }
  return gradients;
}

}  // namespace snug::backends::test
