#include "models/stored_head.h"

#include <algorithm>
#include <vector>

#include "formats/tensor_index.h"
#include "models/families.h"
#include "models/open_weights.h"
#include "models/weights.h"

namespace snug::models {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;

constexpr int64_t kPieceBytes = int64_t{4} << 20;

bool have_same_bytes(const TensorIndex& index, const IndexedTensor& a, const IndexedTensor& b) {
  const int64_t bytes = a.info->bytes();
  std::vector<char> of_a(static_cast<size_t>(std::min(bytes, kPieceBytes)));
  std::vector<char> of_b(of_a.size());
  for (int64_t first = 0; first < bytes; first += kPieceBytes) {
    const int64_t count = std::min(kPieceBytes, bytes - first);
    index.read_range(a, first, count, of_a.data());
    index.read_range(b, first, count, of_b.data());
    if (!std::equal(of_a.begin(), of_a.begin() + count, of_b.begin())) return false;
  }
  return true;
}

}  // namespace

bool has_head_of_its_own(const std::filesystem::path& folder, const ModelConfig& config) {
  if (!config.tied_embeddings || !TensorIndex::has_files(folder)) return false;
  const Stack stack = stack_of(config);
  const TensorIndex index = open_weights(folder, stack);
  const IndexedTensor* head = index.find(head_weight(stack));
  const IndexedTensor* embedding = index.find(embedding_weight(stack));
  if (head == nullptr || embedding == nullptr) return false;
  const bool is_alike = head->info->stored_dtype == embedding->info->stored_dtype &&
                        head->info->shape == embedding->info->shape;
  return !is_alike || !have_same_bytes(index, *head, *embedding);
}

}  // namespace snug::models
