#include "base/dynamic_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace snug::base {
namespace {

// torch.linspace(0.1, 1, points): counted from both ends to the middle, each point rounded once.
std::vector<float> boundaries(int points) {
  const float step = (1.0F - 0.1F) / static_cast<float>(points - 1);
  std::vector<float> values;
  values.reserve(static_cast<size_t>(points));
  for (int i = 0; i < points; ++i)
    values.push_back(i < points / 2 ? std::fma(step, static_cast<float>(i), 0.1F)
                                    : std::fma(-step, static_cast<float>(points - 1 - i), 1.0F));
  return values;
}

// Seven decades; each holds twice as many values as the one below it.
DynamicMap make_map(bool is_signed) {
  constexpr int kDecades = 7;
  std::vector<float> values{0.0F, 1.0F};
  for (int decade = 0; decade < kDecades; ++decade) {
    const auto scale = static_cast<float>(std::pow(10.0, decade - (kDecades - 1)));
    const std::vector<float> bounds = boundaries((is_signed ? 1 << decade : 2 << decade) + 1);
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      const float value = scale * ((bounds[i] + bounds[i + 1]) / 2.0F);
      values.push_back(value);
      if (is_signed) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  DynamicMap map{};
  std::copy_n(values.begin(), map.size(), map.begin());
  return map;
}

float midpoint(const DynamicMap& map, size_t lower) { return (map[lower] + map[lower + 1]) * 0.5F; }

// Whether x belongs above the gap between `lower` and its upper neighbour.
bool above(const DynamicMap& map, size_t lower, float x) {
  return lower % 2 == 0 ? x > midpoint(map, lower) : x >= midpoint(map, lower);
}

}  // namespace

const DynamicMap& signed_dynamic_map() {
  static const DynamicMap map = make_map(true);
  return map;
}

const DynamicMap& unsigned_dynamic_map() {
  static const DynamicMap map = make_map(false);
  return map;
}

uint8_t encode_dynamic(const DynamicMap& map, float x) {
  size_t code = 0;
  for (size_t step = 128; step > 0; step /= 2)
    if (above(map, code + step - 1, x)) code += step;
  return static_cast<uint8_t>(code);
}

uint8_t encode_dynamic_lattice(const DynamicMap& map, float x) {
  if (std::isnan(x)) return 0;
  constexpr float kLast = 65535.0F;
  const float unit = (std::clamp(x, -1.0F, 1.0F) + 1.0F) * 0.5F;
  const float point = std::trunc(unit * kLast + 0.5F);
  return encode_dynamic(map, -1.0F + 2.0F * (point / kLast));
}

std::array<float, 255> dynamic_thresholds(const DynamicMap& map) {
  std::array<float, 255> thresholds{};
  for (size_t i = 0; i < thresholds.size(); ++i) {
    const float middle = midpoint(map, i);
    thresholds[i] = above(map, i, middle)
                        ? middle
                        : std::nextafter(middle, std::numeric_limits<float>::infinity());
  }
  return thresholds;
}

}  // namespace snug::base
