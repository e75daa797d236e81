#include <algorithm>
#include <array>
#include <cmath>

#include "operation_case.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/elementwise/gelu.h"
#include "program/kinds/elementwise/noise.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/elementwise/xielu.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::Shape;

struct Size {
  int64_t rows, columns;
};

constexpr Size kSizes[]{{1, 1},   {1, 3},     {3, 1},    {3, 17},   {17, 65},  {65, 16},
                        {1, 129}, {129, 257}, {300, 40}, {2, 1000}, {2100, 17}};

std::string name_of(const Size& size) { return fmt::format("{} x {}", size.rows, size.columns); }

void add_sums(CaseList& list, const Size& size, bool views) {
  const Shape shape{size.rows, size.columns};
  // A lone sum could cancel by chance, which is no error of the kernel.
  const double mean = size.columns < 32 ? 2.0 : 0.0;
  {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const auto a = builder.activation(shape, mean, 0.5);
    const auto b = builder.activation(shape, mean, 0.5);
    const auto c = builder.output_activation(shape);
    list.add(builder.finish(name_of(size), program::Add{}, {a, b}, {c}));
  }
  {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const auto x = builder.activation(shape, mean, 0.5);
    const auto bias = builder.weight({size.columns}, mean, 0.5);
    const auto y = builder.output_activation(shape);
    list.add(builder.finish(name_of(size), program::AddBias{}, {x, bias}, {y}));
  }
  for (const bool accumulate : {false, true}) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const auto x = builder.activation(shape, mean, 0.5);
    if (accumulate) {
      const auto y = builder.gradient({size.columns}, mean, 0.5);
      list.add(builder.finish(name_of(size) + " accumulate", program::SumRows{true}, {x}, {}, {y}));
    } else {
      const auto y = builder.output_gradient({size.columns});
      list.add(builder.finish(name_of(size), program::SumRows{}, {x}, {y}));
    }
  }
}

void add_accumulates(CaseList& list, const Size& size) {
  const Shape shape{size.rows, size.columns};
  for (const bool stochastic : {false, true}) {
    if (stochastic && list.types.gradient != DType::bf16) continue;
    CaseBuilder builder = list.builder();
    const auto x = builder.gradient(shape, 2.0, 0.5);
    const auto y = builder.gradient(shape, 2.0, 0.5);
    std::vector<program::TensorId> reads{x};
    if (stochastic) reads.push_back(builder.index({2}, {7, 11}));
    const program::Accumulate accumulate{stochastic, 1234567890123, 17};
    list.add(builder.finish(name_of(size) + (stochastic ? " stochastic" : ""), accumulate, reads,
                            {}, {y}));
  }
}

void add_dropouts(CaseList& list, const Size& size, bool views) {
  for (const float probability : {0.0F, 0.05F, 0.5F}) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const Shape shape{size.rows, size.columns};
    const auto x = builder.activation(shape, 2.0, 0.5);
    const auto random = builder.index({2}, {3, 40});
    const auto y = builder.output_activation(shape);
    const program::Dropout dropout{
        .probability = probability, .row_length = 7, .seed = 42, .site = 5};
    list.add(builder.finish(fmt::format("{} probability {}", name_of(size), probability), dropout,
                            {x, random}, {y}));
  }
}

// `lengths` of segments side by side, an empty one among them; tokens after the last in none.
void add_noises(CaseList& list, const Size& size, const std::vector<int64_t>& lengths, bool views) {
  CaseBuilder builder = list.builder();
  if (views) builder.use_views();
  const Shape shape{size.rows, size.columns};
  const auto x = builder.activation(shape, 2.0, 0.5);
  Values bounds;
  bounds.reserve(2 * lengths.size());
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    bounds.push_back(static_cast<double>(begin));
    begin = std::min(begin + length, size.rows);
    bounds.push_back(static_cast<double>(begin));
  }
  const auto segments = builder.index({static_cast<int64_t>(lengths.size()), 2}, bounds);
  const auto random = builder.index({2}, {3, 40});
  const auto y = builder.output_activation(shape);
  const program::AddNoise noise{.alpha = 8.0F, .row_length = 7, .seed = 42, .site = 1};
  list.add(builder.finish(fmt::format("{}, {} segments", name_of(size), lengths.size()), noise,
                          {x, segments, random}, {y}));
}

