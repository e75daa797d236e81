#include "scores/answer_size.h"

#include <string>
#include <vector>

#include "scores/word_ngrams.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::scores {

int64_t answer_length(std::string_view answer) { return text::jinja::length(answer); }

double answer_repetition(std::string_view answer, int64_t size) {
  const std::vector<std::string> words = words_between_space(answer);
  const auto length = static_cast<size_t>(size);
  const int64_t total = ngram_total(words, length);
  if (total == 0) return 0;
  const int64_t different = std::ssize(ngram_counts(words, length));
  return 1 - static_cast<double>(different) / static_cast<double>(total);
}

}  // namespace snug::scores
