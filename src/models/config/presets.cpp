// Built-in shapes of public models, which can be planned without files, and measured with random
// weights. Each family's file lists its own.
#include <algorithm>

#include "models/config/config.h"
#include "models/families/families.h"

namespace snug::models {
namespace {

ModelConfig to_config(const Family& family, const Preset& preset) {
  ModelConfig config;
  config.model_type = family.model_type;
  config.hidden_size = preset.hidden;
  config.num_layers = preset.layers;
  config.num_heads = preset.heads;
  config.num_kv_heads = preset.kv_heads;
  config.head_dim = preset.head_dim;
  config.intermediate_size = preset.intermediate;
  config.vocab_size = preset.vocab;
  config.max_position = preset.max_position;
  config.norm_epsilon = preset.norm_epsilon;
  config.rope.theta = preset.theta;
  config.tied_embeddings = preset.tied;
  if (preset.adjust != nullptr) preset.adjust(config);
  return config;
}

}  // namespace

std::optional<ModelConfig> preset(std::string_view name) {
  for (const Family* family : families())
    for (const Preset& entry : family->presets)
      if (entry.name == name) return to_config(*family, entry);
  return std::nullopt;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Family* family : families())
    for (const Preset& entry : family->presets) names.emplace_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace snug::models
