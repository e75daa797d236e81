#include "models/stored/open_weights.h"

#include <algorithm>
#include <string>
#include <vector>

#include "formats/adapter/adapter_names.h"
#include "formats/adapter/renamed_modules.h"
#include "models/weights.h"

namespace snug::models {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;

// The name without the module that holds the text model; the names of other parts stay.
std::string name_of_text_model(const std::string& name) {
  return formats::is_of_other_part(name) ? name : formats::plain_module(name);
}

void add_optional_prefix(TensorIndex& index, const Stack& stack) {
  const std::string& prefix = stack.optional_prefix;
  const auto has_prefix = [&](const IndexedTensor& tensor) {
    return tensor.info->name.starts_with(prefix);
  };
  if (!std::ranges::any_of(index.tensors(), has_prefix))
    index.rename([&](const std::string& name) {
      return name.starts_with(stack.head + ".") ? name : prefix + name;
    });
}

// Gives a weight its own name where the files hold it only under one of its other names.
void settle_name(TensorIndex& index, const std::string& own,
                 const std::vector<std::string>& others) {
  if (index.find(own) != nullptr) return;
  const auto other = std::ranges::find_if(
      others, [&](const std::string& name) { return index.find(name) != nullptr; });
  if (other != others.end())
    index.rename([&](const std::string& name) { return name == *other ? own : name; });
}

}  // namespace

TensorIndex open_weights(const std::filesystem::path& folder, const Stack& stack) {
  TensorIndex index(folder);
  if (!stack.text_module.empty())
    index.rename([](const std::string& name) { return name_of_text_model(name); });
  add_optional_prefix(index, stack);
  for (const std::string& own : {head_weight(stack), bias_name(stack.head)})
    settle_name(index, own, formats::names_of(own));
  std::vector<std::string> tables = stack.embedding_copies;
  if (stack.tied_head) tables.push_back(head_weight(stack));
  settle_name(index, embedding_weight(stack), tables);
  if (stack.head_from_embedding) index.add_alias(head_weight(stack), embedding_weight(stack));
  return index;
}

}  // namespace snug::models
