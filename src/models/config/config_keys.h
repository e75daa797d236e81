// Reading and writing the keys of config.json that mean the same in all families.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/config/config.h"

namespace snug::models {

// The keys of config.json that hold the sizes that every model has. The defaults are Llama's, which
// most families share; GPT-2's files, for example, say n_embd for hidden_size.
struct SizeKeys {
  std::string_view hidden = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view intermediate = "intermediate_size";
  std::string_view max_position = "max_position_embeddings";
};

// The meaning of absent keys, which differs between transformers' configuration classes.
struct Defaults {
  SizeKeys keys{};
  int64_t heads = 0;                // 0: the number must be given
  int64_t vocab_size = 0;           // 0: the size must be given
  int64_t kv_heads = 0;             // 0: as many as heads
  int64_t head_dim = 0;             // 0: hidden_size / heads
  int64_t intermediate_factor = 0;  // times hidden_size; 0: the size must be given
  int64_t max_position = 2048;
  double norm_epsilon = 1e-6;
  bool tied_embeddings = false;
  Positions positions = Positions::rotary;
  std::string_view norm_epsilon_key = "rms_norm_eps";
  // The activations that the family supports, by their names in config.json; the first is the
  // default. Empty: its files do not name one.
  std::string_view activation_key = "hidden_act";
  std::vector<std::string_view> activations{"silu"};
  // The dropout keys that published files of the family set, and the rate where one is absent.
  // Other dropout keys must be 0.
  std::vector<std::string_view> dropout_keys{};
  double dropout = 0;
  bool has_experts = false;  // the family is a mixture of experts, whose keys are read
};

// Parses the keys of the shape, norms, embedding and initializer. Throws UserError for a missing or
// impossible value, and for an activation, dropout or quantisation that is not built. The family
// parses rope, biases, windows and its own keys.
ModelConfig parse_shape(const base::JsonObject& json, const Defaults& defaults);

// The first of these keys that the file has, or the first of all if it has none.
std::string_view key_present(const base::JsonObject& json,
                             std::initializer_list<std::string_view> keys);

// The double with the shortest decimal form that rounds to this float: 1e-05, not 9.99999975e-06.
double as_written(float value);

// A factor above 0 that fp32 has; `absent` where there is no such key. Throws UserError otherwise.
double parse_scale(const base::JsonObject& json, std::string_view key, double absent);

// Granite's four factors: embedding_multiplier, residual_multiplier, attention_multiplier and
// logits_scaling, which divides.
void parse_granite_scales(const base::JsonObject& json, ModelConfig& config);
void describe_granite_scales(const ModelConfig& config, nlohmann::json& json);

// Throws UserError where the file sets grouped-query heads, or a head width other than hidden_size
// / heads. For families whose transformers code supports neither, so such a file describes another
// model.
void require_plain_heads(const base::JsonObject& json, const ModelConfig& config);

// Throws UserError where the file sets use_bidirectional_attention: tokens would then see later
// tokens too, and snug supports only causal attention.
void refuse_bidirectional(const base::JsonObject& json);

// The JSON keys that describe the config's shape.
nlohmann::json describe_shape(const ModelConfig& config);
// Moves a value from one key to another.
void rename_key(nlohmann::json& json, const char* from, const char* to);

// Parses sliding_window: 0 (no window) where it is null, `absent` where there is no such key.
int64_t parse_window(const base::JsonObject& json, int64_t absent);
// Sets one window for every layer; 0: no window.
void set_window(ModelConfig& config, int64_t window);
// Sets the window for all layers except every `pattern`-th.
void set_window_pattern(ModelConfig& config, int64_t window, int64_t pattern);
void describe_window(const ModelConfig& config, nlohmann::json& json);
// For families whose layers without a window are not rotated.
void leave_full_layers_unrotated(ModelConfig& config);

// The window of each layer, from the key layer_types, which has a word for each layer:
// "sliding_attention" means `window`, "full_attention" means 0 (no window). Throws UserError for
// another word, for a number of words that differs from num_layers, and for a sliding layer where
// `window` is 0 because the file gives none; the message names `window_keys` as the keys that would
// set it.
std::vector<int64_t> parse_layer_types(const base::JsonObject& json, int64_t num_layers,
                                       int64_t window,
                                       std::string_view window_keys = "sliding_window");
void describe_layer_types(const ModelConfig& config, nlohmann::json& json);

// Qwen's sliding windows for each layer: use_sliding_window, max_window_layers, layer_types.
std::vector<int64_t> parse_layer_windows(const base::JsonObject& json, int64_t num_layers);
void describe_layer_windows(const ModelConfig& config, nlohmann::json& json);

// Upper bounds of sizes, far above any existing model. They ensure that a mistyped size is refused
// before memory is allocated for it, and that no product of sizes overflows: with every size at its
// bound, training keeps less than 2^61 bytes.
inline constexpr int64_t kMaxLayers = int64_t{1} << 10;
inline constexpr int64_t kMaxHeads = int64_t{1} << 12;  // also of the elements of a head
inline constexpr int64_t kMaxHidden = int64_t{1} << 20;
inline constexpr int64_t kMaxIntermediate = int64_t{1} << 22;
inline constexpr int64_t kMaxExperts = int64_t{1} << 10;
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

// An integer from 1 to `most`; otherwise throws UserError. The second form returns a fallback for
// an absent key.
int64_t positive(const base::JsonObject& json, std::string_view key, int64_t most = kMaxPositions);
int64_t positive_or(const base::JsonObject& json, std::string_view key, int64_t fallback,
                    int64_t most = kMaxPositions);

}  // namespace snug::models
