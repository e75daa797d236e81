#include "plan/time/rate_interpolation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace snug::plan {
namespace {

constexpr size_t kMaxDimensions = 4;
constexpr size_t kNearestPerDimension = 5;
// Distances count doublings. Samples closer than this are the same shape measured again.
constexpr double kSameShape = 1e-6;
// Pulls slopes to zero, in units of the samples' weight: only directions in which samples do not
// differ feel it.
constexpr double kFlattening = 0.02;

using Vector = std::array<double, kMaxDimensions + 1>;
using Matrix = std::array<Vector, kMaxDimensions + 1>;

// Gaussian elimination with pivots; the matrix is symmetric and positive.
Vector solve(Matrix a, Vector b, size_t size) {
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = column + 1; row < size; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (size_t i = column; i < size; ++i) a[row][i] -= factor * a[column][i];
      b[row] -= factor * b[column];
    }
  }
  Vector x{};
  for (size_t row = size; row-- > 0;) {
    double sum = b[row];
    for (size_t i = row + 1; i < size; ++i) sum -= a[row][i] * x[i];
    x[row] = sum / a[row][row];
  }
  return x;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

std::vector<double> logarithms(const std::vector<double>& shape) {
  std::vector<double> result;
  result.reserve(shape.size());
  for (const double size : shape) result.push_back(std::log2(size));
  return result;
}

const RatePoint* find_same_shape(const std::vector<RatePoint>& points,
                                 const std::vector<double>& at) {
  const auto same = std::ranges::find_if(
      points, [&](const RatePoint& point) { return distance(point.position, at) < kSameShape; });
  return same == points.end() ? nullptr : &*same;
}

InterpolatedRate interpolate(const std::vector<RatePoint>& points, const std::vector<double>& at) {
  std::vector<std::pair<double, const RatePoint*>> near;
  near.reserve(points.size());
  for (const RatePoint& point : points) near.emplace_back(distance(point.position, at), &point);
  const size_t count = std::min(near.size(), kNearestPerDimension * at.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<long>(count), near.end());
  near.resize(count);

  const size_t size = at.size() + 1;
  Matrix normal{};
  Vector right{};
  double total = 0;
  double lowest = std::numeric_limits<double>::max();
  double highest = std::numeric_limits<double>::lowest();
  for (const auto& [away, point] : near) {
    const double weight = 1.0 / (away * away + 0.01);
    Vector row{1.0};
    for (size_t i = 1; i < size; ++i) row[i] = point->position[i - 1] - at[i - 1];
    for (size_t i = 0; i < size; ++i) {
      right[i] += weight * row[i] * point->log_rate;
      for (size_t j = 0; j < size; ++j) normal[i][j] += weight * row[i] * row[j];
    }
    total += weight;
    lowest = std::min(lowest, point->log_rate);
    highest = std::max(highest, point->log_rate);
  }
  for (size_t i = 1; i < size; ++i) normal[i][i] += kFlattening * total;
  return {std::clamp(solve(normal, right, size)[0], lowest, highest), near.front().first};
}

}  // namespace snug::plan
