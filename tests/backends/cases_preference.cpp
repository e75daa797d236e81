// Losses of whole sequences: sums over segments, and pairs of answers.
#include <algorithm>
#include <cmath>

#include "operation_case.h"
#include "program/kinds/loss/dpo.h"
#include "program/kinds/loss/grpo.h"
#include "program/kinds/loss/kto.h"
#include "program/kinds/loss/orpo.h"
#include "program/kinds/loss/segment_sums.h"

namespace snug::backends::test {
namespace {

using program::Shape;
using program::TensorId;

struct Layout {
  int64_t tokens, segments, width;
  int64_t used;  // segments that hold tokens; the others are empty, at the end
};

constexpr Layout kLayouts[]{{1, 2, 8, 1},    {2, 2, 3, 2},     {17, 4, 16, 4},   {65, 2, 33, 2},
                            {130, 6, 24, 4}, {300, 16, 64, 0}, {700, 40, 8, 40}, {64, 600, 4, 30}};

// Few segments, each of which is a block on a card; the last have more tokens than a block threads.
constexpr Layout kAnswerLayouts[]{{1, 2, 8, 1},    {17, 4, 16, 4},   {65, 2, 33, 2},
                                  {130, 6, 24, 4}, {300, 16, 64, 0}, {700, 3, 8, 2}};

// Segments of random lengths side by side, tokens after the last one in none.
Values bounds_of(CaseList& list, const Layout& layout) {
  Values cuts = integers(list.random, layout.used, 1, std::max<int64_t>(1, layout.tokens));
  std::sort(cuts.begin(), cuts.end());
  Values bounds;
  double begin = 0;
  for (const double end : cuts) {
    bounds.push_back(begin);
    bounds.push_back(end);
    begin = end;
  }
  bounds.resize(static_cast<size_t>(2 * layout.segments), static_cast<double>(layout.tokens));
  return bounds;
}

void add_sums(CaseList& list, const Layout& layout, float scale) {
  const std::string name = fmt::format("{} of {} segments, {} tokens, times {}", layout.used,
                                       layout.segments, layout.tokens, scale);
  const Shape tokens{layout.tokens};
  const Shape segments{layout.segments};
  {
    CaseBuilder builder = list.builder();
    const TensorId values = builder.measure(tokens, normal(list.random, layout.tokens, 2.0, 0.5));
    const TensorId bounds = builder.index({layout.segments, 2}, bounds_of(list, layout));
    list.add(builder.finish(name, program::SumSegments{scale}, {values, bounds},
                            {builder.output_measure(segments)}));
  }
  CaseBuilder builder = list.builder();
  const TensorId sums = builder.measure(segments, normal(list.random, layout.segments));
  const TensorId bounds = builder.index({layout.segments, 2}, bounds_of(list, layout));
  list.add(builder.finish(name, program::SpreadSegments{scale}, {sums, bounds},
                          {builder.output_measure(tokens)}));
}

void add_weighed(CaseList& list, const Layout& layout, bool views) {
  CaseBuilder builder = list.builder();
  if (views) builder.use_views(8, 16);
  const Shape shape{layout.tokens, layout.width};
  const TensorId x = builder.activation(shape);
  const TensorId weights =
      builder.measure({layout.tokens}, normal(list.random, layout.tokens, 0.0, 0.1));
  list.add(builder.finish(fmt::format("{} x {}", layout.tokens, layout.width), program::WeighRows{},
                          {x, weights}, {builder.output_activation(shape)}));
}

// `spread`: of the log-probabilities, whose differences make small or steep margins.
void add_pairs(CaseList& list, const Layout& layout, const program::Dpo& dpo, double spread) {
  const std::string name = fmt::format(
      "{}{} of {} segments, beta {}, spread {}{}",
      dpo.form == base::PreferenceLoss::sigmoid ? std::string()
                                                : fmt::format("{}, ", base::word_of(dpo.form)),
      layout.used, layout.segments, dpo.beta, spread, dpo.reference ? "" : ", no reference");
  const Shape segments{layout.segments};
  const auto add_reads = [&](CaseBuilder& builder) {
    const auto add = [&] {
      return builder.measure(segments, normal(list.random, layout.segments, -20.0, spread));
    };
    std::vector<TensorId> reads{add()};
    if (dpo.reference) reads.push_back(add());
    reads.push_back(builder.index({layout.segments, 2}, bounds_of(list, layout)));
    reads.push_back(builder.measure({1}, {0.125}));
    if (dpo.means) reads.push_back(builder.index({layout.segments, 2}, bounds_of(list, layout)));
    return reads;
  };
  {
    CaseBuilder builder = list.builder();
    const auto reads = add_reads(builder);
    const auto measures = builder.output_measure({program::kPreferenceMeasureCount});
    const auto loss = builder.output_measure({1});
    list.add(builder.finish(name, dpo, reads, {measures, loss}));
  }
  CaseBuilder builder = list.builder();
  const auto reads = add_reads(builder);
  list.add(builder.finish(name,
                          program::DpoGrad{dpo.beta, dpo.form, dpo.label_smoothing, dpo.means,
                                           dpo.reference, dpo.target_margin},
                          reads, {builder.output_measure(segments)}));
}

// Each form of the loss once.
void add_forms(CaseList& list, const Layout& layout) {
  for (const auto& word : words_of(base::PreferenceLoss())) {
    const bool is_smoothed =
        word.value == base::PreferenceLoss::exo_pair || word.value == base::PreferenceLoss::robust;
    add_pairs(list, layout,
              {.beta = 0.25F,
               .form = word.value,
               .label_smoothing = is_smoothed ? 0.125F : 0.0F,
               .means = base::compares_means(word.value)},
              3.0);
  }
}

// Sums of log-probabilities, from nearly certain answers to unlikely ones.
Values log_probabilities(CaseList& list, const Layout& layout, double spread) {
  Values values = normal(list.random, layout.segments, 0.0, spread);
  for (double& value : values) value = -0.5 - std::abs(value);
  return values;
}

void add_odds(CaseList& list, const Layout& layout, float beta, double spread) {
  const std::string name = fmt::format("{} of {} segments, beta {}, spread {}", layout.used,
                                       layout.segments, beta, spread);
  const Shape segments{layout.segments};
  {
    CaseBuilder builder = list.builder();
    const auto policy = builder.measure(segments, log_probabilities(list, layout, spread));
    const auto nll = builder.measure(segments, normal(list.random, layout.segments, 30.0, 8.0));
    const auto bounds = builder.index({layout.segments, 2}, bounds_of(list, layout));
    const auto pairs = builder.measure({1}, {0.125});
    const auto tokens = builder.measure({1}, {0.02});
    const auto measures = builder.output_measure({program::kOddsMeasureCount});
    const auto loss = builder.output_measure({1});
    list.add(builder.finish(name, program::Orpo{beta}, {policy, nll, bounds, pairs, tokens},
                            {measures, loss}));
  }
  CaseBuilder builder = list.builder();
  const auto policy = builder.measure(segments, log_probabilities(list, layout, spread));
  const auto bounds = builder.index({layout.segments, 2}, bounds_of(list, layout));
  const auto pairs = builder.measure({1}, {0.125});
  const auto tokens = builder.measure({1}, {0.02});
  const auto dpolicy = builder.output_measure(segments);
  const auto dnll = builder.output_measure(segments);
  list.add(builder.finish(name, program::OrpoGrad{beta}, {policy, bounds, pairs, tokens},
                          {dpolicy, dnll}));
}

// `kl`: the sum that the divergence is estimated of; below 0 it is none.
void add_labels(CaseList& list, const Layout& layout, float beta, double spread, double kl) {
  const std::string name =
      fmt::format("{} examples, beta {}, spread {}, kl {}", layout.segments / 2, beta, spread, kl);
  const Shape segments{layout.segments};
  const auto add_reads = [&](CaseBuilder& builder) {
    return std::vector<TensorId>{
        builder.measure(segments, normal(list.random, layout.segments, -20.0, spread)),
        builder.measure(segments, normal(list.random, layout.segments, -20.0, spread)),
        builder.index({layout.segments / 2}, integers(list.random, layout.segments / 2, -1, 1))};
  };
  {
    CaseBuilder builder = list.builder();
    list.add(builder.finish(name, program::KlEstimate{}, add_reads(builder),
                            {builder.output_measure({2})}));
  }
  {
    CaseBuilder builder = list.builder();
    auto reads = add_reads(builder);
    for (const Values& values : {Values{kl, 6.0}, Values{0.125}, Values{0.25}, Values{0.5}})
      reads.push_back(builder.measure({static_cast<int64_t>(values.size())}, values));
    const auto measures = builder.output_measure({program::kLabelMeasureCount});
    const auto loss = builder.output_measure({1});
    list.add(builder.finish(name, program::Kto{beta, 0.75F, 1.5F}, reads, {measures, loss}));
  }
  CaseBuilder builder = list.builder();
  auto reads = add_reads(builder);
  reads.push_back(builder.measure({2}, {kl, 6.0}));
  reads.push_back(builder.measure({1}, {0.125}));
  list.add(builder.finish(name, program::KtoGrad{beta, 0.75F, 1.5F}, reads,
                          {builder.output_measure(segments)}));
}

// Log-ratios that are clipped at both ends with each sign of the advantage, and tokens that are not
// learned. Log-ratios are sixteenths, none of which is near a bound, where results jump. `spread`:
// of the log-ratios.
void add_answers(CaseList& list, const Layout& layout, const program::Grpo& grpo, double spread) {
  const std::string name = fmt::format(
      "{} of {} segments, {}{}{}, delta {}, beta {}, spread {}", layout.used, layout.segments,
      grpo.sequence ? "ratio of sequences" : "ratio of tokens", grpo.old ? "" : ", no old",
      grpo.corrected   ? ", corrected kl"
      : grpo.reference ? ", kl"
                       : "",
      grpo.delta, grpo.beta, spread);
  const Shape tokens{layout.tokens};
  const Shape segments{layout.segments};
  const auto add_reads = [&](CaseBuilder& builder, bool measures) {
    const Values old = normal(list.random, layout.tokens, -2.0, 1.0);
    const auto near_old = [&](double width) {
      Values values = normal(list.random, layout.tokens, 0.0, width);
      std::transform(values.begin(), values.end(), old.begin(), values.begin(),
                     [](double moved, double from) { return from + std::round(16 * moved) / 16; });
      return values;
    };
    Values weights = integers(list.random, layout.tokens, 0, 3);
    for (double& weight : weights) weight = std::max(weight - 1.0, 0.0) / 64;
    std::vector<TensorId> reads{
        builder.measure(tokens, near_old(spread)),
        builder.index({layout.segments, 2}, bounds_of(list, layout)),
        builder.measure(segments, normal(list.random, layout.segments, 0.0, 1.5)),
        builder.measure(tokens, weights)};
    if (measures)
      for (const double inverse : {0.02, 0.125}) reads.push_back(builder.measure({1}, {inverse}));
    if (grpo.old) reads.push_back(builder.measure(tokens, old));
    if (grpo.reference) reads.push_back(builder.measure(tokens, near_old(1.0)));
    return reads;
  };
  {
    CaseBuilder builder = list.builder();
    const auto reads = add_reads(builder, true);
    const auto terms = builder.output_measure({layout.segments, program::kRewardedTermCount});
    const auto measures = builder.output_measure({program::kRewardedMeasureCount});
    const auto loss = builder.output_measure({1});
    list.add(builder.finish(name, grpo, reads, {terms, measures, loss}));
  }
  CaseBuilder builder = list.builder();
  const auto reads = add_reads(builder, false);
  list.add(
      builder.finish(name,
                     program::GrpoGrad{grpo.epsilon, grpo.epsilon_high, grpo.delta, grpo.beta,
                                       grpo.sequence, grpo.old, grpo.reference, grpo.corrected},
                     reads, {builder.output_measure(tokens)}));
}

void add_rewarded(CaseList& list, const Layout& layout) {
  for (const bool sequence : {false, true}) {
    add_answers(list, layout, {.sequence = sequence}, 0.0);
    add_answers(list, layout, {.sequence = sequence, .old = true}, sequence ? 1.0 : 0.3);
    add_answers(list, layout,
                {.epsilon = 0.1F,
                 .epsilon_high = 0.28F,
                 .delta = 1.5F,
                 .beta = 0.04F,
                 .sequence = sequence,
                 .old = true,
                 .reference = true},
                sequence ? 2.0 : 0.5);
    add_answers(
        list, layout,
        {.beta = 0.5F, .sequence = sequence, .old = true, .reference = true, .corrected = true},
        sequence ? 1.0 : 0.3);
  }
}

void add_cases(CaseList& list) {
  for (const Layout& layout : kLayouts) {
    for (const float scale : {1.0F, -1.0F}) add_sums(list, layout, scale);
    for (const bool views : {false, true}) add_weighed(list, layout, views);
    add_pairs(list, layout, {.beta = 0.1F}, 1.0);
    add_pairs(list, layout, {.beta = 0.5F}, 6.0);
    add_odds(list, layout, 0.1F, 3.0);
    add_odds(list, layout, 0.5F, 40.0);
    add_labels(list, layout, 0.1F, 1.0, 4.5);
    add_labels(list, layout, 0.5F, 6.0, -3.0);
  }
  // At the end, since all cases draw from one sequence.
  add_forms(list, kLayouts[0]);
  for (const Layout& layout : kAnswerLayouts) add_rewarded(list, layout);
  for (const bool means : {false, true})
    for (const Layout& layout : {kLayouts[0], kLayouts[4], kLayouts[6]})
      add_pairs(list, layout,
                {.beta = 2.0F,
                 .label_smoothing = 0.125F,
                 .means = means,
                 .reference = false,
                 .target_margin = 0.75F},
                3.0);
}

}  // namespace

CaseTable preference_cases() {
  using program::Kind;
  return {{Kind::sum_segments, Kind::spread_segments, Kind::weigh_rows, Kind::dpo, Kind::dpo_grad,
           Kind::orpo, Kind::orpo_grad, Kind::kl_estimate, Kind::kto, Kind::kto_grad, Kind::grpo,
           Kind::grpo_grad},
          add_cases};
}

}  // namespace snug::backends::test
