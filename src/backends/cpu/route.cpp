// Tokens are independent until rows are placed; that is one pass over all choices in order, which
// takes a few bytes of each.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using program::Route;
using program::RouteGrad;

constexpr int64_t kTokensPerTask = 64;

float value_at(const Rows& x, int64_t row, int64_t column) {
  const std::byte* from = x.at(row, column);
  if (x.element == kF32) return *reinterpret_cast<const float*>(from);
  return base::to_float(*reinterpret_cast<const base::BFloat16*>(from));
}

void set_value(const Rows& x, int64_t row, int64_t column, float value) {
  std::byte* to = x.at(row, column);
  if (x.element == kF32)
    *reinterpret_cast<float*>(to) = value;
  else
    *reinterpret_cast<base::BFloat16*>(to) = base::to_bfloat16(value);
}

// The softmax of a token's logits, expert by expert.
class Probabilities {
 public:
  Probabilities(const Rows& logits, int64_t row) : logits_(logits), row_(row) {
    most_ = value_at(logits, row, 0);
    for (int64_t expert = 1; expert < logits.columns; ++expert)
      most_ = std::max(most_, value_at(logits, row, expert));
    float sum = 0;
    for (int64_t expert = 0; expert < logits.columns; ++expert) sum += exponential(expert);
    inverse_ = 1.0F / sum;
  }
  float of(int64_t expert) const { return exponential(expert) * inverse_; }

 private:
  float exponential(int64_t expert) const {
    return std::exp(value_at(logits_, row_, expert) - most_);
  }
  const Rows& logits_;
  int64_t row_;
  float most_ = 0;
  float inverse_ = 0;
};

// The largest logit of the experts that are not taken yet; of equal ones the first. There is one
// for each choice, whatever the logits are.
int32_t next_expert(const Rows& logits, int64_t row, const int32_t* taken, int64_t count) {
  int32_t best = -1;
  float most = 0;
  for (int32_t expert = 0; expert < logits.columns; ++expert) {
    const float value = value_at(logits, row, expert);
    if ((best >= 0 && !(value > most)) || std::find(taken, taken + count, expert) != taken + count)
      continue;
    best = expert;
    most = value;
  }
  return best;
}

struct Choice {
  float* weights;
  int32_t* ids;
};

void choose(const Route& route, const Rows& logits, int64_t row, const Choice& choice) {
  const Probabilities probabilities(logits, row);
  float sum = 0;
  for (int64_t i = 0; i < route.k; ++i) {
    choice.ids[i] = next_expert(logits, row, choice.ids, i);
    sum += choice.weights[i] = probabilities.of(choice.ids[i]);
  }
  if (!route.normalize) return;
  for (int64_t i = 0; i < route.k; ++i) choice.weights[i] /= sum;
}

// The end of each expert's rows counts up as they are placed.
void place(const int32_t* ids, int64_t rows, int64_t experts, int32_t* places, int32_t* bounds) {
  std::fill_n(bounds, 2 * experts, 0);
  for (int64_t i = 0; i < rows; ++i) ++bounds[2 * ids[i] + 1];
  int32_t begin = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int32_t count = bounds[2 * expert + 1];
    bounds[2 * expert] = bounds[2 * expert + 1] = begin;
    begin += count;
  }
  for (int64_t i = 0; i < rows; ++i) places[i] = bounds[2 * ids[i] + 1]++;
}

bool supports(const Route&, const program::OperationView& view, const CpuContext&) {
  return view[Route::kWeights].dtype == base::DType::f32 &&
         are_floats<Route>(view, {Route::kLogits});
}

bool supports(const RouteGrad&, const program::OperationView& view, const CpuContext&) {
  return view[RouteGrad::kDWeights].dtype == base::DType::f32 &&
         are_floats<RouteGrad>(view, {RouteGrad::kLogits, RouteGrad::kDLogits});
}

void run(const Route& route, const Invocation& invocation, CpuContext&) {
  const Rows logits = rows_of(invocation[Route::kLogits]);
  auto* weights = invocation[Route::kWeights].as<float>();
  auto* ids = invocation[Route::kIds].as<int32_t>();
  parallel_ranges(logits.rows, kTokensPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      choose(route, logits, row, {weights + row * route.k, ids + row * route.k});
  });
  place(ids, logits.rows * route.k, logits.columns, invocation[Route::kPlaces].as<int32_t>(),
        invocation[Route::kBounds].as<int32_t>());
}

// With the probabilities p of what counts (all, or those chosen, of which they are then shares),
// dlogits = p (dweights - sum(p dweights)).
void run(const RouteGrad& grad, const Invocation& invocation, CpuContext&) {
  const Rows logits = rows_of(invocation[RouteGrad::kLogits]);
  const Rows dlogits = rows_of(invocation[RouteGrad::kDLogits]);
  const Buffer& given = invocation[RouteGrad::kDWeights];
  const auto* dweights = given.as<const float>();
  const int32_t* ids = integers_of(invocation[RouteGrad::kIds]);
  const int64_t k = given.shape.columns();
  parallel_ranges(logits.rows, kTokensPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Probabilities probabilities(logits, row);
      float sum = 0;
      float dot = 0;
      for (int64_t i = row * k; i < (row + 1) * k; ++i) {
        const float likely = probabilities.of(ids[i]);
        sum += likely;
        dot += likely * dweights[i];
      }
      if (!grad.normalize) sum = 1.0F;
      for (int64_t expert = 0; expert < logits.columns; ++expert)
        set_value(dlogits, row, expert, grad.normalize ? 0.0F : -probabilities.of(expert) * dot);
      for (int64_t i = row * k; i < (row + 1) * k; ++i)
        set_value(dlogits, row, ids[i], probabilities.of(ids[i]) / sum * (dweights[i] - dot / sum));
    }
  });
}

}  // namespace

SNUG_CPU_KIND(Route, .supports = supports);
SNUG_CPU_KIND(RouteGrad, .supports = supports);

}  // namespace snug::backends::cpu
