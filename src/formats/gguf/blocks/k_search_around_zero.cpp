// fit_q6_k and fit_q3_k: each value weighs as much as its square. The scale for given codes is that
// of the weighted least squares, sum(w x l) / sum(w l l), with values x, codes l (counted from
// zero) and weights w; the error of the codes falls as sum(w x l)^2 / sum(w l l) rises. This file
// is compiled without fused products and sums, for the bytes of ggml.
#include "formats/gguf/blocks/k_search.h"

namespace snug::formats {
namespace {

constexpr int kZeroCount = 16;
using ZeroValues = LaneValues<kZeroCount>;
using ZeroCodes = LaneCodes<kZeroCount>;

constexpr int kQ6Zero = 32;
constexpr int kQ6Trials = 9;  // on each side of the first scale
constexpr int kQ3Zero = 4;
constexpr int kQ3Rounds = 5;

struct Extreme {
  FloatLanes value{};
  FloatLanes magnitude{};
  IntLanes negligible{};
};

// The value of largest magnitude, the first of several.
Extreme extreme_of(const ZeroValues& values) {
  Extreme extreme;
  for (const FloatLanes& x : values) {
    const FloatLanes magnitude = magnitudes(x);
    const IntLanes larger = magnitude > extreme.magnitude;
    extreme.magnitude = larger ? magnitude : extreme.magnitude;
    extreme.value = larger ? x : extreme.value;
  }
  extreme.negligible = extreme.magnitude < all_lanes(1e-15F);
  return extreme;
}

struct ZeroFit {
  ZeroCodes codes;  // from -zero to zero - 1
  FloatLanes wlx{};
  FloatLanes wll{};
};

ZeroFit fit_for(const ZeroValues& values, FloatLanes inverse, int zero) {
  ZeroFit fit;
  for (size_t i = 0; i < kZeroCount; ++i) {
    const FloatLanes x = values[i];
    fit.codes[i] = clamped(nearest_whole(inverse * x), -zero, zero - 1);
    const FloatLanes code = as_floats(fit.codes[i]);
    const FloatLanes weight = x * x;
    fit.wlx += weight * x * code;
    fit.wll += weight * code * code;
  }
  return fit;
}

// Tries another code for value i, the nearest for the scale that the other values have.
IntLanes move_code(const ZeroValues& values, size_t i, ZeroFit& fit) {
  const FloatLanes x = values[i];
  const FloatLanes weight = x * x;
  const FloatLanes code = as_floats(fit.codes[i]);
  FloatLanes wlx = fit.wlx - weight * x * code;
  FloatLanes wll = fit.wll - weight * code * code;
  const IntLanes has_scale = wlx > FloatLanes{};
  const IntLanes moved = clamped(nearest_whole(x * wll / wlx), -kQ3Zero, kQ3Zero - 1);
  const FloatLanes moved_code = as_floats(moved);
  wlx += weight * x * moved_code;
  wll += weight * moved_code * moved_code;
  const IntLanes better = has_scale & (moved != fit.codes[i]) & (wll > FloatLanes{}) &
                          (wlx * wlx * fit.wll > fit.wlx * fit.wlx * wll);
  fit.codes[i] = better ? moved : fit.codes[i];
  fit.wlx = better ? wlx : fit.wlx;
  fit.wll = better ? wll : fit.wll;
  return better;
}

// Codes from 0 on, all 0 in lanes that are negligible.
void put_codes_from_zero(ZeroCodes codes, int zero, IntLanes negligible, uint8_t* to) {
  for (IntLanes& code : codes) code = negligible ? IntLanes{} : code + zero;
  put_lane_codes<kZeroCount>(codes, to);
}

}  // namespace

ScaleFits fit_q6_k(const float* source, uint8_t* codes) {
  const ZeroValues values = lane_values<kZeroCount>(source);
  const Extreme extreme = extreme_of(values);
  ZeroFit best = fit_for(values, static_cast<float>(-kQ6Zero) / extreme.value, kQ6Zero);
  FloatLanes scale = best.wll != FloatLanes{} ? best.wlx / best.wll : FloatLanes{};
  FloatLanes gain = scale * best.wlx;
  for (int trial = -kQ6Trials; trial <= kQ6Trials; ++trial) {
    if (trial == 0) continue;
    const float spread = -(static_cast<float>(kQ6Zero) + 0.1F * static_cast<float>(trial));
    const ZeroFit fit = fit_for(values, spread / extreme.value, kQ6Zero);
    const IntLanes better = (fit.wll > FloatLanes{}) & (fit.wlx * fit.wlx > gain * fit.wll);
    if (!any_lane(better)) continue;
    for (size_t i = 0; i < kZeroCount; ++i) best.codes[i] = better ? fit.codes[i] : best.codes[i];
    scale = better ? fit.wlx / fit.wll : scale;
    gain = better ? scale * fit.wlx : gain;
  }
  scale = extreme.negligible ? FloatLanes{} : scale;
  put_codes_from_zero(best.codes, kQ6Zero, extreme.negligible, codes);
  return lane_array(scale);
}

ScaleFits fit_q3_k(const float* source, uint8_t* codes) {
  const ZeroValues values = lane_values<kZeroCount>(source);
  const Extreme extreme = extreme_of(values);
  ZeroFit fit = fit_for(values, static_cast<float>(-kQ3Zero) / extreme.value, kQ3Zero);
  for (int round = 0; round < kQ3Rounds; ++round) {
    IntLanes moved{};
    for (size_t i = 0; i < kZeroCount; ++i) moved |= move_code(values, i, fit);
    if (!any_lane(moved)) break;
  }
  FloatLanes scale = fit.wll > FloatLanes{} ? fit.wlx / fit.wll : FloatLanes{};
  scale = extreme.negligible ? FloatLanes{} : scale;
  put_codes_from_zero(fit.codes, kQ3Zero, extreme.negligible, codes);
  return lane_array(scale);
}

}  // namespace snug::formats
