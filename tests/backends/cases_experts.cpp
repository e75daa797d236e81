// Mixtures of experts: routing, rows on their way to experts and back, and products by expert.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "operation_case.h"
#include "program/kinds/expert/balance_loss.h"
#include "program/kinds/expert/expert_bias.h"
#include "program/kinds/expert/expert_rows.h"
#include "program/kinds/expert/route.h"
#include "program/kinds/product/grouped_matmul.h"
#include "stored_weight_case.h"

namespace snug::backends::test {
namespace {

using program::Shape;
using program::TensorId;

struct Routing {
  int64_t tokens, experts, k;
  bool ties = false;     // of logits, many of which are equal
  bool balance = false;  // what the layer gives to the loss of all is added up
};

constexpr Routing kRoutings[]{{1, 1, 1},
                              {3, 2, 2},
                              {9, 4, 1},
                              {17, 5, 2},
                              {65, 33, 8},
                              {33, 8, 8},
                              {300, 24, 3, true},
                              {700, 128, 8, true},
                              {5, 3, 1, false, true},
                              {9, 4, 1, false, true},
                              {17, 5, 2, false, true},
                              {65, 33, 8, false, true},
                              {300, 24, 3, true, true},
                              {700, 128, 8, true, true}};

// Scores of a token that are further apart than the steps of finite differences, within which two
// experts would change places.
Values logits_apart(CaseList& list, int64_t tokens, int64_t experts) {
  constexpr double kApart = 1e-3;
  Values logits = normal(list.random, tokens * experts, 0.0, 2.0);
  for (auto row = logits.begin(); row != logits.end(); row += experts) {
    std::vector<double*> ascending;
    ascending.reserve(static_cast<size_t>(experts));
    for (double& logit : std::span(&*row, static_cast<size_t>(experts)))
      ascending.push_back(&logit);
    std::ranges::sort(ascending, {}, [](const double* logit) { return *logit; });
    for (size_t i = 1; i < ascending.size(); ++i)
      *ascending[i] = std::max(*ascending[i], *ascending[i - 1] + kApart);
  }
  return logits;
}

// Segments with gaps between them, at both ends too where there is room; some are empty.
Values segments_of(CaseList& list, int64_t tokens) {
  Values bounds;
  for (int64_t begin = 0; begin < tokens;) {
    std::uniform_int_distribution<int64_t> length(0, std::max<int64_t>(1, tokens / 3));
    begin = std::min(tokens, begin + length(list.random) / 4);
    const int64_t end = std::min(tokens, begin + length(list.random));
    bounds.insert(bounds.end(), {static_cast<double>(begin), static_cast<double>(end)});
    if (end == begin) bounds.insert(bounds.end(), {0, 0});
    begin = std::max(end, begin + 1);
  }
  return bounds;
}

void add_route(CaseList& list, const std::string& name, const Routing& routing, bool normalize,
               const Values& logits, const Values& segments) {
  const auto& [tokens, experts, k, ties, balance] = routing;
  const Shape chosen{tokens, k};
  CaseBuilder builder = list.builder();
  const auto integers = [&](const Shape& shape) {
    return builder.output(shape, program::DType::i32);
  };
  std::vector<TensorId> reads{builder.input({tokens, experts}, list.types.activation, logits)};
  std::vector<TensorId> writes{builder.output_measure(chosen), integers(chosen), integers(chosen),
                               integers({experts, 2})};
  if (balance) {
    reads.push_back(builder.index({static_cast<int64_t>(segments.size()) / 2, 2}, segments));
    writes.push_back(integers({experts}));
    writes.push_back(builder.output_measure({experts}));
  }
  list.add(builder.finish(name, program::Route{k, normalize, balance}, reads, writes));
}

void add_routes(CaseList& list) {
  for (const Routing& routing : kRoutings)
    for (const bool normalize : {false, true}) {
      const auto& [tokens, experts, k, ties, balance] = routing;
      // One weight that is divided by itself has no gradient but rounding.
      if (normalize && k == 1 && experts > 1) continue;
      const std::string name =
          fmt::format("{} tokens, {} of {} experts{}{}{}", tokens, k, experts, ties ? " ties" : "",
                      normalize ? " normalize" : "", balance ? " balance" : "");
      const Shape shape{tokens, experts};
      const Shape chosen{tokens, k};
      Values logits = logits_apart(list, tokens, experts);
      if (ties)
        for (double& logit : logits) logit = std::round(logit);
      const Values segments = balance ? segments_of(list, tokens) : Values();
      add_route(list, name, routing, normalize, logits, segments);
      CaseBuilder builder = list.builder();
      Values ids;
      for (int64_t token = 0; token < tokens; ++token) {
        std::vector<int64_t> all(static_cast<size_t>(experts));
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.end(), list.random);
        ids.insert(ids.end(), all.begin(), all.begin() + k);
      }
      std::vector<TensorId> reads{builder.measure(chosen, normal(list.random, tokens * k)),
                                  builder.input(shape, list.types.activation, logits),
                                  builder.index(chosen, ids)};
      if (balance) {
        reads.push_back(builder.measure({experts}, normal(list.random, experts)));
        reads.push_back(builder.index({static_cast<int64_t>(segments.size()) / 2, 2}, segments));
      }
      list.add(builder.finish(name, program::RouteGrad{normalize, balance}, reads,
                              {builder.output_activation(shape)}));
    }
}

// Routers whose experts are chosen by their scores.
struct ScoredRouting {
  int64_t tokens;
  program::Route route;
  int64_t experts;
};

const ScoredRouting kScoredRoutings[]{
    {17, {.k = 1, .normalize = false, .sigmoid = true}, 1},
    {9, {.k = 2, .sigmoid = true, .scale = 1.5F}, 5},
    {65, {.k = 3, .normalize = false, .corrected = true}, 33},
    {130,
     {.k = 4, .sigmoid = true, .corrected = true, .groups = 8, .chosen_groups = 3, .scale = 2.5F},
     40},
    {33, {.k = 5, .normalize = false, .sigmoid = true, .groups = 3, .chosen_groups = 2}, 9}};

void add_scored_route(CaseList& list, const ScoredRouting& routing) {
  const auto& [tokens, route, experts] = routing;
  const Shape shape{tokens, experts};
  const Shape chosen{tokens, route.k};
  const std::string name =
      fmt::format("{} tokens, {} of {} experts{}, {} of {} groups", tokens, route.k, experts,
                  route.sigmoid ? " by sigmoids" : "", route.chosen_groups, route.groups);
  const Values logits = logits_apart(list, tokens, experts);
  CaseBuilder builder = list.builder();
  std::vector<TensorId> reads{builder.input(shape, list.types.activation, logits)};
  if (route.corrected)
    reads.push_back(builder.measure({experts}, normal(list.random, experts, 0.0, 0.5)));
  const auto integers = [&](const Shape& of) { return builder.output(of, program::DType::i32); };
  list.add(builder.finish(name, route, reads,
                          {builder.output_measure(chosen), integers(chosen), integers(chosen),
                           integers({experts, 2})}));
  CaseBuilder of_grad = list.builder();
  Values ids;
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t i = 0; i < route.k; ++i) ids.push_back(static_cast<double>((token + i) % experts));
  const std::vector<TensorId> given{of_grad.measure(chosen, normal(list.random, tokens * route.k)),
                                    of_grad.input(shape, list.types.activation, logits),
                                    of_grad.index(chosen, ids)};
  list.add(of_grad.finish(
      name,
      program::RouteGrad{
          .normalize = route.normalize, .sigmoid = route.sigmoid, .scale = route.scale},
      given, {of_grad.output_activation(shape)}));
}

