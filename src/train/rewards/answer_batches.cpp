#include "train/rewards/answer_batches.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "program/ir/tensor_names.h"
#include "text/row/row_source.h"

namespace snug::train {
namespace {

template <typename T>
std::span<T> elements_of(const backends::Buffer& buffer) {
  return {buffer.as<T>(), static_cast<size_t>(buffer.elements())};
}

}  // namespace

int64_t PackedAnswer::learned_tokens() const {
  int64_t count = 0;
  for (size_t i = 0; i < answer->ids.size(); ++i) count += learns(i) ? 1 : 0;
  return count;
}

methods::RowCounts counts_of(std::span<const PackedAnswer> answers) {
  methods::RowCounts counts{.groups = std::ssize(answers)};
  for (const PackedAnswer& packed : answers) {
    counts.tokens += packed.tokens();
    counts.trained_tokens += packed.learned_tokens();
  }
  return counts;
}

// The first answer of each micro-batch.
std::vector<int64_t> AnswerBatches::begins_of(std::span<const PackedAnswer> answers) const {
  std::vector<int64_t> begins;
  int64_t tokens = 0;
  int64_t segments = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const int64_t more = answers[i].tokens();
    const bool is_full = begins.empty() || tokens + more > spec_.row_tokens.decoder() ||
                         segments == spec_.row_segments;
    if (is_full) {
      begins.push_back(static_cast<int64_t>(i));
      tokens = 0;
      segments = 0;
    }
    SNUG_CHECK(more <= spec_.row_tokens.decoder(), "an answer with its prompt has {} tokens", more);
    tokens += more;
    ++segments;
  }
  return begins;
}

void AnswerBatches::pack(std::vector<PackedAnswer> answers, int64_t least) {
  answers_ = std::move(answers);
  begins_ = begins_of(answers_);
  begins_.resize(std::max(begins_.size(), static_cast<size_t>(least)), std::ssize(answers_));
  SNUG_CHECK(count() >= 1 && count() <= spec_.accumulation, "{} micro-batches of {}", count(),
             spec_.accumulation);
}

// An id of an answer is predicted by the token before it.
void AnswerBatches::load_tokens(program::ProgramName program, int64_t micro) const {
  const auto host = [&](std::string_view name) -> const backends::Buffer& {
    return executor_.tensor(program, program::host_name(name));
  };
  const auto ids = elements_of<int32_t>(host(program::kTokensName));
  const auto targets = elements_of<int32_t>(host(program::kTargetsName));
  const std::span bounds(host(program::kQueryBoundsName).as<text::Segment>(),
                         static_cast<size_t>(spec_.row_segments));
  const bool has_positions = executor_.has(program, program::host_name(program::kPositionsName));
  const auto positions =
      has_positions ? elements_of<int32_t>(host(program::kPositionsName)) : std::span<int32_t>();
  const auto end_of_row = static_cast<int32_t>(ids.size());
  std::ranges::fill(ids, 0);
  std::ranges::fill(positions, 0);
  std::ranges::fill(targets, -1);
  std::ranges::fill(bounds, text::Segment{end_of_row, end_of_row});
  size_t begin = 0;
  size_t segment = 0;
  for (const PackedAnswer& packed : answers_of(micro)) {
    const std::vector<int32_t>& answer = packed.answer->ids;
    const auto tokens = static_cast<size_t>(packed.tokens());
    std::ranges::copy(packed.prompt, ids.begin() + static_cast<std::ptrdiff_t>(begin));
    std::copy_n(answer.begin(), answer.size() - 1,
                ids.begin() + static_cast<std::ptrdiff_t>(begin + packed.prompt.size()));
    if (packed.is_learned)
      std::ranges::copy(
          answer, targets.begin() + static_cast<std::ptrdiff_t>(begin + packed.prompt.size() - 1));
    if (has_positions)
      for (size_t i = 0; i < tokens; ++i) positions[begin + i] = static_cast<int32_t>(i);
    bounds[segment++] = {static_cast<int32_t>(begin), static_cast<int32_t>(begin + tokens)};
    begin += tokens;
  }
}

void AnswerBatches::load_numbers(program::ProgramName program, int64_t micro) const {
  const auto numbers = [&](std::string_view name) {
    const std::string host = program::host_name(name);
    return executor_.has(program, host) ? elements_of<float>(executor_.tensor(program, host))
                                        : std::span<float>();
  };
  const std::span<float> advantages = numbers(program::kAdvantagesName);
  const std::span<float> weights = numbers(program::kTokenWeightsName);
  const std::span<float> old = numbers(program::kOldName);  // none where the model is the old one
  std::ranges::fill(advantages, 0.0F);
  std::ranges::fill(weights, 0.0F);
  std::ranges::fill(old, 0.0F);
  size_t begin = 0;
  size_t segment = 0;
  for (const PackedAnswer& packed : answers_of(micro)) {
    const LearnedAnswer& answer = *packed.answer;
    const auto first = static_cast<std::ptrdiff_t>(begin + packed.prompt.size() - 1);
    advantages[segment++] = static_cast<float>(answer.advantage);
    for (size_t i = 0; i < answer.ids.size(); ++i)
      if (packed.learns(i))
        weights[static_cast<size_t>(first) + i] = static_cast<float>(packed.weight);
    if (!old.empty()) std::ranges::copy(answer.log_probabilities, old.begin() + first);
    begin += static_cast<size_t>(packed.tokens());
  }
}

void AnswerBatches::load(program::ProgramName program, int64_t micro) const {
  executor_.await_inputs(program);
  load_tokens(program, micro);
  load_numbers(program, micro);
}

std::vector<std::vector<float>> AnswerBatches::log_probabilities(program::ProgramName program,
                                                                 std::string_view result,
                                                                 int64_t micro) const {
  executor_.await_inputs(program);
  load_tokens(program, micro);
  executor_.run(program);
  executor_.await_results();
  const auto values =
      elements_of<const float>(executor_.tensor(program, program::host_name(result)));
  std::vector<std::vector<float>> all;
  const std::span<const PackedAnswer> answers = answers_of(micro);
  all.reserve(answers.size());
  size_t begin = 0;
  for (const PackedAnswer& packed : answers) {
    const auto first =
        values.begin() + static_cast<std::ptrdiff_t>(begin + packed.prompt.size() - 1);
    all.emplace_back(first, first + std::ssize(packed.answer->ids));
    begin += static_cast<size_t>(packed.tokens());
  }
  return all;
}

}  // namespace snug::train
