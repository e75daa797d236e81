#include <cmath>

#include "operation_case.h"
#include "program/kinds/loss/cross_entropy.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::Shape;
using program::TensorId;

struct Size {
  int64_t tokens, vocab;
};

constexpr Size kSizes[]{{1, 3}, {3, 17}, {17, 65}, {65, 129}, {130, 1000}, {4, 5003}, {3, 20004}};

// What each token counts: one number, or a number each, all of one sign, so that the loss is no
// difference of sums.
TensorId add_factors(CaseBuilder& builder, Random& random, int64_t tokens, bool each) {
  if (!each) return builder.measure({1}, {0.125});
  Values factors = normal(random, tokens, 0.0, 0.25);
  for (double& factor : factors) factor = -std::abs(factor);
  return builder.measure({tokens}, factors);
}

// How many targets carry loss.
enum class Trained { none, some, all };

Values targets_of(Random& random, const Size& size, Trained trained) {
  Values targets = integers(random, size.tokens, 0, size.vocab - 1);
  std::bernoulli_distribution is_trained(0.6);
  for (double& target : targets)
    if (trained == Trained::none || (trained == Trained::some && !is_trained(random)))
      target = -100;
  return targets;
}

std::string name_of(const Size& size, Trained trained) {
  constexpr std::string_view kNames[]{"none", "some", "all"};
  return fmt::format("{} x {}, {} trained", size.tokens, size.vocab,
                     kNames[static_cast<size_t>(trained)]);
}

// Logits in f32 too, as they leave a bf16 product.
void add_plain(CaseList& list, const Size& size, Trained trained, double deviation, DType type,
               bool each = false, float smoothing = 0.0F) {
  const Shape shape{size.tokens, size.vocab};
  const Values logits = normal(list.random, shape.elements(), 0.0, deviation);
  const Values targets = targets_of(list.random, size, trained);
  const std::string name =
      fmt::format("{} deviation {}{}{}", name_of(size, trained), deviation, each ? ", weighed" : "",
                  smoothing > 0 ? fmt::format(", smoothing {}", smoothing) : "");
  {
    CaseBuilder builder = list.builder();
    const std::vector<TensorId> reads{builder.input(shape, type, logits),
                                      builder.index({size.tokens}, targets),
                                      add_factors(builder, list.random, size.tokens, each)};
    const auto losses = builder.output_measure({size.tokens});
    const auto loss = builder.output_measure({1});
    list.add(builder.finish(name, program::CrossEntropy{smoothing}, reads, {losses, loss}));
  }
  CaseBuilder builder = list.builder();
  const std::vector<TensorId> reads{builder.input(shape, type, logits),
                                    builder.index({size.tokens}, targets),
                                    add_factors(builder, list.random, size.tokens, each)};
  const auto dlogits = builder.output_activation(shape);
  list.add(builder.finish(name, program::CrossEntropyGrad{smoothing}, reads, {dlogits}));
}

// What becomes of logits.
struct LogitForm {
  float scale = 1.0F;
  float softcap = 0.0F;
  bool bias = false;
  bool gain = false;
  bool each = false;  // token counts what it counts
  float smoothing = 0.0F;
};

