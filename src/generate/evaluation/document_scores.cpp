#include "generate/evaluation/document_scores.h"

#include <algorithm>

#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/utf8.h"

namespace snug::generate {
namespace {

// What remains of a text that is split at each run of white space, empty parts at its ends
// included, as Python's re.split leaves it.
int64_t words_of(const std::string& text) {
  int64_t words = 1;
  bool was_space = false;
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint c = text::code_point_at(text, at);
    const bool is_space = text::jinja::is_python_space(c.value);
    if (is_space && !was_space) ++words;
    was_space = is_space;
    at += c.size;
  }
  return words;
}

double divisor_of(Metric metric, const std::string& choice) {
  if (metric == Metric::acc_norm) return static_cast<double>(text::jinja::length(choice));
  if (metric == Metric::acc_bytes) return static_cast<double>(choice.size());
  return 1;
}

// The first of the likeliest choices.
int64_t chosen(Metric metric, const TaskQuestion& question, std::span<const ScoredPair> pairs) {
  size_t best = 0;
  const auto value = [&](size_t i) {
    return pairs[i].log_probability / divisor_of(metric, question.choices[i]);
  };
  for (size_t i = 1; i < pairs.size(); ++i)
    if (value(i) > value(best)) best = i;
  return static_cast<int64_t>(best);
}

}  // namespace

double pair_score(Metric metric, const TaskQuestion& question, std::span<const ScoredPair> pairs) {
  if (metric == Metric::perplexity) return pairs.front().log_probability;
  if (question.choices.empty()) return pairs.front().is_greedy ? 1 : 0;
  if (metric == Metric::exact_match)
    return std::ranges::any_of(
               question.right,
               [&](int64_t right) { return pairs[static_cast<size_t>(right)].is_greedy; })
               ? 1
               : 0;
  const int64_t best = chosen(metric, question, pairs);
  return std::ranges::find(question.right, best) != question.right.end() ? 1 : 0;
}

Weighed text_score(Metric metric, const TaskQuestion& question, double log_probability) {
  const int64_t weight =
      metric == Metric::word_perplexity ? words_of(question.text) : std::ssize(question.text);
  return {log_probability, static_cast<double>(weight)};
}

double answer_score(const MatchRules& rules, const TaskQuestion& question,
                    const std::string& answer) {
  return std::ranges::any_of(
             question.expected,
             [&](const std::string& expected) { return rules.matches(answer, expected); })
             ? 1
             : 0;
}

}  // namespace snug::generate
