// What Qwen3-Next, Qwen 3.5 and its mixtures share: three layers of gated delta nets to one of
// attention, whose heads have a gate, norms that multiply by 1 + w, and the keys of config.json
// about these.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/json.h"
#include "models/blocks.h"
#include "models/config/config.h"
#include "models/families/llama_blocks.h"

namespace snug::models {

// A norm over the last `width` elements.
Norm norm_of_one_plus_w(const ModelConfig& config, std::string module, int64_t width);

// A gated delta net with a linear for each of its inputs, of the config's sizes.
GatedDeltaBlock gated_delta_net(const ModelConfig& config);

// A layer that begins with a gated delta net where the config says so, and elsewhere with attention
// whose heads have a gate.
Layer gated_delta_layer(const ModelConfig& config, int64_t index, GatedDeltaBlock recurrent,
                        Block mlp);

// A decoder with these layers. Its files may hold further layers (mtp).
Stack gated_delta_decoder(const ModelConfig& config, const auto& layer) {
  Stack stack = decoder(config, layer);
  stack.final_norm = norm_of_one_plus_w(config, "model.norm", config.hidden_size);
  stack.further_module = "mtp";
  return stack;
}

// Parses rope, attention and the layers' states into a config that has its shape. Throws UserError
// for what is not built.
void parse_gated_delta(const base::JsonObject& json, ModelConfig& config);
void describe_gated_delta(const ModelConfig& config, nlohmann::json& json);

// Sets what the published models have in common, and their number of value heads.
void set_published_states(ModelConfig& config, int64_t value_heads);

}  // namespace snug::models
