#include "methods/loss_builder.h"

#include <utility>

#include "base/error.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/loss/segment_sums.h"

namespace snug::methods {
namespace {

using program::Lifetime;
using program::Program;
using program::Role;
using program::Shape;
using program::TensorId;

using TokenLoss = program::LinearCrossEntropy;

// A logit is scale * product, which a cap c makes c tanh(logit / c): divided by the temperature,
// both are.
Program at_temperature(Program forward, float temperature) {
  if (temperature == 1.0F) return forward;
  auto& loss = forward.operations.back().attributes.get<TokenLoss>();
  SNUG_CHECK(!loss.bias && !loss.gain, "logits with a bias at a temperature of {}", temperature);
  loss.scale /= temperature;
  loss.softcap /= temperature;
  return forward;
}

program::Operation& last_of(Program& forward) {
  program::Operation& last = forward.operations.back();
  SNUG_CHECK(last.attributes.is<TokenLoss>(), "{} does not end in the losses of tokens",
             forward.name);
  return last;
}

// Keeps the loss of each token, and renames the mean loss of tokens, which nothing reads any more.
Program with_losses_kept(Program forward) {
  const program::Operation& last = last_of(forward);
  program::Tensor& unread = forward.tensor(id_of(last, TokenLoss::kLoss));
  unread.name = "token_loss";
  unread.lifetime = Lifetime::program;
  forward.tensor(id_of(last, TokenLoss::kLosses)).lifetime = Lifetime::program;
  return forward;
}

}  // namespace

Program with_smoothing(Program forward, float smoothing) {
  last_of(forward).attributes.get<TokenLoss>().smoothing = smoothing;
  return forward;
}

LossBuilder::LossBuilder(const Program& forward, float temperature)
    : Builder(with_losses_kept(at_temperature(forward, temperature))) {
  losses_ = id_of(program().operations.back(), TokenLoss::kLosses);
  bounds_ = program().find(program::kQueryBoundsName);
  tokens_ = program().tensor(losses_).shape;
  segments_ = {program().tensor(bounds_).shape[0]};
  type_ = program().tensor(losses_).dtype;
}

TensorId LossBuilder::add(std::string_view name, const Shape& shape, Role role, Lifetime lifetime) {
  program::Tensor tensor;
  tensor.name = name;
  tensor.shape = shape;
  tensor.dtype = type_;
  tensor.role = role;
  tensor.lifetime = lifetime;
  return Builder::add(std::move(tensor));
}

TensorId LossBuilder::number(std::string_view name) { return numbers(name, {1}); }

TensorId LossBuilder::numbers(std::string_view name, const Shape& shape) {
  return add(name, shape, Role::batch, Lifetime::step);
}

TensorId LossBuilder::integers(std::string_view name, const Shape& shape) {
  program::Tensor tensor;
  tensor.name = name;
  tensor.shape = shape;
  tensor.dtype = program::DType::i32;
  tensor.role = Role::batch;
  tensor.lifetime = Lifetime::step;
  return Builder::add(std::move(tensor));
}

TensorId LossBuilder::measures(int64_t count) {
  return add(program::kMeasuresName, {count}, Role::scalar, Lifetime::step);
}

TensorId LossBuilder::loss() { return add(program::kLossName, {1}, Role::scalar, Lifetime::step); }

TensorId LossBuilder::reference(ReferenceModel from, const Shape& shape) {
  const Role role = from == ReferenceModel::kept ? Role::batch : Role::scalar;
  return add(program::kReferenceName, shape, role, Lifetime::step);
}

TensorId LossBuilder::sums(std::string_view name, TensorId bounds, float scale) {
  const TensorId sums = add(name, segments_, Role::scalar, Lifetime::program);
  emit(program::SumSegments{.scale = scale}, {losses_, bounds}, {sums});
  return sums;
}

TensorId LossBuilder::of_tokens(std::string_view name, Lifetime lifetime) {
  const TensorId values = add(name, tokens_, Role::scalar, lifetime);
  emit(program::Scale{.factor = -1.0F}, {losses_}, {values});
  return values;
}

}  // namespace snug::methods
