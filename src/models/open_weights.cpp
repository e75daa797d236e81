#include "models/open_weights.h"

#include <algorithm>
#include <string>

#include "models/weights.h"

namespace snug::models {

using formats::IndexedTensor;

formats::TensorIndex open_weights(const std::filesystem::path& folder, const Stack& stack) {
  formats::TensorIndex index(folder);
  const std::string& prefix = stack.optional_prefix;
  const auto has_prefix = [&](const IndexedTensor& tensor) {
    return tensor.info->name.starts_with(prefix);
  };
  if (!std::ranges::any_of(index.tensors(), has_prefix))
    index.rename([&](const std::string& name) {
      return name.starts_with(stack.head + ".") ? name : prefix + name;
    });
  if (stack.head_from_embedding) index.add_alias(head_weight(stack), embedding_weight(stack));
  if (stack.tied_head) index.add_alias(embedding_weight(stack), head_weight(stack));
  return index;
}

}  // namespace snug::models
