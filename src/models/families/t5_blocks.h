// What T5 and mT5 share (Raffel et al. 2020, Xue et al. 2021): an encoder and a decoder of one
// width, RMS norms before the blocks, no biases, scores that are not scaled but have a bias by
// relative position, whose table the first layer of each stack holds for all of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/json.h"
#include "models/blocks.h"
#include "models/config/config.h"

namespace snug::models {

Stack t5_stack(const ModelConfig& config);

// What differs between the families' files that leave keys out.
struct T5Defaults {
  std::string_view feed_forward;  // feed_forward_proj
  bool tied_embeddings = true;
};
ModelConfig parse_t5_shape(const base::JsonObject& json, const T5Defaults& defaults);
void describe_t5_shape(const ModelConfig& config, nlohmann::json& json);

// What a preset of so many heads of 64 elements, and the same number of layers in both stacks, says
// beyond its sizes: those of the list are of one stack. `gated` is what T5 1.1 and mT5 have.
void set_published_t5(ModelConfig& config, bool gated);

}  // namespace snug::models