struct RowSize {
  int64_t tokens, k, width;
};

constexpr RowSize kRowSizes[]{{1, 1, 3},    {3, 2, 17},    {17, 8, 65},  {65, 2, 16},
                              {129, 3, 64}, {33, 2, 1000}, {2, 4, 2056}, {200, 3, 24}};

Values permutation(CaseList& list, int64_t count) {
  Values places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), 0.0);
  std::shuffle(places.begin(), places.end(), list.random);
  return places;
}

void add_rows(CaseList& list, const RowSize& size, bool views) {
  const auto& [tokens, k, width] = size;
  const std::string name = fmt::format("{} tokens, {} experts of {}", tokens, k, width);
  const Shape of_tokens{tokens, width};
  const Shape of_experts{tokens * k, width};
  const Shape chosen{tokens, k};
  const auto begin = [&] {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views(8, 16);
    return builder;
  };
  const auto places_of = [&](CaseBuilder& builder) {
    return builder.index(chosen, permutation(list, tokens * k));
  };
  const auto weights_of = [&](CaseBuilder& builder) {
    return builder.measure(chosen, normal(list.random, tokens * k));
  };
  {
    CaseBuilder builder = begin();
    const TensorId x = builder.activation(of_tokens);
    const TensorId places = places_of(builder);
    list.add(builder.finish(name, program::Permute{}, {x, places},
                            {builder.output_activation(of_experts)}));
  }
  {
    CaseBuilder builder = begin();
    const TensorId x = builder.activation(of_experts);
    const TensorId places = places_of(builder);
    list.add(builder.finish(name, program::Combine{}, {x, places},
                            {builder.output_activation(of_tokens)}));
  }
  {
    CaseBuilder builder = begin();
    const TensorId x = builder.activation(of_experts);
    const TensorId weights = weights_of(builder);
    const TensorId places = places_of(builder);
    list.add(builder.finish(name, program::ScaleRows{}, {x, weights, places},
                            {builder.output_activation(of_experts)}));
  }
  CaseBuilder builder = begin();
  const TensorId dy = builder.activation(of_experts);
  const TensorId x = builder.activation(of_experts);
  const TensorId weights = weights_of(builder);
  const TensorId places = places_of(builder);
  const TensorId dx = builder.output_activation(of_experts);
  list.add(builder.finish(name, program::ScaleRowsGrad{}, {dy, x, weights, places},
                          {dx, builder.output_measure(chosen)}));
}

