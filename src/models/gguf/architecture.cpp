#include "models/gguf/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "models/config/multimodal.h"
#include "models/families/families.h"
#include "models/gguf/gguf_family.h"
#include "models/gguf/gguf_tensors.h"

namespace snug::models {
namespace {

using formats::Metadata;

// yarn's ramp in llama.cpp.
constexpr double kBetaFast = 32;
constexpr double kBetaSlow = 1;

// Sets keys that begin with the architecture's name.
class GgufKeys {
 public:
  GgufKeys(std::string architecture, Metadata& metadata)
      : architecture_(std::move(architecture)), metadata_(metadata) {}
  void count(std::string_view key, int64_t value) const { set(key, static_cast<uint32_t>(value)); }
  void number(std::string_view key, double value) const { set(key, static_cast<float>(value)); }
  void set(std::string_view key, formats::MetadataValue value) const {
    metadata_.set(fmt::format("{}.{}", architecture_, key), std::move(value));
  }

 private:
  std::string architecture_;
  Metadata& metadata_;
};

// The positions that the model was trained with, which not every family limits.
int64_t context_length(const ModelConfig& config, const nlohmann::json& json) {
  constexpr int64_t kUnlimited = int64_t{1} << 30;
  if (config.max_position < kUnlimited) return config.max_position;
  for (const char* key : {"n_positions", "seq_length"})
    if (json.contains(key) && json[key].is_number_integer()) return json[key].get<int64_t>();
  return config.has_encoder() ? 512 : 2048;
}

void set_shape(const GgufKeys& keys, const ModelConfig& config, const nlohmann::json& json) {
  const int64_t decoder_layers = config.num_layers - config.encoder_layers;
  keys.count("block_count", config.has_encoder() ? config.encoder_layers : decoder_layers);
  if (config.has_encoder()) keys.count("decoder_block_count", decoder_layers);
  keys.count("context_length", context_length(config, json));
  keys.count("embedding_length", config.hidden_size);
  keys.count("feed_forward_length", config.intermediate_size);
  keys.count("vocab_size", config.vocab_size);
  keys.count("attention.head_count", config.num_heads);
  keys.count("attention.head_count_kv", config.num_kv_heads);
  keys.count("attention.key_length", config.head_dim);
  keys.count("attention.value_length", config.head_dim);
}

// Sizes that differ between layers with a window and those without, and between layers that have
// keys of their own and those that read another's.
void set_unlike_layers(const GgufKeys& keys, const ModelConfig& config) {
  if (config.full_head_dim == 0) return;
  keys.count("attention.key_length", config.full_head_dim);
  keys.count("attention.value_length", config.full_head_dim);
  keys.count("attention.key_length_swa", config.head_dim);
  keys.count("attention.value_length_swa", config.head_dim);
  keys.count("rope.dimension_count", config.full_head_dim);
  keys.count("rope.dimension_count_swa", config.head_dim);
  keys.count("attention.shared_kv_layers", config.sharing_layers);
  keys.count("embedding_length_per_layer_input", config.layer_input_size);
  const auto by_layer = [&](std::string_view key, const auto& value) {
    std::vector<int32_t> values;
    values.reserve(static_cast<size_t>(config.num_layers));
    for (int64_t layer = 0; layer < config.num_layers; ++layer)
      values.push_back(static_cast<int32_t>(value(layer)));
    keys.set(key, std::move(values));
  };
  if (config.keys_as_values)
    by_layer("attention.head_count_kv", [&](int64_t layer) {
      return config.window_of(layer) > 0 ? config.num_kv_heads : config.full_kv_heads;
    });
  if (config.wide_sharing_mlps)
    by_layer("feed_forward_length", [&](int64_t layer) {
      const bool is_wide = layer >= config.num_layers - config.sharing_layers;
      return config.intermediate_size * (is_wide ? 2 : 1);
    });
}

void set_norms(const GgufKeys& keys, const Stack& stack) {
  const bool is_layer_norm = stack.final_norm.form == NormForm::layer;
  if (is_layer_norm || stack.encoder)
    keys.number("attention.layer_norm_epsilon", stack.final_norm.epsilon);
  if (!is_layer_norm) keys.number("attention.layer_norm_rms_epsilon", stack.final_norm.epsilon);
}

// llama.cpp multiplies yarn's table by 0.1 ln(factor) + 1, and by attn_factor.
void set_yarn(const GgufKeys& keys, const RopeConfig& rope) {
  keys.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  keys.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  // Ministral 3's files say instead that the table is not multiplied.
  const bool is_plain = rope.query_beta > 0 && rope.attention_factor == 1.0;
  if (is_plain) keys.number("rope.scaling.yarn_log_multiplier", 1.0);
  const double theirs = is_plain ? 1.0 : 0.1 * std::log(rope.factor) + 1.0;
  const auto rest = static_cast<float>(rope.attention_factor / theirs);
  if (std::abs(rest - 1.0F) > 1e-6F) keys.number("rope.scaling.attn_factor", rest);
}

void set_rotary(const GgufKeys& keys, const ModelConfig& config) {
  if (config.positions != Positions::rotary) return;
  const RopeConfig& rope = config.rope;
  keys.count("rope.dimension_count", config.rotary_width());
  keys.number("rope.freq_base", rope.theta);
  if (config.local_rope) keys.number("rope.freq_base_swa", config.local_rope->theta);
  if (rope.scaling == RopeScaling::linear || rope.scaling == RopeScaling::yarn) {
    keys.set("rope.scaling.type", std::string(base::word_of(rope.scaling)));
    keys.number("rope.scaling.factor", rope.factor);
  }
  if (rope.scaling == RopeScaling::yarn) set_yarn(keys, rope);
  const bool is_long = rope.scaling == RopeScaling::longrope;
  if (rope.scaling == RopeScaling::yarn || is_long)
    keys.count("rope.scaling.original_context_length", rope.original_max_position);
  if (is_long) keys.number("rope.scaling.attn_factor", rope.attention_factor);
  if (config.model_type == "phi3" && !is_long)
    keys.count("rope.scaling.original_context_length", config.max_position);
}

// The largest window of the layers; 0 where there is none.
int64_t window_in(const ModelConfig& config) {
  return config.windows.empty() ? 0 : *std::ranges::max_element(config.windows);
}

void set_windows(const GgufKeys& keys, const GgufFamily& family, const ModelConfig& config) {
  const int64_t window = window_in(config);
  // Without the key, phi3 would have the window of the first Phi-3.
  if (family.architecture == "phi3") keys.count("attention.sliding_window", window);
  if (window == 0 || family.window_period == 0) return;
  keys.count("attention.sliding_window", window);
  std::vector<bool> has_window;
  bool is_usual = true;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    has_window.push_back(config.window_of(layer) > 0);
    is_usual &= has_window.back() == (layer % family.window_period < family.window_period - 1);
  }
  if (!is_usual || family.lists_windows) keys.set("attention.sliding_window_pattern", has_window);
}

void set_experts(const GgufKeys& keys, const GgufFamily& family, const ModelConfig& config) {
  if (config.num_experts == 0) return;
  keys.count("expert_count", config.num_experts);
  keys.count("expert_used_count", config.chosen_experts);
  keys.count("expert_feed_forward_length", config.expert_size);
  if (config.shared_expert_size > 0 && !family.says_experts)
    keys.count("expert_shared_feed_forward_length", config.shared_expert_size);
  if (!family.says_experts) return;
  constexpr int64_t kBySigmoids = 2;
  keys.count("expert_shared_count", config.shared_expert_size / config.expert_size);
  keys.count("leading_dense_block_count", std::ssize(config.dense_layers));
  keys.count("expert_gating_func", kBySigmoids);
  keys.count("expert_group_count", config.expert_groups);
  keys.count("expert_group_used_count", config.chosen_groups);
  keys.count("nextn_predict_layers", 0);
  keys.number("expert_weights_scale", config.expert_scale);
  keys.set("expert_weights_norm", config.normalize_experts);
}

const nlohmann::json& text_of(const nlohmann::json& json) {
  const nlohmann::json* part = text_part(json);
  return part == nullptr ? json : *part;
}

// Every so many layers one attends; llama.cpp reads it where there is no list of layers.
int64_t attention_interval(const nlohmann::json& text) {
  const auto found = text.find("full_attention_interval");
  return found != text.end() && found->is_number_integer() ? found->get<int64_t>() : 4;
}

// Of Qwen 3.5's rotation by positions of three kinds, which are one in text.
std::vector<int32_t> rotary_sections(const nlohmann::json& text) {
  std::vector<int32_t> sections{11, 11, 10};
  if (text.contains("rope_parameters") && text["rope_parameters"].contains("mrope_section"))
    sections = text["rope_parameters"]["mrope_section"].get<std::vector<int32_t>>();
  sections.resize(4, 0);
  return sections;
}

// Layers that keep a state: gated delta nets and short convolutions.
void set_states(const GgufKeys& keys, const GgufFamily& family, const ModelConfig& config,
                const nlohmann::json& json) {
  if (config.recurrent_layers.empty()) return;
  std::vector<bool> keeps_state;
  std::vector<int32_t> kv_heads;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    keeps_state.push_back(std::ranges::binary_search(config.recurrent_layers, layer));
    kv_heads.push_back(keeps_state.back() ? 0 : static_cast<int32_t>(config.num_kv_heads));
  }
  if (config.state_value_heads == 0) {
    keys.count("shortconv.l_cache", config.convolution_width);
    keys.set("attention.head_count_kv", kv_heads);
    return;
  }
  keys.count("ssm.conv_kernel", config.convolution_width);
  keys.count("ssm.state_size", config.state_key_dim);
  keys.count("ssm.group_count", config.state_key_heads);
  keys.count("ssm.time_step_rank", config.state_value_heads);
  keys.count("ssm.inner_size", config.state_value_heads * config.state_value_dim);
  keys.set("attention.recurrent_layers", keeps_state);
  keys.count("full_attention_interval", attention_interval(text_of(json)));
  if (family.architecture != "qwen3next")
    keys.set("rope.dimension_sections", rotary_sections(text_of(json)));
}

