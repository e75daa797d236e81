#include "program/kinds/expert/balance_loss.h"

#include <cmath>
#include <vector>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// The operands alternate between counts and sums, layer by layer.
template <typename Struct>
void check_layers(const Struct& loss, const OperationView& view, ShapeRule& rule) {
  const std::vector<TensorId>& reads = view.operation.reads;
  rule.require(reads.size() % 2 == 1, "has counts of a layer without sums");
  rule.require(std::isfinite(loss.factor), "has a factor that is not finite");
  rule.measure(Struct::kInverseTokens, Shape{1});
  const Shape experts{view[Struct::kLayers].shape.elements()};
  rule.require(loss.k >= 1 && loss.k <= experts[0], "has a k that the experts do not allow");
  for (int64_t layer = 0; layer < balanced_layers(reads.size()); ++layer) {
    const Tensor& sums = view.program.tensor(reads[sums_read(layer)]);
    rule.index({"counts", view.program.tensor(reads[counts_read(layer)])}, experts);
    rule.measure({"sums", sums}, experts);
    rule.mixed_types({rule.named(Struct::kInverseTokens), {"sums", sums}});
  }
  rule.measure(Struct::kLoss, Shape{1});
  rule.mixed_types({Struct::kInverseTokens, Struct::kLoss});
}

std::string shape_error(const BalanceLoss& loss, const OperationView& view) {
  ShapeRule rule(view);
  check_layers(loss, view, rule);
  return rule.error();
}

std::string shape_error(const BalanceLossTrain& loss, const OperationView& view) {
  ShapeRule rule(view);
  check_layers(loss, view, rule);
  rule.measure(BalanceLossTrain::kDSums, view[BalanceLossTrain::kLayers].shape);
  rule.mixed_types({BalanceLossTrain::kInverseTokens, BalanceLossTrain::kDSums});
  return rule.error();
}

// Two sums over layers, and a few operations on their results.
template <typename Struct>
Cost cost_of_sums(const OperationView& view) {
  const int64_t experts = view[Struct::kLayers].shape.elements();
  return streaming_cost(view, experts * balanced_layers(view.operation.reads.size()), 2);
}

Cost cost(const BalanceLoss&, const OperationView& view, const Extent&) {
  return cost_of_sums<BalanceLoss>(view);
}

Cost cost(const BalanceLossTrain&, const OperationView& view, const Extent&) {
  return cost_of_sums<BalanceLossTrain>(view);
}

// The sums of all layers are added, so each layer's sums have the same gradient.
void differentiate(const BalanceLoss& loss, const Operation& operation, Tape& tape) {
  // Copied, since the program's table grows.
  const Tensor like = tape.program().tensor(operation.reads[sums_read(0)]);
  const TensorId dsums = tape.temporary("expert_sums", like.shape, like.dtype);
  tape.emit(BalanceLossTrain{.k = loss.k, .factor = loss.factor}, operation.reads,
            {id_of(operation, BalanceLoss::kLoss), dsums});
  for (int64_t layer = 0; layer < balanced_layers(operation.reads.size()); ++layer)
    if (const TensorId sums = operation.reads[sums_read(layer)]; tape.wants(sums))
      tape.pass_through(sums, dsums);
}

}  // namespace

SNUG_DEFINE_KIND(BalanceLoss, .differentiate = differentiate);
SNUG_DEFINE_KIND(BalanceLossTrain);

}  // namespace snug::program
