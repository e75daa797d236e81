#include <cmath>
#include <limits>

#include "operation_case.h"
#include "program/kinds/expert/top_k.h"

namespace snug::backends::test {
namespace {

using program::Shape;

// What stands in a row next to numbers.
enum class Row { numbers, ties, few_numbers, none };

Values row_values(CaseList& list, int64_t count, Row row) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Values values = normal(list.random, count, 0.0, 3.0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (row == Row::ties) values[i] = std::round(values[i]);
    if (row == Row::none || (row == Row::few_numbers && i % 7 != 3))
      values[i] = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : -kInfinity;
  }
  if (row == Row::few_numbers && count > 10) values[10] = kInfinity;
  return values;
}

void add_cases(CaseList& list) {
  constexpr std::string_view kNames[]{"numbers", "ties", "few numbers", "no number"};
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 17}, Shape{2, 64}, Shape{2, 65}, Shape{5, 1000},
                             Shape{2, 4097}, Shape{1, 20004}})
    for (const int64_t k : {1, 5, 200})
      for (const Row row : {Row::numbers, Row::ties, Row::few_numbers, Row::none}) {
        CaseBuilder builder = list.builder();
        const auto x = builder.measure(shape, row_values(list, shape.elements(), row));
        const Shape kept{shape[0], k};
        list.add(builder.finish(
            fmt::format("{} k {} {}", program::to_string(shape), k,
                        kNames[static_cast<size_t>(row)]),
            program::TopK{k}, {x},
            {builder.output_measure(kept), builder.output(kept, program::DType::i32)}));
      }
  // What the pieces of a row leave is more than one piece.
  const Shape long_row{1, 90001};
  for (const Row row : {Row::numbers, Row::ties}) {
    CaseBuilder builder = list.builder();
    const auto x = builder.measure(long_row, row_values(list, long_row.elements(), row));
    list.add(builder.finish(
        fmt::format("{} k 200 {}", program::to_string(long_row), kNames[static_cast<size_t>(row)]),
        program::TopK{200}, {x},
        {builder.output_measure({1, 200}), builder.output({1, 200}, program::DType::i32)}));
  }
  // More than a block has threads.
  const Shape row{1, 5000};
  CaseBuilder builder = list.builder();
  const auto x = builder.measure(row, row_values(list, row.elements(), Row::ties));
  list.add(builder.finish(
      fmt::format("{} k 700 ties", program::to_string(row)), program::TopK{700}, {x},
      {builder.output_measure({1, 700}), builder.output({1, 700}, program::DType::i32)}));
}

}  // namespace

CaseTable top_k_cases() { return {{program::Kind::top_k}, add_cases}; }

}  // namespace snug::backends::test