void set_others(const GgufKeys& keys, const GgufFamily& family, const ModelConfig& config) {
  if (config.attention_softcap > 0) keys.number("attn_logit_softcapping", config.attention_softcap);
  if (config.logit_softcap > 0) keys.number("final_logit_softcapping", config.logit_softcap);
  if (config.relative_buckets > 0)
    keys.count("attention.relative_buckets_count", config.relative_buckets);
  if (config.has_encoder()) keys.count("decoder_start_token_id", config.decoder_start_id);
  if (family.architecture.starts_with("granite")) {
    keys.number("attention.scale", config.attention_scale);
    keys.number("embedding_scale", config.embedding_scale);
    keys.number("residual_scale", config.residual_scale);
    keys.number("logit_scale", 1.0 / config.logit_scale);
  }
  if (family.architecture == "cohere2") {
    keys.number("logit_scale", config.logit_scale);
    keys.set("rope.scaling.type", std::string("none"));
  }
  if (config.rope.query_beta > 0)
    keys.number("attention.temperature_scale", config.rope.query_beta);
  if (family.architecture == "gptneox" || family.architecture == "stablelm")
    keys.set("use_parallel_residual", config.parallel_residual);
  if (family.architecture == "falcon") keys.set("tensor_data_layout", std::string("jploski"));
}