// How rows are shared out among experts.
enum class Share { random, one_has_all, last_has_none };
constexpr std::string_view kShareNames[]{"", ", one has all", ", the last has none"};

// [begin, end) of each expert.
Values bounds_of(CaseList& list, int64_t rows, int64_t experts, Share share) {
  std::vector<int64_t> counts(static_cast<size_t>(experts), 0);
  const int64_t last = share == Share::last_has_none && experts > 1 ? experts - 2 : experts - 1;
  for (int64_t row = 0; row < rows; ++row) {
    std::uniform_int_distribution<int64_t> any(0, last);
    ++counts[static_cast<size_t>(share == Share::one_has_all ? experts / 2 : any(list.random))];
  }
  Values bounds;
  double begin = 0;
  for (const int64_t count : counts) {
    bounds.push_back(begin);
    begin += static_cast<double>(count);
    bounds.push_back(begin);
  }
  return bounds;
}

struct GroupedSize {
  int64_t rows, experts, k, n;
};

constexpr GroupedSize kGroupedSizes[]{
    {1, 1, 1, 3},     {2, 4, 8, 16},     {17, 3, 5, 33},  {65, 7, 64, 24},   {130, 2, 40, 136},
    {300, 5, 72, 32}, {40, 16, 16, 257}, {600, 2, 24, 8}, {64, 4, 128, 128}, {1100, 2, 32, 40}};

void add_products(CaseList& list, const GroupedSize& size, Share share, bool views) {
  const auto& [rows, experts, k, n] = size;
  // Few sums could cancel by chance, which is no error of the kernel: keep them positive.
  const double mean = rows * n < 64 ? 2.0 : 0.0;
  const double deviation = mean > 0 ? 0.25 : 1.0;
  const std::string name = fmt::format("{} rows of {} experts ({} x {}){}", rows, experts, k, n,
                                       kShareNames[static_cast<size_t>(share)]);
  const auto begin = [&] {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views(8, 8);
    return builder;
  };
  for (const bool transpose_b : {false, true}) {
    CaseBuilder builder = begin();
    const TensorId a = builder.activation({rows, k}, mean, deviation);
    const TensorId b =
        builder.weight(transpose_b ? Shape{experts, n, k} : Shape{experts, k, n}, mean, deviation);
    const TensorId bounds = builder.index({experts, 2}, bounds_of(list, rows, experts, share));
    list.add(builder.finish(name + (transpose_b ? " transposed" : ""),
                            program::GroupedMatmul{.transpose_b = transpose_b}, {a, b, bounds},
                            {builder.output_activation({rows, n})}));
  }
  for (const bool accumulate : {false, true}) {
    CaseBuilder builder = begin();
    const TensorId a = builder.activation({rows, k}, mean, deviation);
    const TensorId b = builder.activation({rows, n}, mean, deviation);
    const TensorId bounds = builder.index({experts, 2}, bounds_of(list, rows, experts, share));
    const Shape shape{experts, k, n};
    if (accumulate)
      list.add(builder.finish(name + " accumulate", program::GroupedMatmulGrad{.accumulate = true},
                              {a, b, bounds}, {}, {builder.gradient(shape, mean, deviation)}));
    else
      list.add(builder.finish(name, program::GroupedMatmulGrad{}, {a, b, bounds},
                              {builder.output_gradient(shape)}));
  }
}

