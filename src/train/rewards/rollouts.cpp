#include "train/rewards/rollouts.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/seconds_since.h"
#include "engine/questions/prompt.h"
#include "text/unicode/utf8.h"
#include "train/rewards/answer_metrics.h"

namespace snug::train {
namespace {

// So many answers of a generation are samples.
constexpr size_t kSamples = 4;

// The names of measures that users look at.
constexpr std::string_view kShownNames[] = {"reward", kMeanLengthName};

double mean_entropy(std::span<const LearnedAnswer> answers) {
  double sum = 0;
  int64_t tokens = 0;
  for (const LearnedAnswer& answer : answers) {
    sum = std::accumulate(answer.entropies.begin(), answer.entropies.end(), sum);
    tokens += std::ssize(answer.entropies);
  }
  return sum / static_cast<double>(std::max<int64_t>(1, tokens));
}

}  // namespace

Rollouts::Rollouts(const formats::Recipe& recipe, const plan::TrainingSpec& spec,
                   const std::vector<RewardedPrompt>& prompts, const text::Tokenizer& tokenizer,
                   RewardFunctions& rewards, runtime::Executor& executor)
    : recipe_(recipe),
      spec_(spec),
      prompts_(prompts),
      tokenizer_(tokenizer),
      executor_(executor),
      rewards_(rewards) {}

std::optional<Generation> Rollouts::run(int64_t number, std::vector<int64_t> prompts,
                                        const std::atomic<int>& stop_signal) {
  const plan::RolloutSizes& sizes = *spec_.rollouts;
  times_ = {};
  reward_seconds_ = 0;
  const int64_t first_sample = number * sizes.answers * (1 + sizes.resamples);
  std::optional<Rewarded> all = rewarded(prompts, first_sample, stop_signal);
  int64_t resampled = 0;
  for (int64_t attempt = 1; all && attempt <= sizes.resamples; ++attempt) {
    const std::vector<size_t> equal = equal_groups(*all);
    if (equal.empty()) break;
    resampled += std::ssize(equal);
    auto others = rewarded(other_prompts(number, attempt, equal.size()),
                           first_sample + attempt * sizes.answers, stop_signal);
    if (!others) return std::nullopt;
    const auto group = static_cast<size_t>(sizes.group);
    const size_t functions = rewards_.names().size();
    for (size_t i = 0; i < equal.size(); ++i) {
      const auto replace = [&](auto& of_all, auto& of_others, size_t each) {
        std::move(of_others.begin() + static_cast<std::ptrdiff_t>(i * group * each),
                  of_others.begin() + static_cast<std::ptrdiff_t>((i + 1) * group * each),
                  of_all.begin() + static_cast<std::ptrdiff_t>(equal[i] * group * each));
      };
      replace(all->answers, others->answers, 1);
      replace(all->texts, others->texts, 1);
      replace(all->rewards, others->rewards, functions);
      replace(all->sums, others->sums, 1);
    }
  }
  if (!all) return std::nullopt;
  set_advantages(*all);
  measure(*all, resampled);
  return Generation{.answers = std::move(all->answers)};
}

// What nobody asks for any more of an answer that was judged goes, so that the host keeps little of
// each (plan::evaluation_host_bytes).
void Rollouts::evaluate() {
  const int64_t group = spec_.rollouts->group;
  times_ = {};
  reward_seconds_ = 0;
  std::vector<int64_t> prompts(prompts_.size());
  std::iota(prompts.begin(), prompts.end(), int64_t{0});
  const std::atomic<int> never{0};
  Rewarded all;
  all.answers.reserve(prompts.size() * static_cast<size_t>(group));
  const auto at_once = static_cast<size_t>(spec_.rollouts->prompts());
  for (size_t first = 0; first < prompts.size(); first += at_once) {
    const auto some = std::span(prompts).subspan(first, std::min(at_once, prompts.size() - first));
    Rewarded more = rewarded(some, static_cast<int64_t>(first) * group, never).value();
    for (LearnedAnswer& answer : more.answers) {
      answer.log_probabilities = {};
      all.answers.push_back(std::move(answer));
    }
    if (all.texts.size() < kSamples) std::ranges::move(more.texts, std::back_inserter(all.texts));
    all.rewards.insert(all.rewards.end(), more.rewards.begin(), more.rewards.end());
    all.sums.insert(all.sums.end(), more.sums.begin(), more.sums.end());
  }
  measure(all, 0);
  measures_.push_back({std::string(kStandardErrorName), standard_error_of(all.sums, group)});
}

std::vector<engine::Request> Rollouts::requests_to(std::span<const int64_t> prompts,
                                                   int64_t first_sample) const {
  const engine::SamplingOptions sampling{.temperature = recipe_.temperature,
                                         .top_k = recipe_.top_k,
                                         .top_p = recipe_.top_p,
                                         .min_p = recipe_.min_p,
                                         .repetition_penalty = recipe_.repetition_penalty,
                                         .seed = recipe_.seed};
  std::vector<engine::Request> requests;
  requests.reserve(prompts.size() * static_cast<size_t>(spec_.rollouts->group));
  for (const int64_t index : prompts) {
    const RewardedPrompt& prompt = prompts_[static_cast<size_t>(index)];
    const engine::AnswerEnd end{.ids =
                                    engine::end_ids(recipe_, tokenizer_, prompt.is_conversation)};
    for (int64_t i = 0; i < spec_.rollouts->group; ++i) {
      const int64_t sample = first_sample + std::ssize(requests);
      requests.push_back({.prompt = prompt.ids,
                          .max_new_tokens = spec_.rollouts->completion_tokens,
                          .sampling = sampling,
                          .end = end,
                          .log_probabilities = 0,
                          .entropies = true,
                          .sample = sample});
    }
  }
  return requests;
}

// The weights have changed since the last time, so nothing that was read then is of use.
std::optional<std::vector<engine::Answer>> Rollouts::ask(std::span<const engine::Request> requests,
                                                         const std::atomic<int>& stop_signal) {
  engine::Engine engine(executor_, spec_.model, *spec_.generation, {.tokenizer = &tokenizer_});
  std::vector<engine::Answer> answers(requests.size());
  size_t ended = 0;
  std::vector<engine::RequestId> ids;
  ids.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    ids.push_back(engine.submit(requests[i], [&, i](const engine::AnswerEvent& event) {
      engine::add_to(answers[i], event);
      if (event.finish) ++ended;
    }));
  while (ended < requests.size() && stop_signal == 0) engine.step();
  const engine::EngineTimes& times = engine.times();
  times_.prefill_seconds += times.prefill_seconds;
  times_.decode_seconds += times.decode_seconds;
  times_.prefill_tokens += times.prefill_tokens;
  times_.decode_tokens += times.decode_tokens;
  times_.decode_runs += times.decode_runs;
  if (ended == requests.size()) return answers;
  for (const engine::RequestId id : ids) engine.cancel(id);
  return std::nullopt;
}

std::optional<Rollouts::Rewarded> Rollouts::rewarded(std::span<const int64_t> prompts,
                                                     int64_t first_sample,
                                                     const std::atomic<int>& stop_signal) {
  auto answers = ask(requests_to(prompts, first_sample), stop_signal);
  if (!answers) return std::nullopt;
  Rewarded all;
  all.answers.reserve(answers->size());
  all.texts.reserve(answers->size());
  for (size_t i = 0; i < answers->size(); ++i) {
    engine::Answer& answer = (*answers)[i];
    all.texts.push_back(text::repair_utf8(answer.text));
    all.answers.push_back(
        {.prompt = prompts[i / static_cast<size_t>(spec_.rollouts->group)],
         .ids = std::move(answer.ids),
         .log_probabilities = {answer.log_probabilities.begin(), answer.log_probabilities.end()},
         .entropies = {answer.entropies.begin(), answer.entropies.end()},
         .ended = answer.finish == engine::Finish::stop});
  }
  judge(all);
  return all;
}

void Rollouts::judge(Rewarded& all) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<RewardedAnswer> judged;
  judged.reserve(all.answers.size());
  for (size_t i = 0; i < all.answers.size(); ++i) {
    const RewardedPrompt& prompt = prompts_[static_cast<size_t>(all.answers[i].prompt)];
    judged.push_back({.prompt = prompt.shown,
                      .answer = all.texts[i],
                      .record = &prompt.record,
                      .tokens = std::ssize(all.answers[i].ids),
                      .ended = all.answers[i].ended});
  }
  all.rewards = rewards_.judge(judged);
  all.sums = weighted_rewards(all.rewards, rewards_.weights());
  reward_seconds_ += base::seconds_since(start);
}

