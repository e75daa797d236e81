// Embedding, norm, rotation and gated activation.
#include <cmath>

#include "operation_case.h"
#include "program/kinds/attention/rope.h"
#include "program/kinds/elementwise/clamped_swiglu.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/multiply.h"
#include "program/kinds/elementwise/sigmoid_mul.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/norm/layer_norm.h"
#include "program/kinds/norm/rms_norm.h"
#include "program/kinds/product/embedding.h"

namespace snug::backends::test {
namespace {

using program::Shape;
using program::TensorId;

struct Size {
  int64_t tokens, width;
};

constexpr Size kSizes[]{{1, 3},    {3, 17},   {17, 65},  {65, 16}, {5, 129},
                        {129, 64}, {33, 576}, {2, 1000}, {700, 24}};

std::string name_of(const Size& size) { return fmt::format("{} x {}", size.tokens, size.width); }

// `transposed`: a table whose columns are looked up. `is_list`: its columns are one element.
void add_embeddings(CaseList& list, const Size& size, bool transposed, bool is_list = false) {
  for (const int64_t vocab : {int64_t{1}, int64_t{5}, int64_t{131}}) {
    Shape table_shape = transposed ? Shape{size.width, vocab} : Shape{vocab, size.width};
    if (is_list) table_shape = {vocab};
    const Shape shape{size.tokens, size.width};
    const std::string name = fmt::format("{} of {}{}", name_of(size), vocab,
                                         is_list      ? " in a list"
                                         : transposed ? " transposed"
                                                      : "");
    CaseBuilder forward = list.builder();
    const auto table = forward.weight(table_shape);
    const auto ids = forward.index({size.tokens}, integers(list.random, size.tokens, 0, vocab - 1));
    const auto y = forward.output_activation(shape);
    list.add(forward.finish(name, program::Embedding{transposed}, {table, ids}, {y}));
    for (const bool accumulate : {false, true}) {
      CaseBuilder backward = list.builder();
      const auto dy = backward.activation(shape);
      const auto where =
          backward.index({size.tokens}, integers(list.random, size.tokens, 0, vocab - 1));
      const program::EmbeddingGrad grad{accumulate, transposed};
      if (accumulate) {
        const auto dtable = backward.gradient(table_shape);
        list.add(backward.finish(name + " accumulate", grad, {dy, where}, {}, {dtable}));
      } else {
        const auto dtable = backward.output_gradient(table_shape);
        list.add(backward.finish(name, grad, {dy, where}, {dtable}));
      }
    }
  }
}

void add_norms(CaseList& list, const Size& size, double deviation, bool views, float offset) {
  const Shape shape{size.tokens, size.width};
  const std::string name =
      fmt::format("{} deviation {}{}", name_of(size), deviation, offset != 0 ? " offset" : "");
  const double mean = 1.0 - static_cast<double>(offset);  // of the weight
  {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const auto x = builder.activation(shape, 0.0, deviation);
    const auto w = builder.weight({size.width}, mean, 0.25);
    const auto y = builder.output_activation(shape);
    list.add(builder.finish(name, program::RmsNorm{1e-5F, offset}, {x, w}, {y}));
  }
  for (const bool addend : {false, true})
    for (const int gradient : {0, 1, 2}) {
      const program::RmsNormGrad grad{.epsilon = 1e-5F,
                                      .weight_gradient = gradient > 0,
                                      .addend = addend,
                                      .accumulate = gradient > 1,
                                      .offset = offset};
      CaseBuilder builder = list.builder();
      if (views) builder.use_views();
      std::vector<TensorId> reads{builder.activation(shape),
                                  builder.activation(shape, 0.0, deviation),
                                  builder.weight({size.width}, mean, 0.25)};
      if (addend) reads.push_back(builder.activation(shape));
      std::vector<TensorId> writes{builder.output_activation(shape)};
      std::vector<TensorId> updates;
      if (grad.weight_gradient && !grad.accumulate)
        writes.push_back(builder.output_gradient({size.width}));
      if (grad.accumulate) updates.push_back(builder.gradient({size.width}));
      list.add(builder.finish(
          fmt::format("{}{}{}{}", name, addend ? " addend" : "",
                      gradient > 0 ? " weight_gradient" : "", gradient > 1 ? " accumulate" : ""),
          grad, reads, writes, updates));
    }
}

// `mean`: of x, which the norm takes away.
void add_layer_norms(CaseList& list, const Size& size, double mean, double deviation, bool views) {
  const Shape shape{size.tokens, size.width};
  const std::string name = fmt::format("{} mean {} deviation {}", name_of(size), mean, deviation);
  for (const bool bias : {false, true}) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    std::vector<TensorId> reads{builder.activation(shape, mean, deviation),
                                builder.weight({size.width}, 1.0, 0.25)};
    if (bias) reads.push_back(builder.weight({size.width}, 0.0, 0.5));
    const auto y = builder.output_activation(shape);
    list.add(builder.finish(name + (bias ? " bias" : ""),
                            program::LayerNorm{.epsilon = 1e-5F, .bias = bias}, reads, {y}));
  }
  for (const bool addend : {false, true})
    for (const int gradient : {0, 1, 2}) {
      const program::LayerNormGrad grad{.epsilon = 1e-5F,
                                        .weight_gradient = gradient > 0,
                                        .addend = addend,
                                        .accumulate = gradient > 1};
      CaseBuilder builder = list.builder();
      if (views) builder.use_views();
      std::vector<TensorId> reads{builder.activation(shape),
                                  builder.activation(shape, mean, deviation),
                                  builder.weight({size.width}, 1.0, 0.25)};
      if (addend) reads.push_back(builder.activation(shape));
      std::vector<TensorId> writes{builder.output_activation(shape)};
      std::vector<TensorId> updates;
      if (gradient == 1) writes.push_back(builder.output_gradient({size.width}));
      if (gradient == 2) updates.push_back(builder.gradient({size.width}));
      list.add(builder.finish(
          fmt::format("{}{}{}{}", name, addend ? " addend" : "",
                      gradient > 0 ? " weight_gradient" : "", gradient > 1 ? " accumulate" : ""),
          grad, reads, writes, updates));
    }
}

// Rotary forms of a head: all of it, or its first `width` elements.
struct RotaryForm {
  int64_t head_dim;
  int64_t width = 0;  // 0: head_dim
  bool interleaved = false;
};

void add_rotations(CaseList& list, int64_t tokens, int64_t heads, const RotaryForm& form,
                   bool views) {
  const int64_t head_dim = form.head_dim;
  const int64_t width = form.width > 0 ? form.width : head_dim;
  const int64_t half = width / 2;
  Values frequencies;
  for (int64_t i = 0; i < half; ++i)
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  const std::string name = fmt::format("{} tokens {} heads of {}{}{}", tokens, heads, head_dim,
                                       form.width > 0 ? fmt::format(", {} of each", width) : "",
                                       form.interleaved ? ", interleaved" : "");
  if (!views && form.width == 0 && !form.interleaved) {
    const auto drawn = integers(list.random, tokens, 0, 131071);
    const auto add = [&](const std::string& called, const program::RotaryTable& rotary) {
      CaseBuilder builder = list.builder();
      const auto positions = builder.index({tokens}, drawn);
      const auto inverse_frequency = builder.measure({half}, frequencies);
      const auto table = builder.output_measure({tokens, width});
      list.add(builder.finish(called, rotary, {positions, inverse_frequency}, {table}));
    };
    add(name, program::RotaryTable{1.25F});
    add(fmt::format("{}, growing", name), program::RotaryTable{1.25F, 0.1F, 16384});
  }
  for (const bool inverse : {false, true}) {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views();
    const Shape shape{tokens, heads * head_dim};
    Values angles;
    for (int64_t t = 0; t < tokens; ++t) {
      const Values drawn = normal(list.random, half, 0.0, 3.0);
      for (const double angle : drawn) angles.push_back(std::cos(angle));
      for (const double angle : drawn) angles.push_back(std::sin(angle));
    }
    const auto x = builder.activation(shape);
    const auto table = builder.measure({tokens, width}, angles);
    const auto y = builder.output_activation(shape);
    const int64_t turned = heads > 2 ? heads - 2 : 0;
    list.add(builder.finish(fmt::format("{}{}, {} turned", name, inverse ? " inverse" : "", turned),
                            program::Rope{.head_dim = head_dim,
                                          .inverse = inverse,
                                          .rotated_heads = turned,
                                          .rotary_dim = form.width,
                                          .interleaved = form.interleaved},
                            {x, table}, {y}));
  }
}

void add_gated(CaseList& list, const Size& size, double deviation, bool views,
               const std::string& form, const program::Attributes& gate_kind,
               const program::Attributes& grad_kind) {
  const Shape shape{size.tokens, size.width};
  const std::string name = fmt::format("{} deviation {}{}", name_of(size), deviation, form);
  CaseBuilder forward = list.builder();
  if (views) forward.use_views();
  const auto gate = forward.activation(shape, 0.5, deviation);
  const auto up = forward.activation(shape);
  const auto y = forward.output_activation(shape);
  list.add(forward.finish(name, gate_kind, {gate, up}, {y}));
  CaseBuilder backward = list.builder();
  if (views) backward.use_views();
  const auto dy = backward.activation(shape);
  const auto gate_again = backward.activation(shape, 0.5, deviation);
  const auto up_again = backward.activation(shape);
  const auto dgate = backward.output_activation(shape);
  const auto dup = backward.output_activation(shape);
  list.add(backward.finish(name, grad_kind, {dy, gate_again, up_again}, {dgate, dup}));
}

void add_gates(CaseList& list, const Size& size, double deviation, bool views) {
  add_gated(list, size, deviation, views, "", program::SiluMul{}, program::SiluMulGrad{});
  for (const bool tanh : {false, true})
    add_gated(list, size, deviation, views, tanh ? " tanh" : "", program::GeluMul{tanh},
              program::GeluMulGrad{tanh});
}

// Limits lie between numbers that bf16 has, so that no gate is on one.
void add_clamped_gates(CaseList& list, const Size& size, double deviation, bool views) {
  const Shape pairs{size.tokens, 2 * size.width};
  const Shape shape{size.tokens, size.width};
  const std::string name = fmt::format("{} x {}, deviation {}", size.tokens, size.width, deviation);
  const auto begin = [&] {
    CaseBuilder builder = list.builder();
    if (views) builder.use_views(8, 16);
    return builder;
  };
  {
    CaseBuilder builder = begin();
    const TensorId gate_up = builder.activation(pairs, 0.0, deviation);
    list.add(builder.finish(name, program::ClampedSwiglu{.limit = 0.7F, .alpha = 1.702F}, {gate_up},
                            {builder.output_activation(shape)}));
  }
  CaseBuilder builder = begin();
  const TensorId dy = builder.activation(shape);
  const TensorId gate_up = builder.activation(pairs, 0.0, deviation);
  list.add(builder.finish(name, program::ClampedSwigluGrad{.limit = 0.7F, .alpha = 1.702F},
                          {dy, gate_up}, {builder.output_activation(pairs)}));
}

void add_cases(CaseList& list) {
  for (const Size& size : kSizes) {
    for (const bool transposed : {false, true}) add_embeddings(list, size, transposed);
    add_norms(list, size, 1.0, false, 0.0F);
    add_norms(list, size, 1.0, false, 1.0F);
    // Of three elements a gradient is what is left of two projections, which may be next to
    // nothing.
    if (size.width > 3) add_layer_norms(list, size, 0.5, 1.0, false);
    add_norms(list, size, 30.0, false, 0.0F);
    add_gates(list, size, 1.0, false);
    // Of three pairs all may be clamped, and nothing is left to compare with.
    if (size.width > 3) add_clamped_gates(list, size, 1.0, false);
    // Where the gate saturates. Of three elements all may lie where it is 0 in fp32 and all but 0
    // in fp64, and nothing is left to compare with.
    if (size.width > 3) add_gates(list, size, 40.0, false);
  }
  // Far from zero, as residual streams of trained models have elements.
  add_layer_norms(list, {33, 576}, 20.0, 1.0, false);
  add_layer_norms(list, {17, 65}, 0.5, 1.0, true);
  add_layer_norms(list, {11, 4104}, 0.5, 1.0, false);
  add_norms(list, {17, 65}, 1.0, true, 0.0F);
  add_norms(list, {17, 65}, 1.0, true, 1.0F);
  add_norms(list, {11, 4104}, 1.0, false, 0.0F);  // wider than a block's threads take in one go
  add_gates(list, {17, 65}, 1.0, true);
  // Its arithmetic is a part of silu_mul's, so that a few sizes are enough.
  for (const bool views : {false, true})
    for (const double deviation : {1.0, 40.0})
      add_gated(list, {17, 65}, deviation, views, "", program::SigmoidMul{},
                program::SigmoidMulGrad{});
  add_gated(list, {5, 129}, 1.0, false, "", program::SigmoidMul{}, program::SigmoidMulGrad{});
  add_clamped_gates(list, {17, 65}, 1.0, true);
  add_clamped_gates(list, {33, 576}, 1.0, true);
  for (const int64_t tokens : {1, 3, 17, 130})
    for (const int64_t head_dim : {2, 6, 34, 64}) {
      add_rotations(list, tokens, 1, {head_dim}, false);
      add_rotations(list, tokens, 3, {head_dim}, false);
    }
  add_rotations(list, 17, 3, {16}, true);
  for (const RotaryForm& form :
       {RotaryForm{80, 32}, RotaryForm{64, 16}, RotaryForm{10, 4}, RotaryForm{6, 6},
        RotaryForm{34, 0, true}, RotaryForm{64, 32, true}, RotaryForm{10, 6, true}}) {
    add_rotations(list, 1, 3, form, false);
    add_rotations(list, 19, 4, form, false);
    add_rotations(list, 17, 3, form, true);
  }
  for (const bool views : {false, true})
    add_gated(list, {17, 65}, 1.0, views, "", program::Multiply{}, program::MultiplyGrad{});
  add_gated(list, {5, 129}, 1.0, false, "", program::Multiply{}, program::MultiplyGrad{});
  for (const int64_t tokens : {1, 33}) add_embeddings(list, {tokens, 1}, true, true);
}

}  // namespace

CaseTable layer_cases() {
  using program::Kind;
  return {{Kind::embedding, Kind::embedding_grad, Kind::rms_norm, Kind::rms_norm_grad,
           Kind::layer_norm, Kind::layer_norm_grad, Kind::rotary_table, Kind::rope,
           Kind::sigmoid_mul, Kind::sigmoid_mul_grad, Kind::silu_mul, Kind::silu_mul_grad,
           Kind::gelu_mul, Kind::gelu_mul_grad, Kind::clamped_swiglu, Kind::clamped_swiglu_grad,
           Kind::multiply, Kind::multiply_grad},
          add_cases};
}

}  // namespace snug::backends::test