// Matrices of whole blocks of 64. Of the last two, more experts than are dequantised at a time.
constexpr GroupedSize kStoredSizes[]{{2, 4, 8, 16},     {17, 3, 5, 64},   {65, 7, 64, 24},
                                     {130, 2, 40, 136}, {300, 5, 72, 32}, {64, 4, 128, 128},
                                     {40, 37, 16, 64},  {600, 19, 64, 3}};

// Products by matrices that are stored as NF4.
void add_stored_products(CaseList& list, const GroupedSize& size, Share share) {
  const auto& [rows, experts, k, n] = size;
  for (const bool nested : {false, true})
    for (const bool transpose_b : {false, true}) {
      CaseBuilder builder = list.builder();
      std::vector<TensorId> reads{builder.activation({rows, k})};
      for (const TensorId id : stored_weight(builder, experts * k * n, nested)) reads.push_back(id);
      reads.push_back(builder.index({experts, 2}, bounds_of(list, rows, experts, share)));
      list.add(builder.finish(
          fmt::format("{} rows of {} experts stored ({} x {}){}{}{}", rows, experts, k, n,
                      kShareNames[static_cast<size_t>(share)], nested ? " nested" : "",
                      transpose_b ? " transposed" : ""),
          program::GroupedMatmul{.transpose_b = transpose_b, .stored = true, .nested = nested},
          reads, {builder.output_activation({rows, n})}));
    }
}

// Biases of experts; weighted ones have places of any order.
void add_biases(CaseList& list, const GroupedSize& size, Share share, bool views) {
  const auto& [rows, experts, k, n] = size;
  const Shape chosen{rows / 2, 2};
  for (const bool weighted : {false, true}) {
    if (weighted && rows % 2 != 0) continue;
    const std::string name =
        fmt::format("{} rows of {} experts of {}{}{}", rows, experts, n,
                    kShareNames[static_cast<size_t>(share)], weighted ? ", weighted" : "");
    const Values bounds = bounds_of(list, rows, experts, share);
    const auto begin = [&] {
      CaseBuilder builder = list.builder();
      if (views) builder.use_views(8, 8);
      return builder;
    };
    const auto add_weights = [&](CaseBuilder& builder, std::vector<TensorId>& reads) {
      if (!weighted) return;
      reads.push_back(builder.measure(chosen, normal(list.random, rows, 1.0, 0.5)));
      reads.push_back(builder.index(chosen, permutation(list, rows)));
    };
    {
      CaseBuilder builder = begin();
      std::vector<TensorId> reads{builder.activation({rows, n}), builder.weight({experts, n}),
                                  builder.index({experts, 2}, bounds)};
      add_weights(builder, reads);
      list.add(builder.finish(name, program::AddExpertBias{weighted}, reads,
                              {builder.output_activation({rows, n})}));
    }
    {
      CaseBuilder builder = begin();
      std::vector<TensorId> reads{builder.activation({rows, n}, 1.0),
                                  builder.index({experts, 2}, bounds)};
      add_weights(builder, reads);
      list.add(builder.finish(name, program::ExpertBiasGrad{weighted}, reads,
                              {builder.output_gradient({experts, n})}));
    }
    if (!weighted) continue;
    CaseBuilder builder = begin();
    const std::vector<TensorId> reads{builder.activation({rows, n}), builder.weight({experts, n}),
                                      builder.index({experts, 2}, bounds),
                                      builder.index(chosen, permutation(list, rows))};
    list.add(builder.finish(name, program::ExpertBiasWeightsGrad{}, reads,
                            {builder.output_measure(chosen)}));
  }
}

