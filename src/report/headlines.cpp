#include "report/headlines.h"

#include <cmath>

namespace snug::report {

const MetricsCurve* curve_of(const MetricsCurves& curves, const Headline& headline) {
  const MetricsCurve* curve = curves.find(headline.key);
  return curve == nullptr || !std::isfinite(curve->last()) ? nullptr : curve;
}

double best_of(const MetricsCurve& curve, const Headline& headline) {
  return headline.is_greatest ? curve.greatest() : curve.least();
}

}  // namespace snug::report