void add_zeros(CaseList& list, const Size& size, bool views) {
  CaseBuilder builder = list.builder();
  if (views) builder.use_views();
  const auto y = builder.output_activation({size.rows, size.columns});
  list.add(builder.finish(name_of(size), program::Zeros{}, {}, {y}));
}

void add_casts(CaseList& list, const Size& size) {
  const Shape shape{size.rows, size.columns};
  const DType type = list.types.activation;
  for (const auto& [from, to] : {std::pair{DType::f32, type}, std::pair{type, DType::f32}}) {
    CaseBuilder builder = list.builder();
    const auto x = builder.input(shape, from, normal(list.random, shape.elements()));
    const auto y = builder.output(shape, to);
    list.add(builder.finish(
        fmt::format("{} {} to {}", name_of(size), base::name_of(from), base::name_of(to)),
        program::Cast{}, {x}, {y}));
  }
}

void add_gelus(CaseList& list, const Size& size, double deviation, bool views) {
  const Shape shape{size.rows, size.columns};
  const double mean = size.columns < 32 ? 2.0 : 0.0;
  for (const bool tanh : {false, true}) {
    const std::string name =
        fmt::format("{} deviation {}{}", name_of(size), deviation, tanh ? " tanh" : "");
    CaseBuilder forward = list.builder();
    if (views) forward.use_views();
    const auto x = forward.activation(shape, mean, deviation);
    const auto y = forward.output_activation(shape);
    list.add(forward.finish(name, program::Gelu{tanh}, {x}, {y}));
    CaseBuilder backward = list.builder();
    if (views) backward.use_views();
    const auto dy = backward.activation(shape);
    const auto x_again = backward.activation(shape, mean, deviation);
    const auto dx = backward.output_activation(shape);
    list.add(backward.finish(name, program::GeluGrad{tanh}, {dy, x_again}, {dx}));
  }
}

// scale, relu and softcap with their gradients; of those with none on the kink of relu.
void add_bounded(CaseList& list, const Size& size, bool views) {
  const Shape shape{size.rows, size.columns};
  const double mean = size.columns < 32 ? 2.0 : 0.0;
  const auto add_unary = [&](const std::string& name, const program::Attributes& attributes) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    // Differences do not see a kink at zero.
    Values values = normal(list.random, shape.elements(), mean);
    for (double& value : values)
      if (std::abs(value) < 0.01) value = 0.01;
    const auto x = builder.input(shape, list.types.activation, std::move(values));
    const auto y = builder.output_activation(shape);
    list.add(builder.finish(name, attributes, {x}, {y}));
  };
  // y: of what the forward pass may leave.
  const auto add_gradient = [&](const std::string& name, const program::Attributes& attributes,
                                double lowest, double highest) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const auto dy = builder.activation(shape);
    Values left = normal(list.random, shape.elements(), mean, 1.0);
    for (double& value : left) value = std::clamp(value, lowest, highest);
    const auto y = builder.input(shape, list.types.activation, left);
    const auto dx = builder.output_activation(shape);
    list.add(builder.finish(name, attributes, {dy, y}, {dx}));
  };
  add_unary(name_of(size), program::Scale{45.25F});
  add_unary(name_of(size), program::Relu{});
  add_gradient(name_of(size), program::ReluGrad{}, 0.0, 100.0);
  for (const float cap : {0.75F, 3.0F, 30.0F}) {
    const std::string name = fmt::format("{} cap {}", name_of(size), cap);
    const double most = 0.9 * static_cast<double>(cap);
    add_unary(name, program::Softcap{cap});
    add_gradient(name, program::SoftcapGrad{cap}, -most, most);
  }
}

