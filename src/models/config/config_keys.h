// What the families' files share: keys of config.json that mean the same in all, read and written.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "models/config/config.h"

namespace snug::models {

// The keys of config.json under which a family's files give the sizes that every model has. These
// are Llama's, which most families share; GPT-2's files say n_embd for hidden_size, for example.
struct SizeKeys {
  std::string_view hidden = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view intermediate = "intermediate_size";
  std::string_view max_position = "max_position_embeddings";
};

// What a key means that is absent; transformers' configuration classes differ in it.
struct Defaults {
  SizeKeys keys{};
  int64_t kv_heads = 0;             // 0: as many as heads
  int64_t head_dim = 0;             // 0: hidden_size / heads
  int64_t intermediate_factor = 0;  // of hidden_size; 0: there must be a size
  int64_t max_position = 2048;
  double norm_epsilon = 1e-6;
  bool tied_embeddings = false;
  Positions positions = Positions::rotary;
  std::string_view norm_epsilon_key = "rms_norm_eps";
  // The activations that the family has, by the names of config.json; the first where none is
  // given. Empty: its files do not say.
  std::string_view activation_key = "hidden_act";
  std::vector<std::string_view> activations{"silu"};
  // The keys of dropout that published files of the family set, and their value where one is
  // absent. Other keys of dropout must be 0.
  std::vector<std::string_view> dropout_keys{};
  double dropout = 0;
  bool has_experts = false;  // the family is a mixture of experts, and reads its keys
};

// The shape, norm, embedding and initializer keys. Throws UserError for a missing or impossible
// value and for an activation, dropout or quantisation that is not built. Rope, biases,
// windows and what is a family's own are the family's to read.
ModelConfig parse_shape(const base::JsonObject& json, const Defaults& defaults);

// The first of these keys that the file has; the first of all where it has none.
std::string_view key_present(const base::JsonObject& json,
                             std::initializer_list<std::string_view> keys);

// The double whose decimal form is the shortest that gives this float: 1e-05, not 9.99999975e-06.
double as_written(float value);

// Throws UserError where the file gives several query heads one key head (grouped heads), or heads
// of another width than hidden_size / heads. For families in whose transformers code both are
// fixed, so that a file that says otherwise describes another model.
void require_plain_heads(const base::JsonObject& json, const ModelConfig& config);

// Throws UserError where the file sets use_bidirectional_attention: then a token would see those
// that follow it too, and snug has causal attention only.
void refuse_bidirectional(const base::JsonObject& json);

// Writes the keys of the config's shape.
nlohmann::json describe_shape(const ModelConfig& config);
// The value of a key under another one.
void rename_key(nlohmann::json& json, const char* from, const char* to);

// sliding_window: 0 (everything is seen) where it is null, `absent` where there is no such key.
int64_t parse_window(const base::JsonObject& json, int64_t absent);
// One window in every layer; 0: none in any.
void set_window(ModelConfig& config, int64_t window);
// The window in all layers but each `pattern`-th.
void set_window_pattern(ModelConfig& config, int64_t window, int64_t pattern);
void describe_window(const ModelConfig& config, nlohmann::json& json);

// The window of each layer, by the key layer_types, which has a word for each: a layer of
// "sliding_attention" has `window`, one of "full_attention" has 0, which is none. Throws UserError
// for another word, for another number of words than layers, and for a sliding layer where `window`
// is 0, that is, where the file gives none; `window_keys` says in the message which keys would.
std::vector<int64_t> parse_layer_types(const base::JsonObject& json, int64_t num_layers,
                                       int64_t window,
                                       std::string_view window_keys = "sliding_window");
void describe_layer_types(const ModelConfig& config, nlohmann::json& json);

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
inline constexpr int64_t kMaxExperts = int64_t{1} << 10;
inline constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
inline constexpr int64_t kMaxPositions = int64_t{1} << 30;

// An integer from 1 to `most`; throws UserError otherwise. The second form has a fallback when
// absent.
int64_t positive(const base::JsonObject& json, std::string_view key, int64_t most = kMaxPositions);
int64_t positive_or(const base::JsonObject& json, std::string_view key, int64_t fallback,
                    int64_t most = kMaxPositions);

}  // namespace snug::models
