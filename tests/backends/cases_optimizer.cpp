#include <cmath>

#include "operation_case.h"
#include "program/kinds/loss/loss_scale.h"
#include "program/kinds/optimizer/adafactor.h"
#include "program/kinds/optimizer/lion.h"
#include "program/kinds/optimizer/muon.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::test {
namespace {

using program::AdamW;
using program::DType;
using program::Shape;

void add_norms(CaseList& list) {
  for (const int64_t gradients : {1, 2, 7}) {
    CaseBuilder builder = list.builder();
    std::vector<program::TensorId> reads;
    for (int64_t i = 0; i < gradients; ++i)
      reads.push_back(builder.gradient({1 + 37 * i, 1 + 64 * (i % 3)}));
    const auto norm = builder.output_measure({1});
    list.add(builder.finish(fmt::format("{} gradients", gradients), program::GlobalNorm{}, reads,
                            {norm}));
  }
  for (const int64_t size : {1, 3, 17, 65, 129, 30011}) {
    CaseBuilder builder = list.builder();
    const auto x = builder.gradient({size}, 1.0);
    const auto norm = builder.output_measure({1});
    list.add(builder.finish(fmt::format("{} elements", size), program::GlobalNorm{}, {x}, {norm}));
  }
  // Rows that do not lie side by side are summed one by one: many sums.
  for (const int64_t rows : {4096, 4097, 12289}) {
    CaseBuilder builder = list.builder();
    builder.use_views();
    const auto x = builder.activation({rows, 2}, 1.0);
    const auto norm = builder.output_measure({1});
    list.add(builder.finish(fmt::format("{} rows", rows), program::GlobalNorm{}, {x}, {norm}));
  }
  for (const float max_norm : {0.0F, 1.0F})
    for (const double value : {0.0, 0.5, 3.0, HUGE_VAL}) {
      CaseBuilder builder = list.builder();
      const auto norm = builder.measure({1}, {value});
      const auto factor = builder.output_measure({1});
      list.add(builder.finish(fmt::format("norm {} at most {}", value, max_norm),
                              program::ClipFactor{max_norm}, {norm}, {factor}));
    }
}

void add_loss_scales(CaseList& list) {
  for (const int64_t size : {1, 8})
    for (const bool divides : {false, true}) {
      CaseBuilder builder = list.builder();
      const auto x = builder.measure({size}, normal(list.random, size));
      const auto scale = builder.measure({1}, {4096.0});
      const auto y = builder.output_measure({size});
      list.add(builder.finish(fmt::format("{} numbers{}", size, divides ? " divided" : ""),
                              program::ScaleBy{divides}, {x, scale}, {y}));
    }
  struct Counts {
    double finite, skipped, tolerated;
  };
  // A norm of 0 and others, clipped and not; scales that fall, stay, grow and would grow beyond
  // fp32.
  for (const program::ScaledClipFactor& clip :
       {program::ScaledClipFactor{}, program::ScaledClipFactor{.max_norm = 1, .window = 3},
        program::ScaledClipFactor{.max_norm = 1, .window = 1, .hysteresis = 3, .least = 1.5F}})
    for (const double norm : {0.0, 20.0, 9e4, HUGE_VAL, double(NAN)})
      for (const double scale : {1.0, 65536.0, std::ldexp(1.0, 127)})
        for (const Counts counts : {Counts{0, 0, 0}, Counts{2, 0, 1}, Counts{0, 4, 2}}) {
          CaseBuilder builder = list.builder();
          const auto scaled_norm = builder.measure({1}, {norm});
          const auto unscaled = builder.output_measure({1});
          const auto factor = builder.output_measure({1});
          const auto of_loss = builder.measure({1}, {scale});
          const auto kept = builder.measure({3}, {counts.finite, counts.skipped, counts.tolerated});
          list.add(
              builder.finish(fmt::format("norm {} at most {} scale {} window {} counts {} {} {}",
                                         norm, clip.max_norm, scale, clip.window, counts.finite,
                                         counts.skipped, counts.tolerated),
                             clip, {scaled_norm}, {unscaled, factor}, {of_loss, kept}));
        }
}

// Which tensors hold the state.
enum class State { f32_weight, master, stochastic };

AdamW adamw_of(State state, float weight_decay) {
  return {.beta1 = 0.9F,
          .beta2 = 0.95F,
          .epsilon = 1e-8F,
          .weight_decay = weight_decay,
          .stochastic = state == State::stochastic,
          .has_master = state == State::master,
          .seed = 77,
          .site = 12};
}

void add_adamw(CaseList& list, const Shape& shape, State state, double factor, int32_t step) {
  const DType moment = state == State::stochastic ? DType::bf16 : DType::f32;
  const DType weight = state == State::f32_weight ? DType::f32 : list.types.weight;
  CaseBuilder builder = list.builder();
  const std::vector<program::TensorId> reads{
      builder.gradient(shape, 0.0, 0.1), builder.measure({1}, {factor}),
      builder.measure({1}, {0.01}), builder.index({1}, {static_cast<double>(step)})};
  const int64_t count = shape.elements();
  const Values weights = normal(list.random, count);
  Values second = normal(list.random, count, 0.0, 0.1);
  for (double& value : second) value = value * value + 1e-4;
  std::vector<program::TensorId> updates{
      builder.input(shape, weight, weights),
      builder.input(shape, moment, normal(list.random, count, 0.0, 0.1)),
      builder.input(shape, moment, second)};
  if (state == State::master) updates.push_back(builder.input(shape, DType::f32, weights));
  constexpr std::string_view kNames[]{"f32 weight", "master", "stochastic"};
  list.add(builder.finish(fmt::format("{} {} factor {} step {}", program::to_string(shape),
                                      kNames[static_cast<size_t>(state)], factor, step),
                          adamw_of(state, step == 1 ? 0.0F : 0.1F), reads, {}, updates));
}

// A state as after some steps: any codes, and one gradient that is not finite.
void add_adamw_8bit(CaseList& list, const Shape& shape, double factor, int32_t step) {
  CaseBuilder builder = list.builder();
  const int64_t count = shape.elements();
  Values gradients = normal(list.random, count, 0.0, 0.1);
  gradients[static_cast<size_t>(count / 2)] = HUGE_VAL;
  const std::vector<program::TensorId> reads{
      builder.input(shape, list.types.gradient, gradients), builder.measure({1}, {factor}),
      builder.measure({1}, {0.01}), builder.index({1}, {static_cast<double>(step)})};
  const auto codes = [&] {
    return builder.input(shape, DType::u8, integers(list.random, count, step == 1 ? 0 : 1, 255));
  };
  const int64_t blocks = program::state_blocks(count);
  const auto scales = [&](double largest) {
    return builder.measure({blocks}, Values(static_cast<size_t>(blocks), step == 1 ? 0 : largest));
  };
  std::vector<program::TensorId> updates{builder.weight(shape)};
  updates.push_back(codes());
  updates.push_back(codes());
  updates.push_back(scales(0.2));
  updates.push_back(scales(0.05));
  list.add(
      builder.finish(fmt::format("{} factor {} step {}", program::to_string(shape), factor, step),
                     program::AdamW8bit{.beta1 = 0.9F,
                                        .beta2 = 0.95F,
                                        .epsilon = 1e-8F,
                                        .weight_decay = step == 1 ? 0.0F : 0.1F,
                                        .seed = 77,
                                        .site = 12},
                     reads, {}, updates));
}

// Some weights have neither gradient nor momentum: their sign is 0.
void add_lion(CaseList& list, const Shape& shape, bool has_master, double factor, float decay) {
  CaseBuilder builder = list.builder();
  const int64_t count = shape.elements();
  Values gradients = normal(list.random, count, 0.0, 0.1);
  Values momenta = normal(list.random, count, 0.0, 0.1);
  for (size_t i = 0; i < gradients.size(); i += 5) gradients[i] = momenta[i] = 0.0;
  const std::vector<program::TensorId> reads{builder.input(shape, list.types.gradient, gradients),
                                             builder.measure({1}, {factor}),
                                             builder.measure({1}, {0.01})};
  const Values weights = normal(list.random, count);
  std::vector<program::TensorId> updates{
      builder.input(shape, has_master ? list.types.weight : DType::f32, weights),
      builder.measure(shape, momenta)};
  if (has_master) updates.push_back(builder.input(shape, DType::f32, weights));
  list.add(builder.finish(
      fmt::format("{}{} factor {} decay {}", program::to_string(shape), has_master ? " master" : "",
                  factor, decay),
      program::Lion{.beta1 = 0.9F, .beta2 = 0.95F, .weight_decay = decay, .has_master = has_master},
      reads, {}, updates));
}

void add_adafactor(CaseList& list, const Shape& shape, bool has_master, double factor,
                   int32_t step) {
  CaseBuilder builder = list.builder();
  const bool factored = shape.rank() == 2;
  const std::vector<program::TensorId> reads{
      builder.gradient(shape, 0.0, 0.1), builder.measure({1}, {factor}),
      builder.measure({1}, {0.01}), builder.index({1}, {static_cast<double>(step)})};
  const auto moments = [&](const Shape& of) {
    Values values = normal(list.random, of.elements(), 0.0, 0.1);
    for (double& value : values) value = step == 1 ? 0.0 : value * value + 1e-4;
    return builder.measure(of, values);
  };
  const Values weights = normal(list.random, shape.elements());
  std::vector<program::TensorId> updates{
      builder.input(shape, has_master ? list.types.weight : DType::f32, weights),
      moments(factored ? Shape{shape[0]} : shape)};
  if (factored) updates.push_back(moments({shape[1]}));
  if (has_master) updates.push_back(builder.input(shape, DType::f32, weights));
  list.add(builder.finish(fmt::format("{}{} factor {} step {}", program::to_string(shape),
                                      has_master ? " master" : "", factor, step),
                          program::Adafactor{.clip_threshold = step == 2 ? 0.5F : 1.0F,
                                             .weight_decay = step == 1 ? 0.0F : 0.1F,
                                             .factored = factored,
                                             .has_master = has_master},
                          reads, {}, updates));
}

void add_momentum(CaseList& list, const Shape& shape, bool nesterov, double factor) {
  CaseBuilder builder = list.builder();
  const auto gradient = builder.gradient(shape, 0.0, 0.1);
  const auto factors = builder.measure({1}, {factor});
  const auto momentum = builder.measure(shape, normal(list.random, shape.elements(), 0.0, 0.1));
  const auto direction = builder.output_activation(shape);
  list.add(builder.finish(
      fmt::format("{} nesterov {} factor {}", program::to_string(shape), nesterov, factor),
      program::MuonMomentum{.momentum = 0.9F, .nesterov = nesterov}, {gradient, factors},
      {direction}, {momentum}));
}

// Of values so small that epsilon counts, and of nothing but zeros.
void add_normalize(CaseList& list, const Shape& shape, double size) {
  CaseBuilder builder = list.builder();
  const auto x = builder.activation(shape, 0.0, size);
  const auto y = builder.output_activation(shape);
  list.add(builder.finish(fmt::format("{} of {}", program::to_string(shape), size),
                          program::Normalize{.epsilon = 1e-3F}, {x}, {y}));
}

void add_muon_step(CaseList& list, const Shape& shape, bool has_master, double factor,
                   int64_t padding) {
  CaseBuilder builder = list.builder();
  const std::vector<program::TensorId> reads{
      builder.activation(shape), builder.measure({1}, {factor}), builder.measure({1}, {0.01})};
  const Values weights = normal(list.random, shape.elements());
  std::vector<program::TensorId> updates{
      builder.input(shape, has_master ? list.types.weight : DType::f32, weights)};
  if (has_master) updates.push_back(builder.input(shape, DType::f32, weights));
  list.add(builder.finish(fmt::format("{}{} factor {} padding {}", program::to_string(shape),
                                      has_master ? " master" : "", factor, padding),
                          program::MuonStep{.weight_decay = 0.1F,
                                            .rate_scale = 3.0F,
                                            .elements = shape.elements() - padding,
                                            .has_master = has_master},
                          reads, {}, updates));
}

void add_muon(CaseList& list) {
  const bool has_master = list.types.weight == DType::bf16;
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 7}, Shape{129, 40}, Shape{3, 16401}}) {
    for (const double factor : {0.25, double(NAN)}) {
      for (const bool nesterov : {false, true}) add_momentum(list, shape, nesterov, factor);
      add_muon_step(list, shape, has_master, factor, 0);
    }
    for (const double size : {0.0, 1e-6, 1.0}) add_normalize(list, shape, size);
  }
  for (const int64_t padding : {1, 9, 20'000})
    add_muon_step(list, Shape{40'000}, has_master, 1.0, padding);
}

// Below and above the blocks of rows, runs of columns and tiles of the kernels.
void add_newer(CaseList& list) {
  const bool has_master = list.types.weight != DType::f32;
  for (const Shape& shape : {Shape{1}, Shape{17}, Shape{65, 3}, Shape{129, 40}, Shape{2307}})
    for (const auto& [factor, decay] :
         {std::pair{1.0, 0.0F}, std::pair{0.25, 0.1F}, std::pair{double(NAN), 0.1F}})
      add_lion(list, shape, has_master, factor, decay);
  for (const Shape& shape : {Shape{1}, Shape{17}, Shape{20000}, Shape{1, 1}, Shape{5, 7},
                             Shape{130, 33}, Shape{3, 16401}, Shape{1100, 3}})
    for (const auto& [factor, step] :
         {std::pair{1.0, 1}, std::pair{0.25, 2}, std::pair{1.0, 1000}, std::pair{double(NAN), 3}})
      add_adafactor(list, shape, has_master, factor, step);
}

void add_cases(CaseList& list) {
  add_norms(list);
  add_loss_scales(list);
  add_newer(list);
  add_muon(list);
  for (const Shape& shape : {Shape{2}, Shape{17}, Shape{256}, Shape{300}, Shape{65, 129},
                             Shape{257, 192}, Shape{3, 16385}})
    for (const auto& [factor, step] :
         {std::pair{1.0, 1}, std::pair{0.25, 2}, std::pair{1.0, 1000}, std::pair{double(NAN), 3}})
      add_adamw_8bit(list, shape, factor, step);
  std::vector<State> states{State::f32_weight};
  if (list.types.weight == DType::bf16) states = {State::master, State::stochastic};
  if (list.types.weight == DType::f16) states = {State::master};
  for (const State state : states)
    for (const Shape& shape :
         {Shape{1}, Shape{3}, Shape{17}, Shape{65, 3}, Shape{129, 40}, Shape{1000}, Shape{2307}})
      for (const auto& [factor, step] :
           {std::pair{1.0, 1}, std::pair{0.25, 2}, std::pair{1.0, 1000}, std::pair{double(NAN), 3}})
        add_adamw(list, shape, state, factor, step);
}

}  // namespace

CaseTable optimizer_cases() {
  using program::Kind;
  return {{Kind::global_norm, Kind::clip_factor, Kind::scale_by, Kind::scaled_clip_factor,
           Kind::adamw, Kind::adamw_8bit, Kind::lion, Kind::adafactor, Kind::muon_momentum,
           Kind::normalize, Kind::muon_step},
          add_cases};
}

}  // namespace snug::backends::test
