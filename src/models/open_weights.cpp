#include "models/open_weights.h"

#include <algorithm>
#include <string>

namespace snug::models {

using formats::IndexedTensor;

formats::TensorIndex open_weights(const std::filesystem::path& folder, const Stack& stack) {
  formats::TensorIndex index(folder);
  const std::string& prefix = stack.optional_prefix;
  const auto has_prefix = [&](const IndexedTensor& tensor) {
    return tensor.info->name.starts_with(prefix);
  };
  if (!std::ranges::any_of(index.tensors(), has_prefix)) index.add_prefix(prefix, stack.head + ".");
  return index;
}

}  // namespace snug::models
