#include <array>
#include <cmath>
#include <vector>

#include "attention_bounds.h"
#include "operation_case.h"
#include "program/kinds/recurrence/causal_convolution.h"
#include "program/kinds/recurrence/delta_gates.h"
#include "program/kinds/recurrence/gated_delta_rule.h"

namespace snug::backends::test {
namespace {

using program::Shape;

// What a kernel must not read: tokens in no segment are NaN.
void spoil_outside(OperationCase& operation_case, const std::vector<program::TensorId>& ids,
                   const Bounds& bounds) {
  std::vector<bool> is_inside(static_cast<size_t>(bounds.q_tokens));
  for (size_t i = 0; i < bounds.queries.size(); i += 2)
    for (auto t = static_cast<size_t>(bounds.queries[i]);
         t < static_cast<size_t>(bounds.queries[i + 1]); ++t)
      is_inside[t] = true;
  for (const program::TensorId id : ids) {
    if (!operation_case.inputs.contains(id)) continue;
    Values& values = operation_case.inputs[id];
    const size_t columns = values.size() / is_inside.size();
    for (size_t i = 0; i < values.size(); ++i)
      if (!is_inside[i / columns]) values[i] = std::nan("");
  }
}

struct Convolved {
  int64_t columns, width;
};

void add_convolutions(CaseList& list, const Convolved& size, const Bounds& bounds, bool views,
                      bool plain = false) {
  const Shape rows{bounds.q_tokens, size.columns};
  const Shape filters{size.columns, 1, size.width};
  const std::string name = fmt::format("{} columns width {} {}{}", size.columns, size.width,
                                       bounds.name, plain ? " plain" : "");
  const auto segments = [&](CaseBuilder& builder) {
    return builder.index({bounds.segments(), 2}, bounds.queries);
  };
  CaseBuilder forward = list.builder();
  if (views) forward.use_views();
  const auto x = forward.activation(rows);
  const auto w = forward.weight(filters, 0.5, 0.5);
  const auto y = forward.output_activation(rows);
  list.add(forward.finish(name, program::CausalConvolution{.plain = plain},
                          {x, w, segments(forward)}, {y}));
  spoil_outside(list.cases.back(), {x}, bounds);
  for (const bool trains : {false, true}) {
    CaseBuilder backward = list.builder();
    if (views) backward.use_views();
    const auto dy = backward.activation(rows, 0.5, 0.5);
    const auto x_again = backward.activation(rows, 0.5, 0.5);
    const auto w_again = backward.weight(filters, 0.5, 0.5);
    std::vector<program::TensorId> writes{backward.output_activation(rows)};
    if (trains) writes.push_back(backward.output_gradient(filters));
    list.add(backward.finish(name + (trains ? " trained" : ""),
                             program::CausalConvolutionGrad{trains, plain},
                             {dy, x_again, w_again, segments(backward)}, writes));
    spoil_outside(list.cases.back(), {dy, x_again}, bounds);
  }
}

void add_delta_gates(CaseList& list, int64_t tokens, int64_t heads, bool views) {
  const Shape rows{tokens, heads};
  const std::string name = fmt::format("{} x {}", tokens, heads);
  CaseBuilder forward = list.builder();
  if (views) forward.use_views();
  const auto a = forward.activation(rows, 0.0, 4.0);
  const auto b = forward.activation(rows);
  const auto a_log = forward.weight({heads});
  const auto dt_bias = forward.weight({heads});
  list.add(forward.finish(name, program::DeltaGates{}, {a, b, a_log, dt_bias},
                          {forward.output_measure(rows), forward.output_measure(rows)}));
  for (const bool trains : {false, true}) {
    CaseBuilder backward = list.builder();
    if (views) backward.use_views();
    const auto measured = [&] {
      return backward.measure(rows, normal(list.random, tokens * heads, 0.5, 0.2));
    };
    const std::vector<program::TensorId> reads{measured(),
                                               measured(),
                                               backward.activation(rows, 0.5, 0.5),
                                               backward.activation(rows),
                                               backward.weight({heads}),
                                               backward.weight({heads})};
    std::vector<program::TensorId> writes{backward.output_activation(rows),
                                          backward.output_activation(rows)};
    if (trains)
      writes.insert(writes.end(),
                    {backward.output_gradient({heads}), backward.output_gradient({heads})});
    list.add(backward.finish(name + (trains ? " trained" : ""), program::DeltaGatesGrad{trains},
                             reads, writes));
  }
}

struct Heads {
  int64_t key_heads, value_heads, dk, dv;
};

// g is small enough for states to matter over several chunks, and large at some tokens.
Values decays(Random& random, int64_t count) {
  Values values = normal(random, count, 0.0, 0.3);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 29 == 7 ? -4.0 : -values[i] * values[i];
  return values;
}

Values written(Random& random, int64_t count) {
  Values values = normal(random, count);
  for (double& value : values) value = 1.0 / (1.0 + std::exp(-value));
  return values;
}

void add_delta_rules(CaseList& list, const Heads& heads, const Bounds& bounds, bool views) {
  const Shape keys{bounds.q_tokens, heads.key_heads * heads.dk};
  const Shape values{bounds.q_tokens, heads.value_heads * heads.dv};
  const Shape gates{bounds.q_tokens, heads.value_heads};
  const std::string name = fmt::format("heads {}/{} of {} and {} {}", heads.key_heads,
                                       heads.value_heads, heads.dk, heads.dv, bounds.name);
  // q, k, v, g, beta and bounds; keys have something in common, so that they write over each other.
  const auto inputs = [&](CaseBuilder& builder) {
    return std::vector{builder.activation(keys, 0.3, 1.0),
                       builder.activation(keys, 0.3, 1.0),
                       builder.activation(values),
                       builder.measure(gates, decays(list.random, gates.elements())),
                       builder.measure(gates, written(list.random, gates.elements())),
                       builder.index({bounds.segments(), 2}, bounds.queries)};
  };
  CaseBuilder forward = list.builder();
  if (views) forward.use_views();
  const std::vector<program::TensorId> reads = inputs(forward);
  list.add(forward.finish(name, program::GatedDeltaRule{heads.key_heads, heads.value_heads}, reads,
                          {forward.output_activation(values)}));
  spoil_outside(list.cases.back(), {reads.begin(), reads.end() - 1}, bounds);
  CaseBuilder backward = list.builder();
  if (views) backward.use_views();
  std::vector<program::TensorId> all = inputs(backward);
  all.insert(all.begin(), backward.activation(values));
  list.add(backward.finish(name, program::GatedDeltaRuleGrad{heads.key_heads, heads.value_heads},
                           all,
                           {backward.output_activation(keys), backward.output_activation(keys),
                            backward.output_activation(values), backward.output_measure(gates),
                            backward.output_measure(gates)}));
  spoil_outside(list.cases.back(), {all.begin(), all.end() - 1}, bounds);
}

// Places and known tokens of segments: each has a place of its own, and every other one is new.
Values places_of(const Bounds& bounds) {
  Values slots;
  slots.reserve(bounds.queries.size());
  for (int64_t segment = 0; segment < bounds.segments(); ++segment) {
    slots.push_back(static_cast<double>((segment + 1) % (bounds.segments() + 1)));
    slots.push_back(static_cast<double>(segment % 2 == 0 ? segment + 2 : 0));
  }
  return slots;
}

// Segments that go on with sequences, of which one more has a place.
void add_cached(CaseList& list, const Heads& heads, int64_t width, const Bounds& bounds,
                bool plain = false) {
  const int64_t places = bounds.segments() + 1;
  const int64_t keys = heads.key_heads * heads.dk;
  const int64_t values = heads.value_heads * heads.dv;
  const auto segments = [&](CaseBuilder& builder) {
    return builder.index({bounds.segments(), 2}, bounds.queries);
  };
  const auto slots = [&](CaseBuilder& builder) {
    return builder.index({bounds.segments(), 2}, places_of(bounds));
  };
  const std::string name = fmt::format("{} cached", bounds.name);
  CaseBuilder convolution = list.builder();
  const Shape rows{bounds.q_tokens, keys};
  const auto x = convolution.activation(rows);
  const auto w = convolution.weight({keys, 1, width}, 0.5, 0.5);
  const auto kept = convolution.activation({places, (width - 1) * keys});
  const auto y = convolution.output_activation(rows);
  list.add(convolution.finish(name, program::CausalConvolution{.cached = true, .plain = plain},
                              {x, w, segments(convolution), slots(convolution)}, {y}, {kept}));
  spoil_outside(list.cases.back(), {x}, bounds);
  CaseBuilder rule = list.builder();
  const Shape gates{bounds.q_tokens, heads.value_heads};
  const Shape states{places, heads.value_heads * heads.dk * heads.dv};
  const std::vector<program::TensorId> reads{
      rule.activation(rows, 0.3, 1.0),
      rule.activation(rows, 0.3, 1.0),
      rule.activation({bounds.q_tokens, values}),
      rule.measure(gates, decays(list.random, gates.elements())),
      rule.measure(gates, written(list.random, gates.elements())),
      segments(rule),
      slots(rule)};
  const auto state = rule.measure(states, normal(list.random, states.elements(), 0.0, 0.3));
  list.add(rule.finish(name, program::GatedDeltaRule{heads.key_heads, heads.value_heads, true},
                       reads, {rule.output_activation({bounds.q_tokens, values})}, {state}));
  spoil_outside(list.cases.back(), {reads.begin(), reads.end() - 2}, bounds);
}

void add_recurrence_cases(CaseList& list) {
  add_convolutions(list, {1, 1}, whole(1), false);
  add_convolutions(list, {40, 3}, whole(70), false);
  for (const bool views : {false, true})
    add_convolutions(list, {17, 4}, packed(list.random, 33), views);
  add_convolutions(list, {300, 8}, rows_of({5, 1, 30}), false);
  for (const bool views : {false, true}) {
    add_delta_gates(list, 1, 1, views);
    add_delta_gates(list, 33, 7, views);
    add_delta_gates(list, 300, 2, views);
  }
  add_delta_rules(list, {1, 1, 4, 4}, whole(1), false);
  add_delta_rules(list, {1, 3, 5, 33}, whole(17), false);
  add_delta_rules(list, {2, 4, 8, 6}, packed(list.random, 70), false);
  add_delta_rules(list, {1, 2, 8, 6}, packed(list.random, 20), true);
  // Several chunks, of which the first and the last are parts, and heads of several blocks.
  add_delta_rules(list, {1, 1, 8, 12}, rows_of({40, 1, 100}), false);
  add_delta_rules(list, {1, 1, 33, 40}, whole(66), true);
  add_cached(list, {2, 4, 5, 6}, 4, rows_of({1, 1, 1}));
  add_cached(list, {1, 2, 8, 33}, 8, rows_of({2, 70, 5, 1}));
  add_cached(list, {1, 1, 300, 2}, 4, decode(list.random, 7, 40, true));
  for (const bool views : {false, true})
    add_convolutions(list, {40, 3}, packed(list.random, 33), views, true);
  add_cached(list, {2, 4, 5, 6}, 3, rows_of({2, 70, 1}), true);
}

}  // namespace

CaseTable recurrence_cases() {
  using program::Kind;
  return {{Kind::causal_convolution, Kind::causal_convolution_grad, Kind::delta_gates,
           Kind::delta_gates_grad, Kind::gated_delta_rule, Kind::gated_delta_rule_grad},
          add_recurrence_cases};
}

}  // namespace snug::backends::test
