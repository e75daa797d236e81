#include "scores/bleu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "scores/word_ngrams.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::scores {
namespace {

constexpr size_t kLongestRun = 4;

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

bool is_stop(char c) { return c == '.' || c == ','; }

// ASCII punctuation apart from the four that depend on what stands next to them, and the space.
bool stands_alone(char c) {
  const auto within = [c](char first, char last) { return c >= first && c <= last; };
  return within('{', '~') || within('[', '`') || within(' ', '&') || within('(', '+') ||
         within(':', '@') || c == '/';
}

std::string with_spaces_around_punctuation(std::string_view text) {
  std::string spaced;
  for (const char c : text)
    if (stands_alone(c))
      ((spaced += ' ') += c) += ' ';
    else
      spaced += c;
  return spaced;
}

// The three steps below replace pairs of characters from left to right, without overlaps, as
// Python's re.sub does. `is_pair` says which, and `with` how a pair is written.
template <typename IsPair, typename With>
std::string with_pairs_replaced(std::string_view text, IsPair is_pair, With with) {
  std::string replaced;
  for (size_t at = 0; at < text.size(); ++at) {
    if (at + 1 < text.size() && is_pair(text[at], text[at + 1])) {
      with(replaced, text[at], text[at + 1]);
      ++at;
    } else {
      replaced += text[at];
    }
  }
  return replaced;
}

// What all runs of words up to the longest have in common with a reference's, by length.
struct BleuCounts {
  std::array<int64_t, kLongestRun> right{};
  std::array<int64_t, kLongestRun> total{};
  int64_t answer_words = 0;
  int64_t reference_words = 0;

  void add(std::string_view answer, std::string_view reference) {
    const std::vector<std::string> said = bleu_words(answer);
    const std::vector<std::string> expected = bleu_words(reference);
    answer_words += std::ssize(said);
    reference_words += std::ssize(expected);
    for (size_t size = 1; size <= kLongestRun; ++size) {
      right[size - 1] += common_ngrams(ngram_counts(said, size), ngram_counts(expected, size));
      total[size - 1] += ngram_total(said, size);
    }
  }

  double brevity_penalty() const {
    if (answer_words >= reference_words) return 1;
    if (answer_words == 0) return 0;
    return std::exp(1 - static_cast<double>(reference_words) / static_cast<double>(answer_words));
  }
};

// `only_runs_there`: runs that are longer than all answers are left out of the mean, where they
// would make it 0 otherwise. A precision of 0 is half of the last such one, the first half a run.
double bleu_of(const BleuCounts& counts, bool only_runs_there) {
  if (std::ranges::all_of(counts.right, [](int64_t right) { return right == 0; })) return 0;
  double logarithms = 0;
  double halved = 1;
  size_t runs = 0;
  for (; runs < kLongestRun && counts.total[runs] > 0; ++runs) {
    const bool is_zero = counts.right[runs] == 0;
    if (is_zero) halved *= 2;
    const double right = is_zero ? 1 / halved : static_cast<double>(counts.right[runs]);
    logarithms += std::log(100 * right / static_cast<double>(counts.total[runs]));
  }
  if (runs < kLongestRun && !only_runs_there) return 0;
  return counts.brevity_penalty() * std::exp(logarithms / static_cast<double>(runs));
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view text) {
  std::string line(text::jinja::strip(text, text::jinja::Side::right));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kReplaced{
      {{"<skipped>", ""},
       {"-\n", ""},
       {"\n", " "},
       {"&quot;", "\""},
       {"&amp;", "&"},
       {"&lt;", "<"},
       {"&gt;", ">"}}};
  for (const auto& [old, with] : kReplaced) line = text::jinja::replace(line, old, with, -1);
  line = with_spaces_around_punctuation(" " + line + " ");
  // Stops and commas that no digit comes before, then those that no digit follows, and hyphens
  // after a digit.
  line = with_pairs_replaced(
      line, [](char first, char second) { return !is_ascii_digit(first) && is_stop(second); },
      [](std::string& out, char first, char second) {
        (((out += first) += ' ') += second) += ' ';
      });
  line = with_pairs_replaced(
      line, [](char first, char second) { return is_stop(first) && !is_ascii_digit(second); },
      [](std::string& out, char first, char second) {
        (((out += ' ') += first) += ' ') += second;
      });
  line = with_pairs_replaced(
      line, [](char first, char second) { return is_ascii_digit(first) && second == '-'; },
      [](std::string& out, char first, char second) {
        (((out += first) += ' ') += second) += ' ';
      });
  return words_between_space(line);
}

double sentence_bleu(std::string_view answer, std::string_view reference) {
  BleuCounts counts;
  counts.add(answer, reference);
  return bleu_of(counts, true);
}

double corpus_bleu(std::span<const ScoredAnswer> answers) {
  BleuCounts counts;
  for (const ScoredAnswer& one : answers) counts.add(one.answer, one.reference);
  return bleu_of(counts, false);
}

}  // namespace snug::scores
