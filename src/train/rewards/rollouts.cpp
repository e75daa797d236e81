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
                   RewardFunctions& rewards, runtime::Executor& executor,
                   const runtime::Ranks& ranks)
    : recipe_(recipe),
      spec_(spec),
      prompts_(prompts),
      tokenizer_(tokenizer),
      executor_(executor),
      ranks_(ranks),
      rewards_(rewards) {}

std::optional<Generation> Rollouts::run(int64_t number, std::vector<int64_t> prompts,
                                        const std::atomic<int>& stop_signal) {
  const plan::RolloutSizes& sizes = *spec_.rollouts;
  begin();
  const int64_t first_sample = number * sizes.answers * (1 + sizes.resamples);
  std::optional<Answers> all = answers_to(prompts, first_sample, stop_signal);
  int64_t resampled = 0;
  for (int64_t attempt = 1; all && attempt <= sizes.resamples; ++attempt) {
    const std::vector<size_t> equal = equal_groups(*all);
    if (equal.empty()) break;
    resampled += std::ssize(equal);
    auto others = answers_to(other_prompts(number, attempt, equal.size()),
                             first_sample + attempt * sizes.answers, stop_signal);
    if (!others) return std::nullopt;
    const auto group = static_cast<std::ptrdiff_t>(sizes.group);
    for (size_t i = 0; i < equal.size(); ++i)
      std::move(others->begin() + static_cast<std::ptrdiff_t>(i) * group,
                others->begin() + static_cast<std::ptrdiff_t>(i + 1) * group,
                all->begin() + static_cast<std::ptrdiff_t>(equal[i]) * group);
  }
  if (!all) return std::nullopt;
  set_advantages(*all);
  measure(*all, resampled);
  return Generation{.answers = std::move(*all)};
}

// What nobody asks for any more of an answer that was judged goes, so that the host keeps little of
// each (plan::evaluation_host_bytes).
void Rollouts::evaluate() {
  const int64_t group = spec_.rollouts->group;
  begin();
  std::vector<int64_t> prompts(prompts_.size());
  std::iota(prompts.begin(), prompts.end(), int64_t{0});
  const std::atomic<int> never{0};
  Answers all;
  all.reserve(prompts.size() * static_cast<size_t>(group));
  const auto at_once = static_cast<size_t>(spec_.rollouts->prompts());
  for (size_t first = 0; first < prompts.size(); first += at_once) {
    const auto some = std::span(prompts).subspan(first, std::min(at_once, prompts.size() - first));
    Answers more = answers_to(some, static_cast<int64_t>(first) * group, never).value();
    for (LearnedAnswer& answer : more) {
      answer.log_probabilities = {};
      if (all.size() >= kSamples) answer.text = {};
      all.push_back(std::move(answer));
    }
  }
  measure(all, 0);
  const std::vector<double> sums = weighted_rewards(rewards_of(all), rewards_.weights());
  measures_.push_back({std::string(kStandardErrorName), standard_error_of(sums, group)});
}

// The weights have changed since the last time.
void Rollouts::begin() {
  times_ = {};
  reward_seconds_ = 0;
  if (!spec_.gathers_once()) return;
  executor_.begin_stage_of(program::ProgramName::gather);
  executor_.run(program::ProgramName::gather);
}

// The answers [own.begin, own.end) to these prompts.
std::vector<engine::Request> Rollouts::requests_to(std::span<const int64_t> prompts,
                                                   const RankPart& own,
                                                   int64_t first_sample) const {
  const engine::SamplingOptions sampling{.temperature = recipe_.temperature,
                                         .top_k = recipe_.top_k,
                                         .top_p = recipe_.top_p,
                                         .min_p = recipe_.min_p,
                                         .repetition_penalty = recipe_.repetition_penalty,
                                         .seed = recipe_.seed};
  std::vector<engine::Request> requests;
  requests.reserve(static_cast<size_t>(own.size()));
  for (int64_t i = own.begin; i < own.end; ++i) {
    const RewardedPrompt& prompt =
        prompt_of(prompts[static_cast<size_t>(i / spec_.rollouts->group)]);
    const engine::AnswerEnd end{.ids =
                                    engine::end_ids(recipe_, tokenizer_, prompt.is_conversation)};
    requests.push_back({.prompt = prompt.ids,
                        .max_new_tokens = spec_.rollouts->completion_tokens,
                        .sampling = sampling,
                        .end = end,
                        .log_probabilities = 0,
                        .entropies = true,
                        .sample = first_sample + i});
  }
  return requests;
}

// The weights have changed since the last time, so nothing that was read then is of use.
std::optional<std::vector<engine::Answer>> Rollouts::ask(std::span<const engine::Request> requests,
                                                         const std::atomic<int>& stop_signal) {
  engine::EngineOptions options{.tokenizer = &tokenizer_};
  if (spec_.ranks.shards_weights() && !spec_.gathers_once())
    options.agree_on_turn = turns_of(ranks_);
  engine::Engine engine(executor_, spec_.model, *spec_.generation, std::move(options));
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
  const bool is_stopped = ended < requests.size();
  if (is_stopped)
    for (const engine::RequestId id : ids) engine.cancel(id);
  engine.await_others();
  if (is_stopped) return std::nullopt;
  return answers;
}

