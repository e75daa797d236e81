// What the families' files share: keys of config.json that mean the same in all, read and written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/config.h"

namespace snug::models {

// What a key means that is absent; transformers' configuration classes differ in it.
struct Defaults {
  int64_t kv_heads = 0;  // 0: as many as heads
  int64_t head_dim = 0;  // 0: hidden_size / heads
  int64_t max_position = 2048;
  double norm_epsilon = 1e-6;
};

// The shape, norm, embedding and initializer keys. Throws UserError for a missing or impossible
// value and for an activation, dropout or quantisation that is not built. Rope, biases,
// windows and what is a family's own are the family's to read.
ModelConfig parse_shape(const base::JsonObject& json, const Defaults& defaults);

// The same keys, written.
nlohmann::json describe_shape(const ModelConfig& config);

// sliding_window: 0 (everything is seen) where it is null, `absent` where there is no such key.
int64_t parse_window(const base::JsonObject& json, int64_t absent);

// Qwen's form of sliding windows, a layer each: use_sliding_window, max_window_layers, layer_types.
std::vector<int64_t> parse_layer_windows(const base::JsonObject& json, int64_t num_layers);
void describe_layer_windows(const ModelConfig& config, nlohmann::json& json);

// Sizes are bounded, far above any model there is, so that a mistyped one is refused before it
// takes the machine's memory, and so that no product of sizes overflows: the bytes that training
// keeps of a model with every size at its bound are below 2^61.
inline constexpr int64_t kMaxLayers = int64_t{1} << 10;
inline constexpr int64_t kMaxHeads = int64_t{1} << 12;  // and elements of one
inline constexpr int64_t kMaxHidden = int64_t{1} << 20;
inline constexpr int64_t kMaxIntermediate = int64_t{1} << 22;
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

// An integer from 1 to `most`; throws UserError otherwise. The second form has a fallback when
// absent.
int64_t positive(const base::JsonObject& json, std::string_view key, int64_t most = kMaxPositions);
int64_t positive_or(const base::JsonObject& json, std::string_view key, int64_t fallback,
                    int64_t most = kMaxPositions);

}  // namespace snug::models
