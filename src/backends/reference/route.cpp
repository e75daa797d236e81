#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/expert/route.h"

namespace snug::backends::reference {
namespace {

using program::Route;
using program::RouteGrad;

// The scores of a token's experts.
template <typename T>
std::vector<T> scores(const Floats<T>& logits, int64_t row, bool sigmoid) {
  std::vector<T> result;
  for (int64_t expert = 0; expert < logits.columns(); ++expert)
    result.push_back(logits.at(row, expert));
  if (sigmoid) {
    for (T& value : result) value = 1 / (1 + std::exp(-value));
    return result;
  }
  const T most = *std::max_element(result.begin(), result.end());
  T sum = 0;
  for (T& value : result) sum += value = std::exp(value - most);
  for (T& value : result) value /= sum;
  return result;
}

// Numbers from 0, sorted by their values, the largest first; of equal ones the lower number comes
// first.
template <typename T>
std::vector<int32_t> ranked(const std::vector<T>& values) {
  std::vector<int32_t> numbers(values.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::ranges::stable_sort(numbers, [&](int32_t a, int32_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  return numbers;
}

// The experts by what they are chosen by, the first k of which a token gets.
template <typename T>
std::vector<int32_t> by_choice(const Route& route, const Invocation& invocation, int64_t row) {
  const Floats<T> logits(invocation[Route::kLogits]);
  std::vector<T> values;
  for (int64_t expert = 0; expert < logits.columns(); ++expert)
    values.push_back(logits.at(row, expert));
  if (route.chooses_by_score()) values = scores(logits, row, route.sigmoid);
  if (route.corrected)
    for (size_t expert = 0; expert < values.size(); ++expert)
      values[expert] += Floats<T>(invocation[Route::kCorrection])[static_cast<int64_t>(expert)];
  if (route.groups == 1) return ranked(values);
  const size_t width = values.size() / static_cast<size_t>(route.groups);
  std::vector<T> sums;
  for (size_t begin = 0; begin < values.size(); begin += width) {
    std::vector<T> group(values.begin() + static_cast<std::ptrdiff_t>(begin),
                         values.begin() + static_cast<std::ptrdiff_t>(begin + width));
    std::ranges::sort(group, std::greater{});
    sums.push_back(group[0] + group[1]);
  }
  const std::vector<int32_t> groups = ranked(sums);
  for (size_t i = static_cast<size_t>(route.chosen_groups); i < groups.size(); ++i)
    std::fill_n(values.begin() +
                    static_cast<std::ptrdiff_t>(groups[i]) * static_cast<std::ptrdiff_t>(width),
                width, -std::numeric_limits<T>::infinity());
  return ranked(values);
}

// Whether each token belongs to a segment.
std::vector<bool> in_segments(const Buffer& segments, int64_t tokens) {
  std::vector<bool> result(static_cast<size_t>(tokens), false);
  const Integers bounds(segments);
  for (int64_t segment = 0; segment < segments.shape.rows(); ++segment)
    for (int64_t token = bounds[2 * segment]; token < bounds[2 * segment + 1]; ++token)
      result[static_cast<size_t>(token)] = true;
  return result;
}

// Adds up the layer's loads for the balance loss, after all tokens have chosen.
template <typename T>
void add_up(const Route& route, const Invocation& invocation) {
  const Floats<T> logits(invocation[Route::kLogits]);
  const Integers ids(invocation[Route::kIds]);
  auto* counts = invocation[Route::kCounts].as<int32_t>();
  std::vector<T> sums(static_cast<size_t>(logits.columns()), 0);
  std::fill_n(counts, logits.columns(), 0);
  const std::vector<bool> counted = in_segments(invocation[Route::kSegments], logits.rows());
  for (int64_t row = 0; row < logits.rows(); ++row) {
    if (!counted[static_cast<size_t>(row)]) continue;
    const std::vector<T> likely = scores(logits, row, false);
    for (size_t expert = 0; expert < likely.size(); ++expert) sums[expert] += likely[expert];
    for (int64_t i = 0; i < route.k; ++i) ++counts[ids[row * route.k + i]];
  }
  for (int64_t expert = 0; expert < logits.columns(); ++expert)
    Floats<T>(invocation[Route::kSums]).set(expert, sums[static_cast<size_t>(expert)]);
}

template <typename T>
void run(const Route& route, const Invocation& invocation) {
  const Floats<T> logits(invocation[Route::kLogits]);
  const Floats<T> weights(invocation[Route::kWeights]);
  auto* ids = invocation[Route::kIds].as<int32_t>();
  auto* places = invocation[Route::kPlaces].as<int32_t>();
  auto* bounds = invocation[Route::kBounds].as<int32_t>();
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const std::vector<T> likely = scores(logits, row, route.sigmoid);
    const std::vector<int32_t> experts = by_choice<T>(route, invocation, row);
    T sum = route.sigmoid ? static_cast<T>(program::kRouteEpsilon) : 0;
    for (int64_t i = 0; i < route.k; ++i)
      sum += likely[static_cast<size_t>(experts[static_cast<size_t>(i)])];
    for (int64_t i = 0; i < route.k; ++i) {
      const int32_t expert = experts[static_cast<size_t>(i)];
      ids[row * route.k + i] = expert;
      const T weight = likely[static_cast<size_t>(expert)];
      weights.set(row, i, (route.normalize ? weight / sum : weight) * static_cast<T>(route.scale));
    }
  }
  int32_t place = 0;
  for (int32_t expert = 0; expert < logits.columns(); ++expert) {
    bounds[2 * expert] = place;
    for (int64_t i = 0; i < logits.rows() * route.k; ++i)
      if (ids[i] == expert) places[i] = place++;
    bounds[2 * expert + 1] = place;
  }
  if (route.balance) add_up<T>(route, invocation);
}

// The contribution of the sums' gradient to a token's logits.
template <typename T>
std::vector<T> through_sums(const std::vector<T>& likely, const Floats<T>& dsums) {
  T mean = 0;
  for (size_t expert = 0; expert < likely.size(); ++expert)
    mean += likely[expert] * dsums[static_cast<int64_t>(expert)];
  std::vector<T> result;
  for (size_t expert = 0; expert < likely.size(); ++expert)
    result.push_back(likely[expert] * (dsums[static_cast<int64_t>(expert)] - mean));
  return result;
}

template <typename T>
void run(const RouteGrad& grad, const Invocation& invocation) {
  const Floats<T> dweights(invocation[RouteGrad::kDWeights]);
  const Floats<T> logits(invocation[RouteGrad::kLogits]);
  const Integers ids(invocation[RouteGrad::kIds]);
  const Floats<T> dlogits(invocation[RouteGrad::kDLogits]);
  const int64_t k = dweights.columns();
  std::vector<bool> counted(static_cast<size_t>(logits.rows()), false);
  if (grad.balance) counted = in_segments(invocation[RouteGrad::kSegments], logits.rows());
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const std::vector<T> likely = scores(logits, row, grad.sigmoid);
    T sum = 0;  // sum of the scores that count
    T dot = 0;  // dot product of these with their gradients
    std::vector<T> gradient(likely.size(), 0);
    std::vector<bool> counts(likely.size(), !grad.normalize && !grad.sigmoid);
    for (int64_t i = 0; i < k; ++i) {
      const auto expert = static_cast<size_t>(ids[row * k + i]);
      gradient[expert] = dweights.at(row, i) * static_cast<T>(grad.scale);
      counts[expert] = true;
      dot += likely[expert] * gradient[expert];
      sum += likely[expert];
    }
    if (!grad.normalize) sum = 1;
    if (!grad.normalize && grad.sigmoid) dot = 0;  // such weights do not depend on one another
    std::vector<T> of_balance(likely.size(), 0);
    if (counted[static_cast<size_t>(row)])
      of_balance = through_sums(likely, Floats<T>(invocation[RouteGrad::kDSums]));
    for (size_t expert = 0; expert < likely.size(); ++expert) {
      T of_weights = counts[expert] ? likely[expert] / sum * (gradient[expert] - dot / sum) : T{0};
      if (grad.sigmoid) of_weights *= 1 - likely[expert];
      dlogits.set(row, static_cast<int64_t>(expert), of_weights + of_balance[expert]);
    }
  }
}

}  // namespace

SNUG_REFERENCE_KIND(Route);
SNUG_REFERENCE_KIND(RouteGrad);

}  // namespace snug::backends::reference
