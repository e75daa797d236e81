#include "plan/job/inference_shape.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "models/forward/key_pages.h"

namespace snug::plan {
namespace {

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
  return below(shape.decode_sizes, decode_rows(shape));
}

void add_small_sizes(InferenceShape& shape) {
  shape.prefill_sizes = {32, 128};
  shape.decode_sizes.clear();
  for (int32_t size = 1; size < decode_rows(shape); size *= 2) shape.decode_sizes.push_back(size);
}

void add_served_sizes(InferenceShape& shape) {
  add_small_sizes(shape);
  shape.prefill_sizes = {32, 128, 256, 384};
}

void allow_guesses(InferenceShape& shape, int64_t tokens) {
  SNUG_CHECK(tokens >= 0 && tokens <= kMostGuessedTokens, "{} tokens are guessed", tokens);
  shape.guessed_tokens = static_cast<int32_t>(tokens);
  add_small_sizes(shape);
}

int64_t pages_of_sequence(const InferenceShape& shape, const models::KeyGroup& group) {
  const int64_t capacity = shape.capacity[group.stream];
  return models::most_pages(group.window,
                            {shape.page_tokens, shape.prefill_tokens, 1 + shape.guessed_tokens},
                            {capacity, capacity});
}

std::vector<models::KeyPool> key_pools(const InferenceShape& shape, const models::Stack& stack) {
  const std::vector<models::KeyGroup> groups = models::key_groups(stack);
  SNUG_CHECK(shape.page_tokens > 0, "pages of {} tokens", shape.page_tokens);
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

std::vector<int64_t> pages_of_sequences(const InferenceShape& shape, const models::Stack& stack,
                                        int64_t sequences) {
  std::vector<int64_t> pages;
  for (const models::KeyGroup& group : models::key_groups(stack))
    pages.push_back(sequences * pages_of_sequence(shape, group));
  return pages;
}

int64_t token_bytes(const models::Stack& stack, const models::KeyGroup& group,
                    const InferenceShape& shape, base::DType compute) {
  int64_t bytes = 0;
  for (const models::Layer& layer : stack.layers)
    for (const models::Branch& branch : layer.branches) {
      const auto* attention = std::get_if<models::AttentionBlock>(&branch.block);
      if (attention == nullptr || attention->keys_of_layer ||
          models::key_group(*attention) != group)
        continue;
      const int64_t head = shape.quantized_cache
                               ? attention->head_dim + base::size_of(base::DType::f32)
                               : attention->head_dim * base::size_of(compute);
      bytes += 2 * attention->kv_heads * head;
    }
  return bytes;
}

}  // namespace snug::plan