// Each rank makes its part of them and has it rewarded.
std::optional<Rollouts::Answers> Rollouts::answers_to(std::span<const int64_t> prompts,
                                                      int64_t first_sample,
                                                      const std::atomic<int>& stop_signal) {
  const int64_t group = spec_.rollouts->group;
  const RankPart own = own_part(std::ssize(prompts) * group, ranks_);
  auto made = ask(requests_to(prompts, own, first_sample), stop_signal);
  if (!made) return answers_of_all(std::nullopt, ranks_);
  Answers answers;
  answers.reserve(made->size());
  for (engine::Answer& answer : *made) {
    const int64_t number = own.begin + std::ssize(answers);
    answers.push_back(
        {.prompt = prompts[static_cast<size_t>(number / group)],
         .ids = std::move(answer.ids),
         .log_probabilities = {answer.log_probabilities.begin(), answer.log_probabilities.end()},
         .entropies = {answer.entropies.begin(), answer.entropies.end()},
         .ended = answer.finish == engine::Finish::stop,
         .text = text::repair_utf8(answer.text)});
  }
  judge(answers);
  return answers_of_all(std::move(answers), ranks_);
}

void Rollouts::judge(Answers& answers) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<RewardedAnswer> judged;
  judged.reserve(answers.size());
  for (const LearnedAnswer& answer : answers) {
    const RewardedPrompt& prompt = prompt_of(answer.prompt);
    judged.push_back({.prompt = prompt.shown,
                      .answer = answer.text,
                      .record = &prompt.record,
                      .tokens = std::ssize(answer.ids),
                      .ended = answer.ended});
  }
  const std::vector<double> rewards = rewards_.judge(judged);
  const auto functions = static_cast<std::ptrdiff_t>(rewards_.names().size());
  for (auto of_answer = rewards.begin(); LearnedAnswer & answer : answers) {
    answer.rewards.assign(of_answer, of_answer + functions);
    of_answer += functions;
  }
  reward_seconds_ += base::seconds_since(start);
}

// (answers, functions).
std::vector<double> Rollouts::rewards_of(const Answers& answers) const {
  std::vector<double> rewards;
  rewards.reserve(answers.size() * rewards_.names().size());
  for (const LearnedAnswer& answer : answers)
    rewards.insert(rewards.end(), answer.rewards.begin(), answer.rewards.end());
  return rewards;
}

std::vector<size_t> Rollouts::equal_groups(const Answers& answers) const {
  const std::vector<double> sums = weighted_rewards(rewards_of(answers), rewards_.weights());
  const auto group = static_cast<size_t>(spec_.rollouts->group);
  std::vector<size_t> equal;
  for (size_t i = 0; i < sums.size() / group; ++i)
    if (!(deviation_of_rewards(std::span(sums).subspan(i * group, group)) > kEqualRewards))
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

void Rollouts::set_advantages(Answers& answers) const {
  const std::vector<double> sums = weighted_rewards(rewards_of(answers), rewards_.weights());
  const int64_t group = spec_.rollouts->group;
  const std::vector<double> advantages = recipe_.advantage == formats::Advantage::rloo
                                             ? leave_one_out_advantages(sums, group)
                                             : group_advantages(sums, group, recipe_.scale_rewards);
  for (size_t i = 0; i < advantages.size(); ++i) answers[i].advantage = advantages[i];
}

void Rollouts::measure(const Answers& answers, int64_t resampled) {
  measures_ = reward_metrics({.rewards = rewards_of(answers),
                              .names = rewards_.names(),
                              .weights = rewards_.weights(),
                              .group = spec_.rollouts->group},
                             recipe_.scale_rewards);
  std::vector<int64_t> lengths;
  std::vector<bool> ended;
  lengths.reserve(answers.size());
  ended.reserve(answers.size());
  for (const LearnedAnswer& answer : answers) {
    lengths.push_back(std::ssize(answer.ids));
    ended.push_back(answer.ended);
  }
  std::ranges::move(length_metrics(lengths, ended), std::back_inserter(measures_));
  measures_.push_back({std::string(kEntropyName), mean_entropy(answers)});
  if (spec_.rollouts->resamples > 0)
    measures_.push_back({"resampled_groups", static_cast<double>(resampled)});
  measures_.push_back(
      {std::string(kRolloutSecondsName), times_.prefill_seconds + times_.decode_seconds});
  measures_.push_back({"reward_seconds", reward_seconds_});
  for (NamedMeasure& measure : measures_)
    measure.is_shown = std::ranges::find(kShownNames, measure.name) != std::end(kShownNames);
  samples_.clear();
  for (size_t i = 0; i < std::min(answers.size(), kSamples); ++i) {
    const RewardedPrompt& prompt = prompt_of(answers[i].prompt);
    samples_.push_back({.set = "training",
                        .prompt = prompt.shown,
                        .answer = answers[i].text,
                        .expected = prompt.record.answer,
                        .scores = answers[i].rewards});
  }
}

}  // namespace snug::train
