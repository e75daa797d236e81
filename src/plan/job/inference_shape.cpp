#include "plan/job/inference_shape.h"

#include <algorithm>

#include "base/error.h"

namespace snug::plan {
namespace {

int64_t whole_pages(int64_t tokens, int64_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

std::vector<int32_t> below(const std::vector<int32_t>& sizes, int64_t largest) {
  std::vector<int32_t> smaller = sizes;
  std::erase_if(smaller, [&](int32_t size) { return size >= largest; });
  return smaller;
}

}  // namespace

std::vector<int32_t> small_prefills(const InferenceShape& shape) {
  return below(shape.prefill_sizes, shape.prefill_tokens);
}

std::vector<int32_t> small_decodes(const InferenceShape& shape) {
  if (shape.all_logits) return {};
  return below(shape.decode_sizes, shape.sequences);
}

int64_t pages_of_sequence(const InferenceShape& shape, const models::KeyGroup& group) {
  const int64_t capacity = shape.capacity[group.stream];
  const int64_t all = whole_pages(capacity, shape.page_tokens);
  if (group.window == 0) return all;
  const int64_t seen = group.window - 1 + std::min(shape.prefill_tokens, capacity);
  return std::min(all, whole_pages(seen - 1, shape.page_tokens) + 1);
}

std::vector<models::KeyPool> key_pools(const InferenceShape& shape, const models::Stack& stack) {
  const std::vector<models::KeyGroup> groups = models::key_groups(stack);
  SNUG_CHECK(shape.pages.empty() || shape.pages.size() == groups.size(),
             "pages for {} groups of keys, of which the model has {}", shape.pages.size(),
             groups.size());
  std::vector<models::KeyPool> pools;
  pools.reserve(groups.size());
  for (size_t i = 0; i < groups.size(); ++i)
    pools.push_back({groups[i], shape.pages.empty()
                                    ? shape.sequences * pages_of_sequence(shape, groups[i])
                                    : shape.pages[i]});
  return pools;
}

}  // namespace snug::plan