void add_linear(CaseList& list, const Size& size, int64_t width, Trained trained, int64_t chunk,
                const LogitForm& form = {}) {
  const std::string name = fmt::format(
      "{}, width {}, chunks of {}{}{}{}{}{}{}", name_of(size, trained), width, chunk,
      form.scale != 1 ? fmt::format(", times {}", form.scale) : "",
      form.softcap > 0 ? fmt::format(", softcap {}", form.softcap) : "", form.bias ? ", bias" : "",
      form.gain ? ", gain" : "", form.each ? ", weighed" : "",
      form.smoothing > 0 ? fmt::format(", smoothing {}", form.smoothing) : "");
  const auto add_reads = [&](CaseBuilder& builder) {
    std::vector<TensorId> reads{
        builder.activation({size.tokens, width}), builder.weight({size.vocab, width}, 0.0, 0.2),
        builder.index({size.tokens}, targets_of(list.random, size, trained)),
        add_factors(builder, list.random, size.tokens, form.each)};
    if (form.bias) reads.push_back(builder.weight({size.vocab}, 0.0, 0.5));
    if (form.gain) reads.push_back(builder.weight({size.vocab}, 1.0, 0.25));
    return reads;
  };
  {
    CaseBuilder builder = list.builder();
    const auto reads = add_reads(builder);
    const auto losses = builder.output_measure({size.tokens});
    const auto loss = builder.output_measure({1});
    const program::LinearCrossEntropy plain{.chunks = {.rows = chunk},
                                            .scale = form.scale,
                                            .softcap = form.softcap,
                                            .bias = form.bias,
                                            .gain = form.gain,
                                            .smoothing = form.smoothing};
    list.add(builder.finish(name, plain, reads, {losses, loss}));
  }
  for (const int gradient : {0, 1, 2}) {
    CaseBuilder builder = list.builder();
    const auto reads = add_reads(builder);
    std::vector<TensorId> writes{builder.output_measure({size.tokens}), builder.output_measure({1}),
                                 builder.output_activation({size.tokens, width})};
    std::vector<TensorId> updates;
    const Shape weight{size.vocab, width};
    if (gradient == 1) writes.push_back(builder.output_gradient(weight));
    if (gradient == 2) updates.push_back(builder.gradient(weight, 0.0, 0.01));
    // What a head has besides its weight may train without it.
    const bool bias_gradient = form.bias && (gradient > 0 || form.gain);
    const bool gain_gradient = form.gain && gradient != 1;
    for (const bool is_made : {bias_gradient, gain_gradient})
      if (is_made) writes.push_back(builder.output_gradient({size.vocab}));
    const program::LinearCrossEntropyTrain train{.chunks = {.rows = chunk},
                                                 .weight_gradient = gradient > 0,
                                                 .accumulate = gradient > 1,
                                                 .scale = form.scale,
                                                 .softcap = form.softcap,
                                                 .bias = form.bias,
                                                 .bias_gradient = bias_gradient,
                                                 .gain = form.gain,
                                                 .gain_gradient = gain_gradient,
                                                 .smoothing = form.smoothing};
    constexpr std::string_view kNames[]{"", " weight_gradient", " accumulate"};
    list.add(
        builder.finish(fmt::format("{}{}", name, kNames[gradient]), train, reads, writes, updates));
  }
}

void add_cases(CaseList& list) {
  for (const Size& size : kSizes)
    for (const Trained trained : {Trained::none, Trained::some, Trained::all}) {
      add_plain(list, size, trained, 1.0, list.types.activation);
      // Steep logits; a lone row might have a loss of zero except for rounding.
      if (size.tokens >= 17) add_plain(list, size, trained, 20.0, DType::f32);
      if (size.tokens > 1) add_plain(list, size, trained, 1.0, list.types.activation, true);
    }
  for (const Trained trained : {Trained::none, Trained::some, Trained::all}) {
    add_linear(list, {1, 17}, 8, trained, 1);
    add_linear(list, {17, 65}, 16, trained, 4);
    add_linear(list, {65, 129}, 33, trained, 64);
    add_linear(list, {130, 300}, 64, trained, 64);
    add_linear(list, {33, 1000}, 24, trained, 256);
    // Logits that are scaled, capped, or have a bias or a gain; without a size of chunks, too,
    // where a target may have another way.
    for (const LogitForm& form :
         {LogitForm{0.5F, 0.0F}, LogitForm{1.0F, 1.5F}, LogitForm{2.0F, 1.0F},
          LogitForm{.bias = true}, LogitForm{1.0F, 1.5F, true}, LogitForm{.gain = true},
          LogitForm{.bias = true, .gain = true}, LogitForm{1.0F, 1.5F, true, true},
          LogitForm{.each = true}, LogitForm{.scale = 0.5F, .softcap = 1.5F, .each = true},
          LogitForm{.bias = true, .gain = true, .each = true}}) {
      add_linear(list, {17, 65}, 16, trained, 4, form);
      add_linear(list, {66, 130}, 64, trained, 0, form);
    }
    add_linear(list, {3, 20008}, 8, trained, 2, {0.5F, 2.0F});
    add_linear(list, {33, 2500}, 8, trained, 8, {.bias = true});
    add_linear(list, {33, 2500}, 8, trained, 8, {.bias = true, .gain = true});
    // More than one piece of a row for any block, read in vectors.
    add_linear(list, {3, 20008}, 8, trained, 2);
  }
  // At the end, since all cases draw from one sequence.
  for (const float smoothing : {0.1F, 1.0F}) {
    add_plain(list, {17, 65}, Trained::some, 1.0, list.types.activation, false, smoothing);
    add_plain(list, {130, 1000}, Trained::all, 20.0, DType::f32, true, smoothing);
  }
  add_linear(list, {17, 65}, 16, Trained::some, 4, {.smoothing = 0.1F});
  add_linear(list, {66, 2500}, 33, Trained::some, 0, {.each = true, .smoothing = 0.1F});
  add_linear(list, {66, 130}, 64, Trained::all, 0,
             {.softcap = 1.5F, .bias = true, .gain = true, .smoothing = 0.1F});
}

}  // namespace

CaseTable loss_cases() {
  using program::Kind;
  return {{Kind::cross_entropy, Kind::cross_entropy_grad, Kind::linear_cross_entropy,
           Kind::linear_cross_entropy_train},
          add_cases};
}

}  // namespace snug::backends::test
