// Tokens are independent until rows are placed, which is one pass in order over all choices that
// reads a few bytes of each. For the balance of experts, each task adds up its tokens, and then the
// tasks are added in order.
#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <limits>
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

// The scores of a token's experts, expert by expert: the softmax of its logits, or their sigmoids.
class Scores {
 public:
  Scores(const Rows& logits, int64_t row, bool sigmoid)
      : logits_(logits), row_(row), sigmoid_(sigmoid) {
    if (sigmoid) return;
    most_ = value_at(logits, row, 0);
    for (int64_t expert = 1; expert < logits.columns; ++expert)
      most_ = std::max(most_, value_at(logits, row, expert));
    float sum = 0;
    for (int64_t expert = 0; expert < logits.columns; ++expert) sum += exponential(expert);
    inverse_ = 1.0F / sum;
  }
  float of(int64_t expert) const {
    if (sigmoid_) return 1.0F / (1.0F + std::exp(-value_at(logits_, row_, expert)));
    return exponential(expert) * inverse_;
  }

 private:
  float exponential(int64_t expert) const {
    return std::exp(value_at(logits_, row_, expert) - most_);
  }
  const Rows& logits_;
  int64_t row_;
  bool sigmoid_;
  float most_ = 0;
  float inverse_ = 0;
};

// The expert with the largest value among those not yet taken; the first one of equals. There is
// one for each choice, even with NaN values.
int32_t next_expert(int64_t experts, const int32_t* taken, int64_t count, const auto& value_of) {
  int32_t best = -1;
  float most = 0;
  for (int32_t expert = 0; expert < experts; ++expert) {
    const float value = value_of(expert);
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

// The sum of the two largest of a group's values.
float best_two(const float* values, int64_t count) {
  float first = std::max(values[0], values[1]);
  float second = std::min(values[0], values[1]);
  for (int64_t i = 2; i < count; ++i) {
    second = std::max(second, std::min(first, values[i]));
    first = std::max(first, values[i]);
  }
  return first + second;
}

// Excludes the experts of all groups but the best ones.
void keep_groups(const Route& route, float* values, int64_t experts) {
  if (route.groups == 1) return;
  const int64_t width = experts / route.groups;
  std::array<int32_t, 64> taken{};  // as many groups as the kind allows
  for (int64_t i = 0; i < route.chosen_groups; ++i)
    taken[static_cast<size_t>(i)] = next_expert(route.groups, taken.data(), i, [&](int64_t group) {
      return best_two(values + group * width, width);
    });
  const auto end = taken.begin() + route.chosen_groups;
  for (int64_t group = 0; group < route.groups; ++group)
    if (std::find(taken.begin(), end, group) == end)
      std::fill_n(values + group * width, width, -std::numeric_limits<float>::infinity());
}

// What the experts of a token are chosen by, where that is not their logits.
void choice_values(const Route& route, const Scores& scores, int64_t experts,
                   const float* correction, float* values) {
  for (int64_t expert = 0; expert < experts; ++expert)
    values[expert] = scores.of(expert) + (correction == nullptr ? 0.0F : correction[expert]);
  keep_groups(route, values, experts);
}

// `values`: scratch for a value of each expert.
void choose(const Route& route, const Rows& logits, int64_t row, const Choice& choice,
            const float* correction, float* values) {
  const Scores scores(logits, row, route.sigmoid);
  if (route.chooses_by_score()) choice_values(route, scores, logits.columns, correction, values);
  const auto value_of = [&](int64_t expert) {
    return route.chooses_by_score() ? values[expert] : value_at(logits, row, expert);
  };
  float sum = route.sigmoid ? static_cast<float>(program::kRouteEpsilon) : 0.0F;
  for (int64_t i = 0; i < route.k; ++i) {
    choice.ids[i] = next_expert(logits.columns, choice.ids, i, value_of);
    sum += choice.weights[i] = scores.of(choice.ids[i]);
  }
  for (int64_t i = 0; i < route.k; ++i)
    choice.weights[i] =
        (route.normalize ? choice.weights[i] / sum : choice.weights[i]) * route.scale;
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
    const Scores scores(logits, row, false);
    for (int64_t expert = 0; expert < logits.columns; ++expert)
      loads[expert].sum += scores.of(expert);
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

// The loads of each task, and then the values of each task.
int64_t load_bytes(const Route& route, int64_t tokens, int64_t experts) {
  if (!route.balance) return 0;
  return ceil_div(tokens, kTokensPerTask) * experts * int64_t{sizeof(Load)};
}

int64_t workspace_bytes(const Route& route, const program::OperationView& view, const CpuContext&) {
  const program::Shape& logits = view[Route::kLogits].shape;
  const int64_t values =
      route.chooses_by_score() ? ceil_div(logits[0], kTokensPerTask) * logits[1] : 0;
  return load_bytes(route, logits[0], logits[1]) + values * int64_t{sizeof(float)};
}

bool supports(const Route&, const program::OperationView& view, const CpuContext&) {
  return are_f32<Route>(view, {Route::kWeights, Route::kSums, Route::kCorrection}) &&
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
  const float* const correction =
      route.corrected ? invocation[Route::kCorrection].as<const float>() : nullptr;
  auto* const all_values = reinterpret_cast<float*>(invocation.workspace.data +
                                                    load_bytes(route, logits.rows, logits.columns));
  parallel_ranges(logits.rows, kTokensPerTask, [&](int64_t begin, int64_t end) {
    float* const values = all_values + begin / kTokensPerTask * logits.columns;
    for (int64_t row = begin; row < end; ++row)
      choose(route, logits, row, {weights + row * route.k, ids + row * route.k}, correction,
             values);
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
  ThroughSums(const Scores& scores, const float* dsums, int64_t experts) : dsums_(dsums) {
    if (dsums == nullptr) return;
    for (int64_t expert = 0; expert < experts; ++expert) mean_ += scores.of(expert) * dsums[expert];
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
// Sigmoids have a factor 1 - p more, and depend on one another only where they are normalised.
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
      const Scores scores(logits, row, grad.sigmoid);
      const ThroughSums balance(scores, counted && (*counted)[row] ? dsums : nullptr,
                                logits.columns);
      float sum = 0;
      float dot = 0;
      for (int64_t i = row * k; i < (row + 1) * k; ++i) {
        const float likely = scores.of(ids[i]);
        sum += likely;
        dot += likely * dweights[i] * grad.scale;
      }
      const bool depends_on_all = !grad.normalize && !grad.sigmoid;
      if (!grad.normalize) sum = 1.0F;
      if (!grad.normalize && grad.sigmoid) dot = 0.0F;
      for (int64_t expert = 0; expert < logits.columns; ++expert) {
        const float likely = depends_on_all || grad.balance ? scores.of(expert) : 0.0F;
        const float of_weights = depends_on_all ? -likely * dot : 0.0F;
        set_value(dlogits, row, expert, of_weights + balance.of(expert, likely));
      }
      for (int64_t i = row * k; i < (row + 1) * k; ++i) {
        const float likely = scores.of(ids[i]);
        float of_weights = likely / sum * (dweights[i] * grad.scale - dot / sum);
        if (grad.sigmoid) of_weights *= 1.0F - likely;
        set_value(dlogits, row, ids[i], of_weights + balance.of(ids[i], likely));
      }
    }
  });
}

}  // namespace

SNUG_CPU_KIND(Route, .supports = supports, .workspace_bytes = workspace_bytes);
SNUG_CPU_KIND(RouteGrad, .supports = supports);

}  // namespace snug::backends::cpu
