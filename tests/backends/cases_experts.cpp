// Mixtures of experts: routing, rows on their way to experts and back, and products by expert.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "operation_case.h"

namespace snug::backends::test {
namespace {

using program::Shape;
using program::TensorId;

struct Routing {
  int64_t tokens, experts, k;
  bool ties = false;  // of logits, many of which are equal
};

constexpr Routing kRoutings[]{{1, 1, 1},   {3, 2, 2},  {9, 4, 1},          {17, 5, 2},
                              {65, 33, 8}, {33, 8, 8}, {300, 24, 3, true}, {700, 128, 8, true}};

void add_routes(CaseList& list) {
  for (const auto& [tokens, experts, k, ties] : kRoutings)
    for (const bool normalize : {false, true}) {
      // One weight that is divided by itself has no gradient but rounding.
      if (normalize && k == 1 && experts > 1) continue;
      const std::string name = fmt::format("{} tokens, {} of {} experts{}{}", tokens, k, experts,
                                           ties ? " ties" : "", normalize ? " normalize" : "");
      const Shape shape{tokens, experts};
      const Shape chosen{tokens, k};
      Values logits = normal(list.random, shape.elements(), 0.0, 2.0);
      if (ties)
        for (double& logit : logits) logit = std::round(logit);
      {
        CaseBuilder builder = list.builder();
        const TensorId x = builder.input(shape, list.types.activation, logits);
        list.add(builder.finish(
            name, program::Route{k, normalize}, {x},
            {builder.output_measure(chosen), builder.output(chosen, program::DType::i32),
             builder.output(chosen, program::DType::i32),
             builder.output({experts, 2}, program::DType::i32)}));
      }
      CaseBuilder builder = list.builder();
      Values ids;
      for (int64_t token = 0; token < tokens; ++token) {
        std::vector<int64_t> all(static_cast<size_t>(experts));
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.end(), list.random);
        ids.insert(ids.end(), all.begin(), all.begin() + k);
      }
      const TensorId dweights = builder.measure(chosen, normal(list.random, tokens * k));
      const TensorId x = builder.input(shape, list.types.activation, logits);
      const TensorId where = builder.index(chosen, ids);
      list.add(builder.finish(name, program::RouteGrad{normalize}, {dweights, x, where},
                              {builder.output_activation(shape)}));
    }
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

constexpr GroupedSize kGroupedSizes[]{{1, 1, 1, 3},      {2, 4, 8, 16},     {17, 3, 5, 33},
                                      {65, 7, 64, 24},   {130, 2, 40, 136}, {300, 5, 72, 32},
                                      {40, 16, 16, 257}, {600, 2, 24, 8},   {64, 4, 128, 128}};

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

void add_cases(CaseList& list) {
  add_routes(list);
  for (const RowSize& size : kRowSizes)
    for (const bool views : {false, true}) add_rows(list, size, views);
  for (const GroupedSize& size : kGroupedSizes)
    for (const Share share : {Share::random, Share::one_has_all, Share::last_has_none})
      add_products(list, size, share, false);
  for (const GroupedSize& size : {GroupedSize{65, 7, 64, 24}, GroupedSize{17, 3, 5, 33}})
    add_products(list, size, Share::random, true);
}

}  // namespace

CaseTable expert_cases() {
  using program::Kind;
  return {{Kind::route, Kind::route_grad, Kind::permute, Kind::combine, Kind::scale_rows,
           Kind::scale_rows_grad, Kind::grouped_matmul, Kind::grouped_matmul_grad},
          add_cases};
}

}  // namespace snug::backends::test
