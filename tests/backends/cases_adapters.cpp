// What adapters add to linears: scaled columns, and norms of rows of a weight.
#include <cmath>

#include "operation_case.h"
#include "program/kinds/norm/row_norms.h"
#include "program/kinds/product/column_scale.h"

namespace snug::backends::test {
namespace {

using program::Shape;
using program::TensorId;

struct Size {
  int64_t tokens, width;
  int64_t gains = 0;  // 0: one a column
};

constexpr Size kSizes[]{{1, 1},  {1, 3},  {3, 17},  {17, 65},  {65, 16},
                        {5, 40}, {70, 8}, {129, 3}, {2, 1000}, {700, 24}};
// One of a head, and one of all.
constexpr Size kGroups[]{{3, 12, 4}, {17, 65, 5}, {70, 64, 8},
                         {5, 40, 1}, {129, 3, 1}, {300, 512, 1}};

// A lone sum could cancel by chance, which is no error of the kernel.
constexpr double kMean = 2.0;

Values positive(Random& random, int64_t count) {
  Values values = normal(random, count, kMean, 0.25);
  for (double& value : values) value = std::abs(value) + 0.1;
  return values;
}

void add_columns(CaseList& list, const Size& size, bool divided, bool views) {
  const Shape shape{size.tokens, size.width};
  const Shape gains{size.gains > 0 ? size.gains : size.width};
  const std::string name =
      fmt::format("{} x {} by {}{}", size.tokens, size.width, gains[0], divided ? " divided" : "");
  {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    std::vector<TensorId> reads{builder.activation(shape), builder.weight(gains, kMean, 0.5)};
    if (divided) reads.push_back(builder.measure(gains, positive(list.random, gains[0])));
    const auto y = builder.output_activation(shape);
    list.add(builder.finish(name, program::ScaleColumns{divided}, reads, {y}));
  }
  for (const bool accumulate : {false, true}) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    std::vector<TensorId> reads{builder.activation(shape, kMean, 0.5),
                                builder.activation(shape, kMean, 0.5)};
    if (divided) reads.push_back(builder.measure(gains, positive(list.random, gains[0])));
    const program::ColumnGainGrad grad{.divided = divided, .accumulate = accumulate};
    if (accumulate)
      list.add(builder.finish(name + " accumulate", grad, reads, {},
                              {builder.gradient(gains, kMean, 0.5)}));
    else
      list.add(builder.finish(name, grad, reads, {builder.output_gradient(gains)}));
  }
}

// Rows and columns beyond what a thread takes at once, and less.
struct WeightSize {
  int64_t out, in, rank;  // of the adapter; 0: there is none
};

constexpr WeightSize kWeights[]{{1, 1, 0},    {1, 1, 1},    {3, 17, 0},  {17, 65, 2},
                                {16, 256, 4}, {33, 300, 5}, {5, 515, 1}, {40, 9, 16}};

void add_norms(CaseList& list, const WeightSize& size, bool transposed) {
  const program::RowNorms norms{
      .transposed = transposed, .low_rank = size.rank > 0, .alpha = size.rank > 0 ? 0.75F : 1.0F};
  CaseBuilder builder = list.builder();
  std::vector<TensorId> reads{
      builder.weight(transposed ? Shape{size.in, size.out} : Shape{size.out, size.in}, 4.0, 1.0)};
  if (size.rank > 0) {
    reads.push_back(builder.weight({size.rank, size.in}, 0.0, 0.5));
    reads.push_back(builder.weight({size.out, size.rank}, 0.0, 0.5));
  }
  const auto written = builder.output_measure({size.out});
  list.add(builder.finish(fmt::format("{} x {} rank {}{}", size.out, size.in, size.rank,
                                      transposed ? " transposed" : ""),
                          norms, reads, {written}));
}

void add_cases(CaseList& list) {
  for (const bool divided : {false, true}) {
    for (const Size& size : kSizes) add_columns(list, size, divided, false);
    add_columns(list, {17, 65}, divided, true);
    add_columns(list, {33, 64}, divided, true);
    for (const Size& size : kGroups) add_columns(list, size, divided, false);
    add_columns(list, {33, 64, 4}, divided, true);
  }
  for (const bool transposed : {false, true})
    for (const WeightSize& size : kWeights) add_norms(list, size, transposed);
}

}  // namespace

CaseTable adapter_cases() {
  using program::Kind;
  return {{Kind::scale_columns, Kind::column_gain_grad, Kind::row_norms}, add_cases};
}

}  // namespace snug::backends::test