struct BalanceSize {
  int64_t layers, experts, k;
  double tokens;  // of a layer
};

// One without tokens, as of a micro-batch of padding; one of more layers than a launch takes.
constexpr BalanceSize kBalanceSizes[]{{1, 1, 1, 3},    {2, 5, 2, 17},    {3, 7, 3, 0},
                                      {5, 33, 8, 400}, {48, 128, 8, 70}, {243, 4, 2, 9}};

void add_balances(CaseList& list, const BalanceSize& size) {
  const auto& [layers, experts, k, tokens] = size;
  const std::string name =
      fmt::format("{} layers, {} of {} experts, {} tokens", layers, k, experts, tokens);
  for (const bool trains : {false, true}) {
    CaseBuilder builder = list.builder();
    std::vector<TensorId> reads{builder.measure({1}, {0.4 / std::max(tokens, 1.0)})};
    for (int64_t layer = 0; layer < layers; ++layer) {
      Values counts(static_cast<size_t>(experts), 0.0);
      for (double choice = 0; choice < tokens * static_cast<double>(k); ++choice)
        ++counts[static_cast<size_t>(integers(list.random, 1, 0, experts - 1)[0])];
      Values sums = normal(list.random, experts, tokens / static_cast<double>(experts),
                           tokens / (4.0 * static_cast<double>(experts)));
      reads.push_back(builder.index({experts}, counts));
      reads.push_back(builder.measure({experts}, sums));
    }
    const TensorId loss = builder.output_measure({1});
    if (!trains)
      list.add(builder.finish(name, program::BalanceLoss{k, 0.25F}, reads, {loss}));
    else
      list.add(builder.finish(name, program::BalanceLossTrain{k, 0.25F}, reads,
                              {loss, builder.output_measure({experts})}));
  }
}

void add_cases(CaseList& list) {
  add_routes(list);
  for (const BalanceSize& size : kBalanceSizes) add_balances(list, size);
  for (const RowSize& size : kRowSizes)
    for (const bool views : {false, true}) add_rows(list, size, views);
  for (const GroupedSize& size : kGroupedSizes)
    for (const Share share : {Share::random, Share::one_has_all, Share::last_has_none})
      add_products(list, size, share, false);
  for (const GroupedSize& size : kGroupedSizes)
    for (const Share share : {Share::random, Share::one_has_all, Share::last_has_none})
      add_biases(list, size, share, false);
  add_biases(list, {40, 7, 0, 2056}, Share::random, true);
  // Gradients that are rounded once are summed up in blocks of the matrix; the last is less than a
  // panel of tiles.
  if (list.kind == program::Kind::grouped_matmul_grad &&
      list.types.gradient == program::DType::bf16)
    add_products(list, {33, 1, 1040, 1024}, Share::random, false);
  for (const GroupedSize& size :
       {GroupedSize{65, 7, 64, 24}, GroupedSize{17, 3, 5, 33}, GroupedSize{130, 2, 40, 136}})
    add_products(list, size, Share::random, true);
  for (const ScoredRouting& routing : kScoredRoutings) add_scored_route(list, routing);
  for (const GroupedSize& size : kStoredSizes) add_stored_products(list, size, Share::random);
  for (const Share share : {Share::one_has_all, Share::last_has_none})
    add_stored_products(list, {40, 37, 16, 64}, share);
}

}  // namespace

CaseTable expert_cases() {
  using program::Kind;
  return {{Kind::route, Kind::route_grad, Kind::balance_loss, Kind::balance_loss_train,
           Kind::permute, Kind::combine, Kind::scale_rows, Kind::scale_rows_grad,
           Kind::grouped_matmul, Kind::grouped_matmul_grad, Kind::add_expert_bias,
           Kind::expert_bias_grad, Kind::expert_bias_weights_grad},
          add_cases};
}

}  // namespace snug::backends::test
