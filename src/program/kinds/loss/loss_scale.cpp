#include "program/kinds/loss/loss_scale.h"

#include <cmath>

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// Counts are stored in f32, which represents all integers up to here.
constexpr int64_t kMostCounted = int64_t{1} << 24;

std::string shape_error(const ScaleBy&, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[ScaleBy::kX];
  rule.rank(ScaleBy::kX, 1);
  rule.measure(ScaleBy::kX, x.shape);
  rule.measure(ScaleBy::kScale, Shape{1});
  rule.measure(ScaleBy::kY, x.shape);
  return rule.error();
}

std::string shape_error(const ScaledClipFactor& clip, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(clip.max_norm >= 0.0F, "has a negative max_norm");
  rule.require(clip.window >= 0 && clip.window <= kMostCounted, "has a window out of range");
  rule.require(clip.hysteresis >= 1 && clip.hysteresis <= kMostCounted,
               "has a hysteresis out of range");
  rule.require(std::isfinite(clip.least) && clip.least >= 0.0F,
               "has a least scale that is negative or not finite");
  rule.measure(ScaledClipFactor::kScaledNorm, Shape{1});
  rule.measure(ScaledClipFactor::kNorm, Shape{1});
  rule.measure(ScaledClipFactor::kFactor, Shape{1});
  rule.measure(ScaledClipFactor::kScale, Shape{1});
  rule.measure(ScaledClipFactor::kCounts, Shape{kLossScaleCounts});
  return rule.error();
}

Cost cost(const ScaleBy&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[ScaleBy::kX].shape.elements(), 1);
}

Cost cost(const ScaledClipFactor&, const OperationView& view, const Extent&) {
  return streaming_cost(view, kLossScaleCounts, 3);
}

}  // namespace

SNUG_DEFINE_KIND(ScaleBy);
SNUG_DEFINE_KIND(ScaledClipFactor);

}  // namespace snug::program