// xielu, its gradient and its slopes, of values that are not on the kinks at 0 and epsilon.
void add_xielus(CaseList& list, const Size& size, double deviation, bool views) {
  const Shape shape{size.rows, size.columns};
  const double epsilon = views ? -0.5 : -1e-6;
  const std::string name =
      fmt::format("{} deviation {} epsilon {}", name_of(size), deviation, epsilon);
  const auto begin = [&] {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    return builder;
  };
  const auto drawn = [&](CaseBuilder& builder) {
    Values values = normal(list.random, shape.elements(), 0.0, deviation);
    for (double& value : values)
      if (std::abs(value) < 0.01 || std::abs(value - epsilon) < 0.01) value = epsilon - 0.02;
    return builder.input(shape, list.types.activation, std::move(values));
  };
  const auto numbers = [&](CaseBuilder& builder, std::vector<program::TensorId> reads) {
    reads.insert(reads.end(),
                 {builder.weight({1}), builder.weight({1}), builder.measure(Shape(), {0.5}),
                  builder.measure(Shape(), {epsilon})});
    return reads;
  };
  CaseBuilder forward = begin();
  const auto x = drawn(forward);
  list.add(forward.finish(name, program::Xielu{}, numbers(forward, {x}),
                          {forward.output_activation(shape)}));
  CaseBuilder backward = begin();
  const auto dy = backward.activation(shape);
  const auto x_again = drawn(backward);
  list.add(backward.finish(name, program::XieluGrad{}, numbers(backward, {dy, x_again}),
                           {backward.output_activation(shape)}));
  for (const bool negative : {false, true}) {
    CaseBuilder slope = begin();
    const std::vector<program::TensorId> reads{drawn(slope), slope.weight({1}),
                                               slope.measure(Shape(), {epsilon})};
    list.add(
        slope.finish(name, program::XieluSlope{negative}, reads, {slope.output_activation(shape)}));
  }
}

// Every mixture of f32 and the activations' type.
void add_mixed_gelus(CaseList& list, const Size& size) {
  const Shape shape{size.rows, size.columns};
  const auto drawn = [&] { return normal(list.random, shape.elements()); };
  const std::array types{DType::f32, list.types.activation};
  for (const bool tanh : {false, true})
    for (const DType x_type : types)
      for (const DType y_type : types) {
        CaseBuilder forward = list.builder();
        const auto x = forward.input(shape, x_type, drawn());
        const auto y = forward.output(shape, y_type);
        const std::string name = name_of(size) + (tanh ? " tanh" : "");
        list.add(forward.finish(name, program::Gelu{tanh}, {x}, {y}));
        for (const DType dy_type : types) {
          CaseBuilder backward = list.builder();
          const auto dy = backward.input(shape, dy_type, drawn());
          const auto x_again = backward.input(shape, x_type, drawn());
          const auto dx = backward.output(shape, y_type);
          list.add(backward.finish(name, program::GeluGrad{tanh}, {dy, x_again}, {dx}));
        }
      }
}

// A learning rate that is a multiple of another.
void add_scaled_number(CaseList& list) {
  CaseBuilder builder = list.builder();
  const auto x = builder.measure({1}, {0.25});
  const auto y = builder.output_measure({1});
  list.add(builder.finish("a number", program::Scale{16.0F}, {x}, {y}));
}

void add_cases(CaseList& list) {
  for (const Size& size : kSizes) {
    add_sums(list, size, false);
    add_accumulates(list, size);
    add_dropouts(list, size, false);
    add_casts(list, size);
    for (const bool views : {false, true}) add_zeros(list, size, views);
    add_gelus(list, size, 1.0, false);
    // Where it is 0 or x.
    if (size.rows * size.columns > 1000) add_gelus(list, size, 40.0, false);
    add_bounded(list, size, false);
  }
  add_sums(list, {17, 65}, true);
  add_dropouts(list, {17, 65}, true);
  add_gelus(list, {17, 65}, 1.0, true);
  add_mixed_gelus(list, {17, 65});
  add_bounded(list, {17, 65}, true);
  add_scaled_number(list);
  // At the end, since all cases draw from one sequence.
  for (const Size& size : kSizes) add_noises(list, size, {3, 0, 5, 40}, false);
  add_noises(list, {17, 65}, {1, 14}, true);
  for (const Size& size : {Size{1, 1}, Size{3, 17}, Size{2, 1000}})
    add_xielus(list, size, 1.0, false);
  add_xielus(list, {129, 257}, 8.0, false);
  add_xielus(list, {17, 65}, 1.0, true);
}

}  // namespace

CaseTable elementwise_cases() {
  using program::Kind;
  return {{Kind::add, Kind::accumulate, Kind::add_bias, Kind::sum_rows, Kind::dropout, Kind::cast,
           Kind::zeros, Kind::gelu, Kind::gelu_grad, Kind::scale, Kind::relu, Kind::relu_grad,
           Kind::softcap, Kind::softcap_grad, Kind::add_noise, Kind::xielu, Kind::xielu_grad,
           Kind::xielu_slope},
          add_cases};
}

}  // namespace snug::backends::test
