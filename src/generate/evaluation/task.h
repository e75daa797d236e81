// A task of an evaluation: what is asked of which documents, and how answers count. The form is
// that of lm-evaluation-harness's own task files, as far as it needs no Python
// (docs/evaluation.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "generate/evaluation/answer_filter.h"
#include "generate/evaluation/task_text.h"
#include "generate/evaluation/text_match.h"

namespace snug::generate {

enum class OutputType : uint8_t {
  multiple_choice,        // which of some continuations is the likeliest
  generate_until,         // an answer's text
  loglikelihood,          // of one continuation
  loglikelihood_rolling,  // of a whole text, in windows that do not overlap
};
constexpr auto words_of(OutputType /*type*/) {
  return base::words<OutputType>({{OutputType::multiple_choice, "multiple_choice"},
                                  {OutputType::generate_until, "generate_until"},
                                  {OutputType::loglikelihood, "loglikelihood"},
                                  {OutputType::loglikelihood_rolling, "loglikelihood_rolling"}});
}

enum class Metric : uint8_t {
  acc,        // of multiple choice: the likeliest; of a continuation: what greedy decoding gives
  acc_norm,   // the likeliest by character
  acc_bytes,  // the likeliest by byte
  exact_match,
  perplexity,
  word_perplexity,
  byte_perplexity,
  bits_per_byte,
};
constexpr auto words_of(Metric /*type*/) {
  return base::words<Metric>({{Metric::acc, "acc"},
                              {Metric::acc_norm, "acc_norm"},
                              {Metric::acc_bytes, "acc_bytes"},
                              {Metric::exact_match, "exact_match"},
                              {Metric::perplexity, "perplexity"},
                              {Metric::word_perplexity, "word_perplexity"},
                              {Metric::byte_perplexity, "byte_perplexity"},
                              {Metric::bits_per_byte, "bits_per_byte"}});
}

struct TaskMetric {
  Metric metric = Metric::acc;
  MatchRules match{};  // exact_match
};

// How answers of generate_until come about.
struct AnswerRules {
  std::vector<std::string> until{};         // texts that end an answer, which is cut before them
  std::optional<int64_t> max_new_tokens{};  // nothing: the recipe's, or 256
  double temperature = 0;                   // 0: greedy
  int64_t top_k = 0;
  double top_p = 1;
};

struct Task {
  std::string name;
  base::Location where{};
  OutputType output = OutputType::generate_until;
  // The files of the documents that are asked, and of those that are shown with their answers.
  std::vector<std::string> files{};
  std::vector<std::string> shot_files{};
  bool shots_are_asked_too = false;  // a document is then not shown before its own question
  int64_t shots = 0;
  bool draws_shots = true;             // by chance, or else the first of them
  std::vector<TaskDocument> listed{};  // examples in the task's own file, in place of shot_files
  std::optional<TaskText> description{};
  TaskText to_text{};
  TaskText to_target{};
  std::optional<TaskText> to_choice{};
  std::optional<TaskText> answer_beginning{};  // gen_prefix
  std::string target_delimiter = " ";
  std::string shot_delimiter = "\n\n";
  AnswerRules answers{};
  std::vector<FilterChain> filters{};  // at least one
  std::vector<TaskMetric> metrics{};   // at least one
};

}  // namespace snug::generate
