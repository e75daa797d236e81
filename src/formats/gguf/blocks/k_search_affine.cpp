// fit_affine: each value weighs as much as its magnitude and the root of the mean square of its
// sub-block. For the codes of a trial, scale and least value follow from the weighted least
// squares; they are kept with the codes if their error is less than that of the best so far. This
// file is compiled without fused products and sums, for the bytes of ggml.
#include <cmath>

#include "formats/gguf/blocks/k_search.h"

namespace snug::formats {
namespace {

constexpr int kAffineCount = 32;
using AffineValues = LaneValues<kAffineCount>;
using AffineCodes = LaneCodes<kAffineCount>;

struct AffineLine {
  FloatLanes scale;
  FloatLanes least;
};

// What all trials share. Sums are over a sub-block, of values x, codes l and weights w.
struct AffineProblem {
  AffineValues values;
  AffineValues weights;
  FloatLanes w;
  FloatLanes wx;
  FloatLanes most;  // of the values
  int highest = 0;
};
struct AffineSums {
  FloatLanes wl{};
  FloatLanes wll{};
  FloatLanes wlx{};
};

struct AffineFit {
  AffineLine line;
  AffineCodes codes;
  FloatLanes error;
};

AffineValues affine_weights(const AffineValues& values) {
  FloatLanes squares{};
  for (const FloatLanes& x : values) squares += x * x;
  const FloatLanes mean = squares / static_cast<float>(kAffineCount);
  const FloatLanes root{std::sqrt(mean[0]), std::sqrt(mean[1]), std::sqrt(mean[2]),
                        std::sqrt(mean[3])};
  AffineValues weights;
  for (size_t i = 0; i < kAffineCount; ++i) weights[i] = root + magnitudes(values[i]);
  return weights;
}

AffineProblem problem_of(const float* source, int highest) {
  AffineProblem problem;
  problem.values = lane_values<kAffineCount>(source);
  problem.weights = affine_weights(problem.values);
  problem.w = problem.weights[0];
  problem.wx = problem.weights[0] * problem.values[0];
  problem.most = problem.values[0];
  problem.highest = highest;
  for (size_t i = 1; i < kAffineCount; ++i) {
    const FloatLanes x = problem.values[i];
    problem.w += problem.weights[i];
    problem.wx += problem.weights[i] * x;
    problem.most = x > problem.most ? x : problem.most;
  }
  return problem;
}

// Zero if all values are above it.
FloatLanes least_of(const AffineValues& values) {
  FloatLanes least = values[0];
  for (const FloatLanes& x : values) least = x < least ? x : least;
  return least > FloatLanes{} ? FloatLanes{} : least;
}

IntLanes affine_code(FloatLanes value, FloatLanes least, FloatLanes inverse, int highest) {
  return clamped(nearest_whole(inverse * (value - least)), 0, highest);
}

// The sum of weighted squares of what the line misses.
FloatLanes error_of(const AffineProblem& problem, const AffineCodes& codes,
                    const AffineLine& line) {
  FloatLanes error{};
  for (size_t i = 0; i < kAffineCount; ++i) {
    const FloatLanes missed = line.scale * as_floats(codes[i]) + line.least - problem.values[i];
    error += problem.weights[i] * (missed * missed);
  }
  return error;
}

// Where nothing varies, the reciprocal is infinite: scale and codes are 0, and no trial is better.
AffineFit first_fit(const AffineProblem& problem) {
  AffineFit fit;
  fit.line.least = least_of(problem.values);
  const FloatLanes inverse = static_cast<float>(problem.highest) / (problem.most - fit.line.least);
  fit.line.scale = 1.0F / inverse;
  for (size_t i = 0; i < kAffineCount; ++i)
    fit.codes[i] = affine_code(problem.values[i], fit.line.least, inverse, problem.highest);
  fit.error = error_of(problem, fit.codes, fit.line);
  return fit;
}

// Through the values for given codes, and through zero if it would begin above zero.
AffineLine line_through(const AffineProblem& problem, const AffineSums& sums,
                        FloatLanes determinant) {
  AffineLine line{(problem.w * sums.wlx - problem.wx * sums.wl) / determinant,
                  (sums.wll * problem.wx - sums.wl * sums.wlx) / determinant};
  const IntLanes above = line.least > FloatLanes{};
  line.scale = above ? sums.wlx / sums.wll : line.scale;
  line.least = above ? FloatLanes{} : line.least;
  return line;
}

// AffineCodes that spread over the range from the best least value so far, and their line.
void try_spread(const AffineProblem& problem, float spread, AffineFit& best) {
  const FloatLanes inverse = spread / (problem.most - best.line.least);
  AffineCodes codes;
  AffineSums sums;
  for (size_t i = 0; i < kAffineCount; ++i) {
    codes[i] = affine_code(problem.values[i], best.line.least, inverse, problem.highest);
    const FloatLanes code = as_floats(codes[i]);
    const FloatLanes weighted = problem.weights[i] * code;
    sums.wl += weighted;
    sums.wll += weighted * code;
    sums.wlx += weighted * problem.values[i];
  }
  const FloatLanes determinant = problem.w * sums.wll - sums.wl * sums.wl;
  const AffineLine line = line_through(problem, sums, determinant);
  const FloatLanes error = error_of(problem, codes, line);
  const IntLanes better = (determinant > FloatLanes{}) & (error < best.error);
  if (!any_lane(better)) return;
  for (size_t i = 0; i < kAffineCount; ++i) best.codes[i] = better ? codes[i] : best.codes[i];
  best.error = better ? error : best.error;
  best.line.scale = better ? line.scale : best.line.scale;
  best.line.least = better ? line.least : best.line.least;
}

}  // namespace

AffineFits fit_affine(const float* source, const AffineTrials& trials, uint8_t* codes) {
  const AffineProblem problem = problem_of(source, trials.highest);
  AffineFit best = first_fit(problem);
  for (int trial = 0; trial <= trials.last; ++trial)
    try_spread(
        problem,
        trials.first + trials.step * static_cast<float>(trial) + static_cast<float>(trials.highest),
        best);
  put_lane_codes<kAffineCount>(best.codes, codes);
  return {lane_array(best.line.scale), lane_array(best.line.least)};
}

}  // namespace snug::formats
