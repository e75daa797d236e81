#include "models/forward/key_pages.h"

#include <algorithm>

namespace snug::models {
namespace {

// The most pages that so many tokens in succession, wherever they begin, can lie in.
int64_t most_pages_of_span(int64_t tokens, int64_t page_tokens) {
  return tokens == 0 ? 0 : pages_of(tokens - 1, page_tokens) + 1;
}

}  // namespace

int64_t most_pages(int64_t window, const PageSizes& sizes, const SequenceGrowth& growth) {
  const auto& [page_tokens, chunk_tokens, answer_tokens] = sizes;
  if (window == 0) return pages_of(growth.tokens, page_tokens);
  // Of a sequence that will have `in_total` tokens while it grows by `appended` at a time.
  const auto most = [&](int64_t in_total, int64_t appended) {
    return std::min(pages_of(in_total, sizes.page_tokens),
                    most_pages_of_span(window - 1 + appended, sizes.page_tokens));
  };
  const int64_t prompt_tokens = std::min(growth.prompt_tokens, growth.tokens);
  const int64_t while_reading = most(prompt_tokens, std::min(chunk_tokens, prompt_tokens));
  const int64_t answered = std::min(answer_tokens, growth.tokens - prompt_tokens);
  const int64_t while_answering = answered > 0 ? most(growth.tokens, answered) : 0;
  return std::max(while_reading, while_answering);
}

}  // namespace snug::models