std::vector<GgufNumbers> activation_numbers(const Stack& stack) {
  std::vector<GgufNumbers> list;
  for (const char* name : {"alpha_n", "alpha_p", "beta", "eps"}) {
    GgufNumbers numbers{fmt::format("xielu.{}", name), {}};
    for (int64_t layer = 0; layer < stack.layer_count(); ++layer)
      for (const Branch& branch : stack.layer(layer).branches)
        if (const auto* mlp = std::get_if<Mlp>(&branch.block); mlp && !mlp->learned.empty())
          numbers.sources.push_back(
              fmt::format("{}.{}.{}", stack.layer_name(layer), mlp->learned, name));
    if (!numbers.sources.empty()) list.push_back(std::move(numbers));
  }
  return list;
}

std::vector<std::string> differences(const GgufFamily& family, const ModelConfig& config,
                                     const Stack& stack) {
  std::vector<std::string> list;
  if (const int64_t window = window_in(config); window > 0 && family.window_period == 0)
    list.push_back(
        fmt::format("llama.cpp has no sliding window for {}: it sees all tokens, so "
                    "texts of more than {} tokens are read in another way than in "
                    "training",
                    family.architecture, window));
  if (config.rope.scaling == RopeScaling::dynamic)
    list.push_back(
        fmt::format("llama.cpp has no dynamic rope_scaling: texts of more than {} "
                    "tokens are read without it",
                    config.max_position));
  if (config.rope.scaling == RopeScaling::yarn && !config.rope.truncate)
    list.emplace_back("llama.cpp rounds the ends of yarn's ramp, which truncate=false does not");
  if (config.rope.scaling == RopeScaling::yarn &&
      (config.rope.beta_fast != kBetaFast || config.rope.beta_slow != kBetaSlow))
    list.push_back(fmt::format(
        "llama.cpp reads no beta_fast and beta_slow of yarn for {}: it has "
        "{} and {}, not {} and {}",
        family.architecture, kBetaFast, kBetaSlow, config.rope.beta_fast, config.rope.beta_slow));
  if (config.gelu_tanh) return list;
  for (const Branch& branch : stack.layer(0).branches)
    if (const auto* mlp = std::get_if<Mlp>(&branch.block);
        mlp != nullptr && mlp->activation == Activation::gelu)
      list.emplace_back("llama.cpp computes gelu in its tanh form, the model in its exact form");
  return list;
}

