// Tokens are independent until rows are placed, which is one pass in order over all choices that
// reads a few bytes of each. For the balance of experts, each task adds up its tokens, and then the
// tasks are added in order.
#include <algorithm>
#include <bitset>
#include <cmath>
#include <optional>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"
#include "base/error.h"
#include "program/kinds/expert/route.h"

namespace snug::backends::cpu {
namespace {

using program::Route;
using program::RouteGrad;

constexpr int64_t kTokensPerTask = 64;

float value_at(const Rows& x, int64_t row, int64_t column) {
  return cpu::value_at(x.at(row), x.element, column);
}

void set_value(const Rows& x, int64_t row, int64_t column, float value) {
  cpu::set_value(x.at(row), x.element, column, value);
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

// The expert with the largest logit among those not yet taken; the first one of equals. There is
// one for each choice, even with NaN logits.
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

// Says which of a task's tokens belong to segments.
class Counted {
 public:
  Counted(const Buffer& segments, int64_t begin, int64_t end) : begin_(begin) {
    const int32_t* const bounds = integers_of(segments);
    for (int64_t segment = 0; segment < segments.shape.rows(); ++segment)
      for (int64_t token = std::max<int64_t>(begin, bounds[2 * segment]);
           token < std::min<int64_t>(end, bounds[2 * segment + 1]); ++token)
        is_counted_[static_cast<size_t>(token - begin)] = true;
  }
  bool operator[](int64_t token) const { return is_counted_[static_cast<size_t>(token - begin_)]; }

 private:
  std::bitset<kTokensPerTask> is_counted_;
  int64_t begin_;
};

// The number of choices and the probability sum of an expert, over a task's tokens or over all.
struct Load {
  int32_t count;
  float sum;
};

void add_up(const Route& route, const Invocation& invocation, const Rows& logits, int64_t begin,
            int64_t end) {
  const Counted counted(invocation[Route::kSegments], begin, end);
  const int32_t* const ids = integers_of(invocation[Route::kIds]);
  Load* const loads = invocation.workspace.as<Load>() + begin / kTokensPerTask * logits.columns;
  std::fill_n(loads, logits.columns, Load{});
  for (int64_t row = begin; row < end; ++row) {
    if (!counted[row]) continue;
    const Probabilities probabilities(logits, row);
    for (int64_t expert = 0; expert < logits.columns; ++expert)
      loads[expert].sum += probabilities.of(expert);
    for (int64_t i = row * route.k; i < (row + 1) * route.k; ++i) ++loads[ids[i]].count;
  }
}

void add_tasks(const Invocation& invocation, const Rows& logits) {
  auto* const counts = invocation[Route::kCounts].as<int32_t>();
  auto* const sums = invocation[Route::kSums].as<float>();
  std::fill_n(counts, logits.columns, 0);
  std::fill_n(sums, logits.columns, 0.0F);
  const Load* load = invocation.workspace.as<const Load>();
  for (int64_t task = 0; task < ceil_div(logits.rows, kTokensPerTask); ++task)
    for (int64_t expert = 0; expert < logits.columns; ++expert, ++load) {
      counts[expert] += load->count;
      sums[expert] += load->sum;
    }
}

// While rows are placed, the end of each expert's range counts up.
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

int64_t workspace_bytes(const Route& route, const program::OperationView& view, const CpuContext&) {
  if (!route.balance) return 0;
  const program::Shape& logits = view[Route::kLogits].shape;
  return ceil_div(logits[0], kTokensPerTask) * logits[1] * int64_t{sizeof(Load)};
}

bool supports(const Route&, const program::OperationView& view, const CpuContext&) {
  return are_f32<Route>(view, {Route::kWeights, Route::kSums}) &&
         are_floats<Route>(view, {Route::kLogits});
}

bool supports(const RouteGrad&, const program::OperationView& view, const CpuContext&) {
  return are_f32<RouteGrad>(view, {RouteGrad::kDWeights, RouteGrad::kDSums}) &&
         are_floats<RouteGrad>(view, {RouteGrad::kLogits, RouteGrad::kDLogits});
}

void run(const Route& route, const Invocation& invocation, CpuContext&) {
  const Rows logits = rows_of(invocation[Route::kLogits]);
  auto* weights = invocation[Route::kWeights].as<float>();
  auto* ids = invocation[Route::kIds].as<int32_t>();
  parallel_ranges(logits.rows, kTokensPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      choose(route, logits, row, {weights + row * route.k, ids + row * route.k});
    if (route.balance) add_up(route, invocation, logits, begin, end);
  });
  if (route.balance) add_tasks(invocation, logits);
  place(ids, logits.rows * route.k, logits.columns, invocation[Route::kPlaces].as<int32_t>(),
        invocation[Route::kBounds].as<int32_t>());
}

// The contribution of the sums' gradient to a token's logits: p (dsums - sum(p dsums)).
class ThroughSums {
 public:
  // Contributes nothing if `dsums` is null.
  ThroughSums(const Probabilities& probabilities, const float* dsums, int64_t experts)
      : dsums_(dsums) {
    if (dsums == nullptr) return;
    for (int64_t expert = 0; expert < experts; ++expert)
      mean_ += probabilities.of(expert) * dsums[expert];
  }
  float of(int64_t expert, float likely) const {
    return dsums_ == nullptr ? 0.0F : likely * (dsums_[expert] - mean_);
  }

