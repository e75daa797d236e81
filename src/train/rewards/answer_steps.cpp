#include "train/rewards/answer_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "plan/spec/rollout_spec.h"
#include "program/ir/tensor_names.h"
#include "train/rewards/token_weights.h"

namespace snug::train {
namespace {

// Between the two nearest values in proportion, as torch has it; 0 of none.
float quantile(std::vector<float> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return static_cast<float>(values[below] + part * (values[above] - values[below]));
}

}  // namespace

AnswerSteps::AnswerSteps(const formats::Recipe& recipe, const plan::TrainingSpec& spec,
                         const std::vector<RewardedPrompt>& prompts, text::RowSource& rows,
                         const text::Tokenizer& tokenizer, RewardFunctions& rewards,
                         runtime::Executor& executor, const runtime::Ranks& ranks,
                         OnAnswers on_answers)
    : recipe_(recipe),
      sizes_(*spec.rollouts),
      prompts_(prompts),
      rows_(rows),
      executor_(executor),
      ranks_(ranks),
      on_answers_(std::move(on_answers)),
      rollouts_(recipe, spec, prompts, tokenizer, rewards, executor, ranks),
      batches_(spec, executor),
      ids_(static_cast<size_t>(rows.options().max_length.decoder())),
      targets_(ids_.size()),
      segments_(static_cast<size_t>(rows.options().max_segments)),
      documents_(segments_.size()) {}

int64_t AnswerSteps::document_of(int64_t row) {
  rows_.fill(row, {.streams = text::StreamBuffers{ids_, {}, segments_},
                   .targets = targets_,
                   .documents = documents_});
  return documents_[0];
}

bool AnswerSteps::ends_epoch(const Step& step) {
  const int64_t end = (step.first_row + step.rows) / sizes_.updates();
  return rows_.epoch_of(end) != rows_.epoch_of(step.first_row / sizes_.updates());
}

std::optional<methods::RowCounts> AnswerSteps::begin(const Step& step,
                                                     const std::atomic<int>& stop_signal) {
  measures_.clear();
  if (needs_answers(step.number) && !generate(step, stop_signal)) return std::nullopt;
  pack(step.number);
  return counts_;
}

bool AnswerSteps::generate(const Step& step, const std::atomic<int>& stop_signal) {
  std::vector<int64_t> prompts(static_cast<size_t>(sizes_.prompts()));
  for (size_t i = 0; i < prompts.size(); ++i)
    prompts[i] = document_of(step.first_row / sizes_.updates() + static_cast<int64_t>(i));
  const int64_t number = (step.number - 1) / sizes_.updates();
  std::optional<Generation> made = rollouts_.run(number, std::move(prompts), stop_signal);
  if (!made) return false;
  generation_ = std::move(*made);
  measures_.assign(rollouts_.measures().begin(), rollouts_.measures().end());
  if (executor_.job().find(program::ProgramName::evaluate) != nullptr)
    recompute_log_probabilities();
  if (on_answers_) on_answers_(step.number, rollouts_);
  return true;
}

// What is found next to what generating found is reported as TRL reports it of other engines.
void AnswerSteps::recompute_log_probabilities() {
  const std::vector<LearnedAnswer> made = generation_.answers;
  recompute_own();
  const RankPart own = own_part(sizes_.answers, ranks_);
  const auto first = generation_.answers.begin();
  generation_.answers =
      answers_of_all(std::vector(first + own.begin, first + own.end), ranks_).value();
  double sum = 0;
  double largest = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < made.size(); ++i)
    for (size_t t = 0; t < made[i].log_probabilities.size(); ++t) {
      const double difference =
          std::abs(generation_.answers[i].log_probabilities[t] - made[i].log_probabilities[t]);
      sum += difference;
      largest = std::max(largest, difference);
      ++tokens;
    }
  measures_.push_back(
      {"sampling/sampling_logp_difference/mean", sum / static_cast<double>(tokens)});
  measures_.push_back({"sampling/sampling_logp_difference/max", largest});
}

// As many at once as an update learns from.
void AnswerSteps::recompute_own() {
  const int64_t at_once = sizes_.rank_update_answers();
  for (int64_t first = 0; first < sizes_.rank_answers(); first += at_once) {
    std::vector<int64_t> numbers;
    numbers.reserve(static_cast<size_t>(sizes_.update_answers));
    for (int64_t rank = 0; rank < sizes_.ranks; ++rank)
      for (int64_t i = first; i < first + at_once; ++i)
        numbers.push_back(rank * sizes_.rank_answers() + i);
    pack_own(packed(numbers));
    const int64_t begin = own_part(sizes_.answers, ranks_).begin + first;
    for (int64_t micro = 0; micro < batches_.count(); ++micro) {
      auto all = batches_.log_probabilities(program::ProgramName::evaluate,
                                            program::kKeptReferenceName, micro);
      const int64_t of_micro = begin + batches_.first_answer(micro);
      for (size_t i = 0; i < all.size(); ++i)
        generation_.answers[static_cast<size_t>(of_micro) + i].log_probabilities =
            std::move(all[i]);
    }
  }
}

