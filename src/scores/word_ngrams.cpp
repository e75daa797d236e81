#include "scores/word_ngrams.h"

#include <algorithm>

#include "text/chat/jinja/values/python_text.h"

namespace snug::scores {

std::vector<std::string> words_between_space(std::string_view text) {
  const text::jinja::Parts parts = text::jinja::split(text, std::nullopt, -1, false);
  return {parts.begin(), parts.end()};
}

NgramCounts ngram_counts(std::span<const std::string> words, size_t size) {
  NgramCounts counts;
  for (size_t begin = 0; begin + size <= words.size(); ++begin) {
    std::string ngram;
    for (const std::string& word : words.subspan(begin, size)) (ngram += word) += ' ';
    ++counts[ngram];
  }
  return counts;
}

int64_t ngram_total(std::span<const std::string> words, size_t size) {
  return std::max<int64_t>(0, std::ssize(words) - static_cast<int64_t>(size) + 1);
}

int64_t common_ngrams(const NgramCounts& one, const NgramCounts& other) {
  int64_t common = 0;
  for (const auto& [ngram, count] : one)
    if (const auto found = other.find(ngram); found != other.end())
      common += std::min(count, found->second);
  return common;
}

}  // namespace snug::scores
