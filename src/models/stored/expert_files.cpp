#include "models/stored/expert_files.h"

#include <algorithm>
#include <string>

#include "formats/adapter/adapter_names.h"
#include "formats/folder/tensor_index.h"
#include "models/families/families.h"
#include "models/stored/expert_names.h"
#include "models/weights.h"

namespace snug::models {
namespace {

// The first tensor of experts' matrices that files of such a model hold.
std::string first_of_experts(const ModelConfig& config) {
  for (const Weight& weight : weights_of(config))
    if (weight.is_of_matrices())
      return std::move(file_pieces(weight.name, weight.shape).front().name);
  return {};
}

}  // namespace

void settle_expert_files(const std::filesystem::path& folder, ModelConfig& config) {
  if (config.num_experts == 0 || !formats::TensorIndex::has_files(folder)) return;
  ModelConfig other = config;
  other.experts_in_one = !config.experts_in_one;
  const std::string expected = first_of_experts(config);
  const std::string alternative = first_of_experts(other);
  if (expected == alternative) return;  // the family has one form
  const formats::TensorIndex index(folder);
  const auto is_held = [&](const std::string& wanted) {
    return std::ranges::any_of(index.tensors(), [&](const formats::IndexedTensor& tensor) {
      const std::string& name = tensor.info->name;
      return !formats::is_of_other_part(name) && formats::plain_module(name) == wanted;
    });
  };
  if (!is_held(expected) && is_held(alternative)) config.experts_in_one = other.experts_in_one;
}

}  // namespace snug::models