// What layers that read the keys of an earlier one have in published folders, and so in files that
// others made of these.
std::vector<std::string> ignored_tensors(const Stack& stack) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < stack.layer_count(); ++layer)
    for (const Branch& branch : stack.layer(layer).branches)
      if (const auto* attention = std::get_if<AttentionBlock>(&branch.block);
          attention != nullptr && attention->keys_of_layer)
        for (const char* part : {"attn_k", "attn_v", "attn_k_norm"})
          names.push_back(fmt::format("blk.{}.{}.weight", layer, part));
  return names;
}

}  // namespace

GgufModel gguf_model(const ModelConfig& config, const nlohmann::json& config_json) {
  const GgufFamily& family = gguf_family(config.model_type);
  const Stack stack = stack_of(config);
  check_runs_in_llama_cpp(family, config, stack);
  GgufModel model;
  model.architecture = family.architecture;
  const GgufKeys keys(model.architecture, model.hyper_parameters);
  set_shape(keys, config, config_json);
  set_norms(keys, stack);
  set_rotary(keys, config);
  set_windows(keys, family, config);
  set_unlike_layers(keys, config);
  set_experts(keys, family, config);
  set_states(keys, family, config, config_json);
  set_others(keys, family, config);
  model.tensors = gguf_tensors(family, config, stack);
  model.numbers = activation_numbers(stack);
  model.ignored = ignored_tensors(stack);
  model.differences = differences(family, config, stack);
  return model;
}

std::vector<std::string_view> families_of_architecture(std::string_view architecture) {
  std::vector<std::string_view> list;
  for (const GgufFamily& family : gguf_families())
    if (family.architecture == architecture) list.push_back(family.model_type);
  return list;
}

std::string architecture_names() {
  std::string names;
  std::string_view last;
  for (const GgufFamily& family : gguf_families()) {
    if (family.architecture != last)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", family.architecture);
    last = family.architecture;
  }
  return names;
}

}  // namespace snug::models
