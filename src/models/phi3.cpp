// The phi3 family: Phi-3 mini and medium. One tensor holds q, k and v, one gate and up; every layer
// may have a sliding window; positions are rotated as in llama or, in the 128k models, by longrope.
#include <nlohmann/json.hpp>

#include "models/config_keys.h"
#include "models/families.h"
#include "models/rope.h"

namespace snug::models {
namespace {

using base::JsonObject;

void set_traits(ModelConfig& config) { config.fused_projections = true; }

ModelConfig parse(const JsonObject& json) {
  ModelConfig config = parse_shape(json, {.max_position = 4096, .norm_epsilon = 1e-5});
  set_traits(config);
  config.rope = parse_longrope(json, config);
  config.windows.assign(static_cast<size_t>(config.num_layers), parse_window(json, 0));
  return config;
}

void describe(const ModelConfig& config, nlohmann::json& json) {
  json["sliding_window"] = nullptr;
  if (config.window_of(0) > 0) json["sliding_window"] = config.window_of(0);
  json["original_max_position_embeddings"] = config.rope.scaling == RopeScaling::longrope
                                                 ? config.rope.original_max_position
                                                 : config.max_position;
}

}  // namespace

const Family kPhi3{"phi3", "Phi3ForCausalLM", set_traits, parse, describe};

}  // namespace snug::models
