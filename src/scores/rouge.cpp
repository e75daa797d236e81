#include "scores/rouge.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "scores/word_ngrams.h"

namespace snug::scores {
namespace {

using RougeWords = std::vector<std::string>;

// Python's lower() makes an ASCII letter of two characters beyond ASCII: the Kelvin sign is k, and
// the capital I with a dot above is i and a mark that ends the word.
constexpr std::string_view kKelvinSign = "\u212A";
constexpr std::string_view kDottedI = "\u0130";

RougeWords rouge_words(std::string_view text) {
  RougeWords words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if (text.substr(at).starts_with(kKelvinSign)) {
      word += 'k';
      at += kKelvinSign.size() - 1;
    } else if (text.substr(at).starts_with(kDottedI)) {
      word += 'i';
      end_word();
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

double f_measure(int64_t hits, int64_t answer_count, int64_t reference_count) {
  if (hits == 0) return 0;
  const double precision = static_cast<double>(hits) / static_cast<double>(answer_count);
  const double recall = static_cast<double>(hits) / static_cast<double>(reference_count);
  return 2 * precision * recall / (precision + recall);
}

// Entry (i, j): the length of the longest common sequence of the first i and the first j words.
class SequenceTable {
 public:
  SequenceTable(const RougeWords& rows, const RougeWords& columns)
      : rows_(rows), columns_(columns), lengths_((rows.size() + 1) * (columns.size() + 1)) {
    for (size_t i = 1; i <= rows.size(); ++i)
      for (size_t j = 1; j <= columns.size(); ++j)
        at(i, j) = rows[i - 1] == columns[j - 1] ? at(i - 1, j - 1) + 1
                                                 : std::max(at(i - 1, j), at(i, j - 1));
  }

  int64_t length() { return at(rows_.size(), columns_.size()); }

  // Marks the rows of one longest sequence: of several the one that rouge_score finds.
  void mark_rows(std::vector<bool>& marked) {
    size_t i = rows_.size();
    size_t j = columns_.size();
    while (i > 0 && j > 0) {
      if (rows_[i - 1] == columns_[j - 1]) {
        marked[--i] = true;
        --j;
      } else if (at(i, j - 1) > at(i - 1, j)) {
        --j;
      } else {
        --i;
      }
    }
  }

 private:
  int32_t& at(size_t i, size_t j) { return lengths_[i * (columns_.size() + 1) + j]; }

  const RougeWords& rows_;
  const RougeWords& columns_;
  std::vector<int32_t> lengths_;
};

std::vector<RougeWords> words_of_lines(std::string_view text) {
  std::vector<RougeWords> lines;
  lines.reserve(static_cast<size_t>(std::ranges::count(text, '\n')) + 1);
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(rouge_words(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

using WordCounts = std::unordered_map<std::string, int64_t>;

int64_t count_words(const std::vector<RougeWords>& lines, WordCounts& counts) {
  int64_t total = 0;
  for (const RougeWords& line : lines) {
    total += std::ssize(line);
    for (const std::string& word : line) ++counts[word];
  }
  return total;
}

}  // namespace

double rouge_ngrams(std::string_view answer, std::string_view reference, size_t size) {
  const RougeWords said = rouge_words(answer);
  const RougeWords expected = rouge_words(reference);
  const int64_t hits = common_ngrams(ngram_counts(said, size), ngram_counts(expected, size));
  return f_measure(hits, ngram_total(said, size), ngram_total(expected, size));
}

double rouge_sequence(std::string_view answer, std::string_view reference) {
  const RougeWords said = rouge_words(answer);
  const RougeWords expected = rouge_words(reference);
  const int64_t hits = SequenceTable(expected, said).length();
  return f_measure(hits, std::ssize(said), std::ssize(expected));
}

double rouge_lines(std::string_view answer, std::string_view reference) {
  const std::vector<RougeWords> said = words_of_lines(answer);
  const std::vector<RougeWords> expected = words_of_lines(reference);
  WordCounts said_left;
  WordCounts expected_left;
  const int64_t said_total = count_words(said, said_left);
  const int64_t expected_total = count_words(expected, expected_left);
  int64_t hits = 0;
  for (const RougeWords& line : expected) {
    std::vector<bool> marked(line.size());
    for (const RougeWords& said_line : said) SequenceTable(line, said_line).mark_rows(marked);
    // A word counts no more often than either text has it.
    for (size_t i = 0; i < line.size(); ++i) {
      if (!marked[i] || said_left[line[i]] == 0 || expected_left[line[i]] == 0) continue;
      ++hits;
      --said_left[line[i]];
      --expected_left[line[i]];
    }
  }
  return f_measure(hits, said_total, expected_total);
}

}  // namespace snug::scores
