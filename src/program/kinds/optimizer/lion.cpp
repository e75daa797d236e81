#include "program/kinds/optimizer/lion.h"

#include "program/kinds/functions.h"
#include "program/kinds/optimizer/optimizer_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const Lion& lion, const OperationView& view) {
  ShapeRule rule(view);
  check_betas(rule, lion);
  rule.require(lion.weight_decay >= 0.0F, "has a negative weight_decay");
  check_step(rule, lion, view);
  rule.measure(Lion::kMomentum, view[Lion::kWeight].shape);
  check_master(rule, lion, view);
  return rule.error();
}

// Operations per element: clip (1), the interpolation whose sign is used (3), sign (1), decay and
// step (3), momentum (3).
Cost cost(const Lion&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[Lion::kWeight].shape.elements(), 11);
}

}  // namespace

SNUG_DEFINE_KIND(Lion);

}  // namespace snug::program
