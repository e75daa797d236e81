#include "scores/score_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "scores/answer_choice.h"
#include "scores/answer_number.h"
#include "scores/answer_pattern.h"
#include "scores/answer_schema.h"
#include "scores/answer_size.h"
#include "scores/bleu.h"
#include "scores/edit_distance.h"
#include "scores/rouge.h"

namespace snug::scores {
namespace {

// For scores without an argument.
template <auto kOne>
Judge plain_judge(const std::string& /*argument*/) {
  return {.one = [](std::string_view answer, std::string_view reference) {
    return static_cast<double>(kOne(answer, reference));
  }};
}

template <size_t kSize>
double rouge_runs(std::string_view answer, std::string_view reference) {
  return rouge_ngrams(answer, reference, kSize);
}

bool is_exact(std::string_view answer, std::string_view reference) { return answer == reference; }

Judge bleu_judge(const std::string& /*argument*/) {
  return {.one = sentence_bleu, .all = corpus_bleu};
}

Judge length_judge(const std::string& /*argument*/) {
  return {.one = [](std::string_view answer, std::string_view /*reference*/) {
    return static_cast<double>(answer_length(answer));
  }};
}

// Of runs of N words; 4 where none is given.
Judge repetition_judge(const std::string& argument) {
  constexpr int64_t kUsualRun = 4;
  constexpr int64_t kMaxRun = 1000;
  int64_t size = kUsualRun;
  if (!argument.empty()) {
    const char* end = argument.data() + argument.size();
    const auto [stop, error] = std::from_chars(argument.data(), end, size);
    if (error != std::errc() || stop != end || size < 1 || size > kMaxRun)
      throw std::invalid_argument(
          fmt::format("N must be a whole number from 1 to {}: how many words a run has", kMaxRun));
  }
  return {.one = [size](std::string_view answer, std::string_view /*reference*/) {
    return answer_repetition(answer, size);
  }};
}

Judge number_judge(const std::string& /*argument*/) {
  return {.one = number_score, .problem = [](std::string_view reference) -> std::string {
            return answer_number(reference) ? "" : "has no number";
          }};
}

Judge choice_judge(const std::string& /*argument*/) {
  return {.one = choice_score, .problem = [](std::string_view reference) -> std::string {
            return answer_choice(reference) != '\0' ? "" : "has no letter from A to E";
          }};
}

constexpr auto kScores = std::to_array<ScoreRow>({
    {.name = "exact", .judge = plain_judge<is_exact>},
    {.name = "rouge1", .judge = plain_judge<rouge_runs<1>>},
    {.name = "rouge2", .judge = plain_judge<rouge_runs<2>>},
    {.name = "rougeL", .judge = plain_judge<rouge_sequence>},
    {.name = "rougeLsum", .judge = plain_judge<rouge_lines>},
    {.name = "bleu", .judge = bleu_judge},
    {.name = "edit_distance", .judge = plain_judge<edit_distance>},
    {.name = "edit_similarity", .judge = plain_judge<edit_similarity>},
    {.name = "number", .judge = number_judge},
    {.name = "choice", .judge = choice_judge},
    {.name = "regex",
     .argument = ScoreArgument::required,
     .argument_name = "PATTERN",
     .judge = found_text_judge},
    {.name = "format",
     .argument = ScoreArgument::required,
     .argument_name = "PATTERN",
     .needs_reference = false,
     .judge = whole_format_judge},
    {.name = "json_schema",
     .argument = ScoreArgument::required,
     .argument_name = "FILE",
     .needs_reference = false,
     .judge = schema_judge},
    {.name = "length", .needs_reference = false, .judge = length_judge},
    {.name = "repetition",
     .argument = ScoreArgument::optional,
     .argument_name = "N",
     .needs_reference = false,
     .judge = repetition_judge},
});

}  // namespace

std::span<const ScoreRow> score_table() { return kScores; }

const ScoreRow* find_score(std::string_view name) {
  const auto found = std::ranges::find(kScores, name, &ScoreRow::name);
  return found == kScores.end() ? nullptr : &*found;
}

}  // namespace snug::scores