std::vector<size_t> Rollouts::equal_groups(const Rewarded& all) const {
  const auto group = static_cast<size_t>(spec_.rollouts->group);
  std::vector<size_t> equal;
  for (size_t i = 0; i < all.sums.size() / group; ++i)
    if (!(deviation_of_rewards(std::span(all.sums).subspan(i * group, group)) > kEqualRewards))
      equal.push_back(i);
  return equal;
}

std::vector<int64_t> Rollouts::other_prompts(int64_t number, int64_t attempt, size_t count) const {
  const auto seed = static_cast<uint64_t>(recipe_.seed);
  const base::PhiloxKey key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  std::vector<int64_t> others(count);
  for (size_t i = 0; i < count; ++i) {
    const base::PhiloxCounter words =
        base::philox({static_cast<uint32_t>(number), static_cast<uint32_t>(attempt),
                      static_cast<uint32_t>(i), 0x70726f6dU},
                     key);
    others[i] =
        static_cast<int64_t>((static_cast<uint64_t>(words[0]) << 32 | words[1]) % prompts_.size());
  }
  return others;
}

void Rollouts::set_advantages(Rewarded& all) const {
  const int64_t group = spec_.rollouts->group;
  const std::vector<double> advantages =
      recipe_.advantage == formats::Advantage::rloo
          ? leave_one_out_advantages(all.sums, group)
          : group_advantages(all.sums, group, recipe_.scale_rewards);
  for (size_t i = 0; i < advantages.size(); ++i) all.answers[i].advantage = advantages[i];
}

