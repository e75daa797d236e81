#include "train/least_tokens.h"

#include <algorithm>
#include <vector>

namespace snug::train {

int64_t least_tokens(const text::DocumentStore& documents) {
  int64_t least = 0;
  std::vector<int32_t> words;
  for (int64_t document = 0; document < documents.size(); ++document) {
    words.resize(static_cast<size_t>(documents.length(document)));
    documents.read(document, words);
    const auto first = std::ranges::find_if(words, text::DocumentStore::is_target);
    if (first != words.end()) least = std::max<int64_t>(least, first - words.begin() + 1);
  }
  return least;
}

}  // namespace snug::train