 private:
  const float* dsums_;
  float mean_ = 0;
};

// dlogits = p (dweights - sum(p dweights)), plus the contribution of the balance loss. p are the
// probabilities over all experts, or over only the chosen ones, then normalised to sum to one.
void run(const RouteGrad& grad, const Invocation& invocation, CpuContext&) {
  const Rows logits = rows_of(invocation[RouteGrad::kLogits]);
  const Rows dlogits = rows_of(invocation[RouteGrad::kDLogits]);
  const Buffer& given = invocation[RouteGrad::kDWeights];
  const auto* dweights = given.as<const float>();
  const int32_t* ids = integers_of(invocation[RouteGrad::kIds]);
  const int64_t k = given.shape.columns();
  const float* const dsums =
      grad.balance ? invocation[RouteGrad::kDSums].as<const float>() : nullptr;
  parallel_ranges(logits.rows, kTokensPerTask, [&](int64_t begin, int64_t end) {
    std::optional<Counted> counted;
    if (grad.balance) counted.emplace(invocation[RouteGrad::kSegments], begin, end);
    for (int64_t row = begin; row < end; ++row) {
      const Probabilities probabilities(logits, row);
      const ThroughSums balance(probabilities, counted && (*counted)[row] ? dsums : nullptr,
                                logits.columns);
      float sum = 0;
      float dot = 0;
      for (int64_t i = row * k; i < (row + 1) * k; ++i) {
        const float likely = probabilities.of(ids[i]);
        sum += likely;
        dot += likely * dweights[i];
      }
      if (!grad.normalize) sum = 1.0F;
      for (int64_t expert = 0; expert < logits.columns; ++expert) {
        const float likely = grad.normalize && !grad.balance ? 0.0F : probabilities.of(expert);
        const float of_weights = grad.normalize ? 0.0F : -likely * dot;
        set_value(dlogits, row, expert, of_weights + balance.of(expert, likely));
      }
      for (int64_t i = row * k; i < (row + 1) * k; ++i) {
        const float likely = probabilities.of(ids[i]);
        const float of_weights = likely / sum * (dweights[i] - dot / sum);
        set_value(dlogits, row, ids[i], of_weights + balance.of(ids[i], likely));
      }
    }
  });
}

}  // namespace

SNUG_CPU_KIND(Route, .supports = supports, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(RouteGrad, .supports = supports);

}  // namespace snug::backends::cpu