void Rollouts::measure(const Rewarded& all, int64_t resampled) {
  measures_ = reward_metrics({.rewards = all.rewards,
                              .names = rewards_.names(),
                              .weights = rewards_.weights(),
                              .group = spec_.rollouts->group},
                             recipe_.scale_rewards);
  std::vector<int64_t> lengths;
  std::vector<bool> ended;
  lengths.reserve(all.answers.size());
  ended.reserve(all.answers.size());
  for (const LearnedAnswer& answer : all.answers) {
    lengths.push_back(std::ssize(answer.ids));
    ended.push_back(answer.ended);
  }
  std::ranges::move(length_metrics(lengths, ended), std::back_inserter(measures_));
  measures_.push_back({std::string(kEntropyName), mean_entropy(all.answers)});
  if (spec_.rollouts->resamples > 0)
    measures_.push_back({"resampled_groups", static_cast<double>(resampled)});
  measures_.push_back(
      {std::string(kRolloutSecondsName), times_.prefill_seconds + times_.decode_seconds});
  measures_.push_back({"reward_seconds", reward_seconds_});
  for (NamedMeasure& measure : measures_)
    measure.is_shown = std::ranges::find(kShownNames, measure.name) != std::end(kShownNames);
  samples_.clear();
  const auto functions = static_cast<std::ptrdiff_t>(rewards_.names().size());
  for (size_t i = 0; i < std::min(all.answers.size(), kSamples); ++i) {
    const RewardedPrompt& prompt = prompts_[static_cast<size_t>(all.answers[i].prompt)];
    const auto first = all.rewards.begin() + static_cast<std::ptrdiff_t>(i) * functions;
    samples_.push_back({.set = "training",
                        .prompt = prompt.shown,
                        .answer = all.texts[i],
                        .expected = prompt.record.answer,
                        .scores = {first, first + functions}});
  }
}

}  // namespace snug::train
