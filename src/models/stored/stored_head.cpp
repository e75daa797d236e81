#include "models/stored/stored_head.h"

#include "base/error.h"
#include "formats/folder/tensor_index.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::models {

using formats::IndexedTensor;
using formats::TensorIndex;

bool has_head_of_its_own(const std::filesystem::path& folder, const ModelConfig& config) {
  if (!config.tied_embeddings || !TensorIndex::has_files(folder)) return false;
  const Stack stack = stack_of(config);
  const TensorIndex index = open_weights(folder, stack);
  const IndexedTensor* head = index.find(head_weight(stack));
  const IndexedTensor* embedding = index.find(embedding_weight(stack));
  return head != nullptr && embedding != nullptr && !index.are_same(*head, *embedding);
}

void refuse_other_tables(const std::filesystem::path& folder, const ModelConfig& config) {
  const Stack stack = stack_of(config);
  if (stack.embedding_copies.empty() || !TensorIndex::has_files(folder)) return;
  const TensorIndex index = open_weights(folder, stack);
  const IndexedTensor* embedding = index.find(embedding_weight(stack));
  if (embedding == nullptr) return;
  for (const std::string& copy : stack.embedding_copies)
    if (const IndexedTensor* table = index.find(copy);
        table != nullptr && !index.are_same(*table, *embedding))
      base::throw_user_error(
          "{}: tensor '{}' is not the same as '{}'. transformers computes with both; snug has one "
          "embedding for encoder and decoder. If the latter is the embedding that you want, save "
          "the folder without the former",
          index.path_of(*table).string(), copy, embedding->info->name);
}

}  // namespace snug::models
