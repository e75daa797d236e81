#include "operation_case.h"
#include "program/kinds/product/matmul.h"

namespace snug::backends::test {
namespace {

using program::Matmul;

struct Size {
  int64_t m, k, n;
};

constexpr Size kSizes[]{{1, 1, 1},      {1, 3, 17},    {3, 17, 1},     {17, 65, 3},
                        {17, 1, 17},    {64, 64, 64},  {65, 3, 65},    {2, 129, 64},
                        {129, 65, 130}, {33, 257, 48}, {130, 160, 200}};

// One dimension is a few dozen, the others long: each of m, k and n in turn, whole blocks and odd
// ends; some of whole vectors.
constexpr Size kThinSizes[]{{16, 1031, 192}, {192, 1031, 16}, {130, 600, 24}, {11, 300, 513},
                            {1031, 16, 192}, {161, 29, 300},  {512, 64, 256}, {129, 8, 1540},
                            {515, 300, 16},  {33, 513, 145},  {150, 257, 9},  {24, 1096, 72},
                            {200, 1096, 16}, {72, 520, 40}};

// A few rows of whole vectors, as decoding has them; inputs of several rounds, outputs that end
// within a tile, more tiles than blocks, and rows that no block keeps.
constexpr Size kFewRowsSizes[]{{1, 1096, 35}, {4, 3080, 24}, {3, 40, 130},
                               {2, 264, 16},  {1, 72, 260},  {4, 8328, 20}};

constexpr Matmul kForms[]{
    {},
    {.transpose_b = true},
    {.transpose_a = true},
    {.transpose_a = true, .transpose_b = true},
    {.transpose_b = true, .alpha = -0.375F},
    {.transpose_b = true, .alpha = 0.5F, .addend = true},
    {.addend = true},
    {.transpose_a = true, .addend = true},
    {.transpose_a = true, .accumulate = true},
    {.transpose_a = true, .alpha = 2.5F, .accumulate = true},
    {.transpose_b = true, .accumulate = true},
    {.transpose_a = true, .accumulate = true, .stochastic = true, .seed = 9, .site = 4},
    {.alpha = 0.5F, .accumulate = true, .stochastic = true, .seed = -3, .site = 70000},
    {.transpose_b = true, .augmented = true, .low_transpose_b = true, .low_alpha = 2.0F},
    {.addend = true, .augmented = true},
    {.transpose_b = true, .addend = true, .augmented = true, .low_transpose_b = true},
    {.transpose_b = true, .alpha = 0.5F, .accumulate = true, .augmented = true}};

std::string name_of(const Size& size, const Matmul& form) {
  return fmt::format("({} x {}{}) ({} x {}{}) alpha {}{}{}{}{}", size.m, size.k,
                     form.transpose_a ? " transposed" : "", size.k, size.n,
                     form.transpose_b ? " transposed" : "", form.alpha,
                     form.addend ? " addend" : "", form.accumulate ? " accumulate" : "",
                     form.stochastic ? " stochastic" : "", form.augmented ? " augmented" : "");
}

// a and b are activations, or b the weight of a linear. A product that accumulates is a weight's
// gradient, f32 or bf16; any other is an activation.
void add_case(CaseList& list, const Size& size, const Matmul& form, bool views) {
  const bool is_bf16_gradient = list.types.gradient == program::DType::bf16;
  if (form.stochastic && !is_bf16_gradient) return;
  CaseBuilder builder = list.builder();
  if (views) builder.use_views();
  // Few sums could cancel by chance, which is no error of the kernel: keep them positive.
  const double mean = size.m * size.n < 32 ? 2.0 : 0.0;
  const double deviation = mean > 0 ? 0.25 : 1.0;
  const auto shape = [](int64_t rows, int64_t columns, bool transposed) {
    return transposed ? program::Shape{columns, rows} : program::Shape{rows, columns};
  };
  const auto a = builder.activation(shape(size.m, size.k, form.transpose_a), mean, deviation);
  const auto b_shape = shape(size.k, size.n, form.transpose_b);
  const bool is_linear = form.transpose_b && !form.accumulate;
  const auto b = is_linear ? builder.weight(b_shape, mean, deviation)
                           : builder.activation(b_shape, mean, deviation);
  std::vector<program::TensorId> reads{a, b};
  const program::Shape c_shape{size.m, size.n};
  const double sign = form.alpha < 0 ? -1.0 : 1.0;
  if (form.addend) reads.push_back(builder.activation(c_shape, sign * mean, deviation));
  if (form.stochastic) reads.push_back(builder.index({2}, {3, 5}));
  if (form.augmented) {
    const int64_t rank = 1 + (size.m + size.n) % 40;
    reads.push_back(builder.activation({size.m, rank}, sign * mean, deviation));
    reads.push_back(builder.activation(shape(rank, size.n, form.low_transpose_b), mean, deviation));
  }
  if (form.accumulate) {
    const auto c = builder.gradient(c_shape, sign * mean, deviation);
    list.add(builder.finish(name_of(size, form), form, reads, {}, {c}));
  } else {
    const auto c = builder.output_activation(c_shape);
    list.add(builder.finish(name_of(size, form), form, reads, {c}));
  }
}

void add_cases(CaseList& list) {
  for (const Size& size : kSizes)
    for (const Matmul& form : kForms) add_case(list, size, form, false);
  for (const Size& size : kThinSizes)
    for (const Matmul& form : kForms) add_case(list, size, form, false);
  for (const Size& size : kFewRowsSizes)
    for (const Matmul& form : kForms) add_case(list, size, form, false);
  for (const Size& size : {Size{17, 65, 33}, Size{16, 257, 145}, Size{145, 33, 257},
                           Size{145, 257, 24}, Size{3, 520, 72}})
    for (const Matmul& form : kForms) add_case(list, size, form, true);
}

}  // namespace

CaseTable matmul_cases() {
  using program::Kind;
  return {{Kind::matmul}, add_cases};
}

}  // namespace snug::backends::test