std::vector<PackedAnswer> AnswerSteps::packed(std::span<const int64_t> numbers) const {
  std::vector<PackedAnswer> packed;
  packed.reserve(numbers.size());
  for (const int64_t number : numbers) {
    const LearnedAnswer& answer = generation_.answers[static_cast<size_t>(number)];
    packed.push_back({.prompt = prompts_[static_cast<size_t>(answer.prompt)].ids,
                      .answer = &answer,
                      .is_learned = true});
  }
  return packed;
}

// Where several updates share a generation, which answers meet in one is drawn anew for each turn
// through it.
std::vector<int64_t> AnswerSteps::slice_of(int64_t step) const {
  std::vector<int64_t> order(static_cast<size_t>(sizes_.answers));
  std::iota(order.begin(), order.end(), int64_t{0});
  const int64_t place = place_of(step);
  if (sizes_.slices() > 1) {
    const auto turn = static_cast<uint32_t>((step - 1) / sizes_.slices());
    const auto seed = static_cast<uint64_t>(recipe_.seed);
    const base::PhiloxKey key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (size_t i = order.size() - 1; i > 0; --i) {
      const base::PhiloxCounter words =
          base::philox({turn, static_cast<uint32_t>(i), 0, 0x736c6963U}, key);
      std::swap(order[i], order[words[0] % (i + 1)]);
    }
  }
  const auto first =
      order.begin() + static_cast<std::ptrdiff_t>(place % sizes_.slices() * sizes_.update_answers);
  return {first, first + static_cast<std::ptrdiff_t>(sizes_.update_answers)};
}

void AnswerSteps::pack(int64_t step) {
  std::vector<PackedAnswer> answers = packed(slice_of(step));
  std::vector<int64_t> learned(answers.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    PackedAnswer& each = answers[i];
    each.is_learned = !recipe_.mask_truncated_completions || each.answer->ended;
    learned[i] = each.is_learned ? std::ssize(each.answer->ids) : 0;
  }
  const std::vector<double> weights = token_weights(
      plan::answer_loss(recipe_), {.learned = learned,
                                   .step_tokens = step_tokens(),
                                   .per_micro_batch = sizes_.micro_answers,
                                   .max_completion_length = sizes_.completion_tokens});
  for (size_t i = 0; i < answers.size(); ++i) answers[i].weight = weights[i];
  if (recipe_.top_entropy_quantile < 1)
    for (size_t first = 0; first < answers.size();
         first += static_cast<size_t>(sizes_.micro_answers))
      leave_out_certain(
          std::span(answers).subspan(first, static_cast<size_t>(sizes_.micro_answers)));
  counts_ = counts_of(answers);
  pack_own(answers);
}

// Packs this rank's part of what all ranks learn from. Each runs as many micro-batches as the one
// that needs the most, and the first and the last are programs of their own where gradients are
// summed over ranks in the last.
void AnswerSteps::pack_own(std::span<const PackedAnswer> answers) {
  int64_t most = executor_.job().find(program::ProgramName::micro_last) == nullptr ? 1 : 2;
  const auto part = [&](int64_t rank) {
    const RankPart of_rank = part_of_rank(std::ssize(answers), rank, sizes_.ranks);
    return answers.subspan(static_cast<size_t>(of_rank.begin), static_cast<size_t>(of_rank.size()));
  };
  for (int64_t rank = 0; rank < sizes_.ranks; ++rank)
    most = std::max(most, batches_.micro_batches_of(part(rank)));
  const std::span<const PackedAnswer> own = part(ranks_.rank());
  batches_.pack({own.begin(), own.end()}, most);
}

// As in TRL, that of an update is its share of what the generation has.
double AnswerSteps::step_tokens() const {
  int64_t tokens = 0;
  for (const LearnedAnswer& answer : generation_.answers)
    if (!recipe_.mask_truncated_completions || answer.ended) tokens += std::ssize(answer.ids);
  return static_cast<double>(tokens) / static_cast<double>(sizes_.slices());
}

// Of a micro-batch, as TRL counts them.
void AnswerSteps::leave_out_certain(std::span<PackedAnswer> answers) const {
  std::vector<float> entropies;
  for (const PackedAnswer& each : answers)
    if (each.is_learned)
      entropies.insert(entropies.end(), each.answer->entropies.begin(),
                       each.answer->entropies.end());
  const float least = quantile(std::move(entropies), 1 - recipe_.top_entropy_quantile);
  for (PackedAnswer& each : answers) each.least_entropy = least;
}

std::string AnswerSteps::state(int64_t step) const {
  return begins_generation(step + 1) ? "" : to_json(generation_);
}

void AnswerSteps::restore(const std::string& state) {
  if (state.empty()) return;
  generation_ = parse_generation(state);
  const auto is_fitting = [&](const LearnedAnswer& answer) {
    return answer.prompt >= 0 && answer.prompt < std::ssize(prompts_) && !answer.ids.empty() &&
           answer.ids.size() == answer.log_probabilities.size() &&
           answer.ids.size() == answer.entropies.size();
  };
  if (generation_.size() != sizes_.answers || !std::ranges::all_of(generation_.answers, is_fitting))
    base::throw_user_error(
        "the checkpoint has {} answers from which its next steps learn, and this run makes {} at "
        "once; go on with the numbers that the run began with",
        generation_.size(), sizes_.answers);
}

}  // namespace snug::train
