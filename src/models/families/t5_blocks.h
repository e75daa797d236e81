// What T5 and mT5 share (Raffel et al. 2020, Xue et al. 2021): an encoder and a decoder of the same
// width, RMS norms before the blocks, no biases, and unscaled scores with a bias by relative
// position. The first layer of each stack holds the table of these biases for all layers of that
// stack.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/json.h"
#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

Stack t5_stack(const ModelConfig& config);

// Defaults of absent keys that differ between the families.
struct T5Defaults {
  std::string_view feed_forward;  // default of feed_forward_proj
  bool tied_embeddings = true;
};
ModelConfig parse_t5_shape(const base::JsonObject& json, const T5Defaults& defaults);
void describe_t5_shape(const ModelConfig& config, nlohmann::json& json);

// Sets what a preset's config.json says beyond the sizes in the list. A preset has heads of 64
// elements and the same number of layers in the encoder and the decoder; the list gives the layers
// of one of them. `gated`: as in T5 1.1 and mT5.
void set_published_t5(ModelConfig& config, bool gated);

}  // namespace snug::models
