#include "models/gguf/gguf_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <variant>

#include "base/error.h"

namespace snug::models {
namespace {

constexpr GgufFamily llama_like(std::string_view model_type) {
  return {.model_type = model_type,
          .architecture = "llama",
          .rotary_in_turns = true,
          .own_head_dim = true,
          .output_bias = true,
          .mlp_bias = true,
          .rotary_factors = true};
}

constexpr GgufFamily in_turns(std::string_view model_type, std::string_view architecture) {
  return {.model_type = model_type,
          .architecture = architecture,
          .rotary_in_turns = true,
          .own_head_dim = true};
}

constexpr GgufFamily glm4() {
  GgufFamily family = in_turns("glm4", "glm4");
  family.rotates_part = true;
  return family;
}

constexpr GgufFamily granite(std::string_view model_type) {
  GgufFamily family = llama_like(model_type);
  family.architecture = model_type;
  family.logit_scale = true;
  return family;
}

constexpr GgufFamily ministral3() {
  GgufFamily family = llama_like("ministral3");
  family.architecture = "mistral3";
  return family;
}

constexpr GgufFamily ernie4_5() {
  GgufFamily family = in_turns("ernie4_5", "ernie4_5");
  family.bias_key = "use_bias";
  return family;
}

constexpr GgufFamily smollm3() {
  GgufFamily family = in_turns("smollm3", "smollm3");
  family.unrotated_period = 4;
  return family;
}

constexpr GgufFamily gemma4(std::string_view model_type) {
  return {.model_type = model_type,
          .architecture = "gemma4",
          .own_head_dim = true,
          .factors_of_full_layers = true,
          .window_period = 6,
          .lists_windows = true,
          .mlp_next_to_experts = true};
}

constexpr std::array kGgufFamilies{
    llama_like("llama"),
    llama_like("mistral"),
    llama_like("mixtral"),
    GgufFamily{.model_type = "qwen2", .architecture = "qwen2"},
    GgufFamily{.model_type = "qwen3", .architecture = "qwen3", .own_head_dim = true},
    GgufFamily{.model_type = "qwen3_moe", .architecture = "qwen3moe", .own_head_dim = true},
    GgufFamily{.model_type = "gemma",
               .architecture = "gemma",
               .head = GgufHead::tied,
               .own_head_dim = true},
    GgufFamily{.model_type = "gemma2",
               .architecture = "gemma2",
               .head = GgufHead::tied,
               .own_head_dim = true,
               .window_period = 2},
    GgufFamily{.model_type = "gemma3_text",
               .architecture = "gemma3",
               .own_head_dim = true,
               .window_period = 6},
    gemma4("gemma4_text"),
    gemma4("gemma4_unified_text"),
    GgufFamily{.model_type = "phi",
               .architecture = "phi2",
               .head = GgufHead::own,
               .rotates_part = true,
               .output_bias = true},
    GgufFamily{.model_type = "phi3", .architecture = "phi3"},
    GgufFamily{.model_type = "gpt2", .architecture = "gpt2", .output_bias = true},
    GgufFamily{.model_type = "gpt_neox",
               .architecture = "gptneox",
               .head = GgufHead::own,
               .rotates_part = true,
               .output_bias = true,
               .needs_biases = true},
    GgufFamily{.model_type = "bloom", .architecture = "bloom", .output_bias = true},
    GgufFamily{.model_type = "falcon",
               .architecture = "falcon",
               .bias_key = "bias",
               .attention_norm = "attn_norm_2",
               .mlp_norm = "attn_norm"},
    GgufFamily{.model_type = "olmo2", .architecture = "olmo2", .head = GgufHead::own},
    GgufFamily{.model_type = "olmo3",
               .architecture = "olmo2",
               .head = GgufHead::own,
               .window_period = 4,
               .lists_windows = true},
    granite("granite"),
    granite("granitemoe"),
    GgufFamily{.model_type = "qwen2_moe",
               .architecture = "qwen2moe",
               .head = GgufHead::own,
               .plain_expert_weights = true},
    GgufFamily{.model_type = "olmoe",
               .architecture = "olmoe",
               .head = GgufHead::own,
               .plain_expert_weights = true},
    GgufFamily{.model_type = "glm4_moe",
               .architecture = "glm4moe",
               .rotates_part = true,
               .own_head_dim = true,
               .says_experts = true,
               .mlp_norm = "post_attention_norm"},
    smollm3(),
    ministral3(),
    ernie4_5(),
    glm4(),
    GgufFamily{.model_type = "seed_oss",
               .architecture = "seed_oss",
               .own_head_dim = true,
               .bias_key = "attention_out_bias",
               .mlp_norm = "post_attention_norm"},
    GgufFamily{
        .model_type = "hunyuan_v1_dense", .architecture = "hunyuan-dense", .own_head_dim = true},
    GgufFamily{.model_type = "exaone4",
               .architecture = "exaone4",
               .rotary_factors = true,
               .window_period = 4,
               .lists_windows = true,
               .rotates_windows = true},
    GgufFamily{.model_type = "cohere2",
               .architecture = "cohere2",
               .head = GgufHead::tied,
               .rotary_in_turns = true,
               .window_period = 4,
               .rotates_windows = true,
               .logit_scale = true},
    GgufFamily{.model_type = "stablelm",
               .architecture = "stablelm",
               .head = GgufHead::own,
               .rotates_part = true},
    GgufFamily{.model_type = "gpt_oss",
               .architecture = "gpt-oss",
               .head = GgufHead::own,
               .own_head_dim = true,
               .output_bias = true,
               .needs_biases = true,
               .window_period = 2,
               .mlp_norm = "post_attention_norm"},
    GgufFamily{.model_type = "qwen3_5_text",
               .architecture = "qwen35",
               .rotates_part = true,
               .own_head_dim = true,
               .mlp_norm = "post_attention_norm"},
    GgufFamily{.model_type = "qwen3_5_moe_text",
               .architecture = "qwen35moe",
               .rotates_part = true,
               .own_head_dim = true,
               .mlp_norm = "post_attention_norm"},
    GgufFamily{.model_type = "qwen3_next",
               .architecture = "qwen3next",
               .rotates_part = true,
               .own_head_dim = true,
               .mlp_norm = "post_attention_norm"},
    GgufFamily{.model_type = "apertus",
               .architecture = "apertus",
               .head = GgufHead::own,
               .own_head_dim = true,
               .output_bias = true,
               .rotary_factors = true},
    GgufFamily{.model_type = "lfm2", .architecture = "lfm2", .final_norm = "token_embd_norm"},
    GgufFamily{.model_type = "t5", .architecture = "t5", .own_head_dim = true},
    GgufFamily{.model_type = "mt5", .architecture = "t5", .own_head_dim = true},
};

// The settings of the published models, which llama.cpp computes with.
constexpr double kGateLimit = 7.0;
constexpr double kGateAlpha = 1.702;
constexpr int64_t kRelativeDistance = 128;
// EXAONE 4.0 of 32B, which llama.cpp knows by its layers: it alone has windows there.
constexpr int64_t kLayersOfExaone32b = 64;

[[noreturn]] void refuse_setting(const GgufFamily& family, std::string_view key,
                                 const std::string& what) {
  base::throw_user_error(
      "this model cannot be a GGUF file: {} in config.json {}. Run its folder in a program that "
      "reads Hugging Face's format",
      key, fmt::format(fmt::runtime(what), fmt::arg("arch", family.architecture)));
}

bool has_windows(const ModelConfig& config) {
  return std::ranges::any_of(config.windows, [](int64_t window) { return window > 0; });
}

void check_attention(const GgufFamily& family, const ModelConfig& config) {
  if (!family.own_head_dim && config.head_dim * config.num_heads != config.hidden_size)
    refuse_setting(family, "head_dim",
                   fmt::format("is {}, but heads of llama.cpp's {{arch}} have hidden_size / "
                               "num_attention_heads = {} elements",
                               config.head_dim, config.hidden_size / config.num_heads));
  if (config.rope.scaling == RopeScaling::llama3 && !family.rotary_factors)
    refuse_setting(family, "rope_scaling",
                   "is llama3, which llama.cpp has for llama and not for {arch}");
  if (family.factors_of_full_layers && !has_windows(config))
    refuse_setting(family, "layer_types",
                   "has no layer with a window, and llama.cpp's {arch} has some");
  if (family.factors_of_full_layers && config.local_rope &&
      config.local_rope->scaling != RopeScaling::none)
    refuse_setting(family, "rope_parameters.sliding_attention",
                   "is not default, as it is in llama.cpp's {arch}");
  if (config.relative_distance != 0 && config.relative_distance != kRelativeDistance)
    refuse_setting(family, "relative_attention_max_distance",
                   fmt::format("is {}; llama.cpp's {{arch}} has {}", config.relative_distance,
                               kRelativeDistance));
}

void check_layers(const GgufFamily& family, const ModelConfig& config) {
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const bool rotates = !std::ranges::binary_search(config.unrotated_layers, layer);
    if (rotates != rotates_in_llama_cpp(family, config, layer))
      refuse_setting(
          family, "no_rope_layers or layer_types",
          fmt::format("says that layer {} {}, which it does {}in llama.cpp's {{arch}}", layer,
                      rotates ? "rotates" : "does not rotate", rotates ? "not " : ""));
  }
  if (family.architecture == "exaone4" &&
      has_windows(config) != (config.num_layers == kLayersOfExaone32b))
    refuse_setting(family, "sliding_window and num_hidden_layers",
                   fmt::format("do not go together: llama.cpp's {{arch}} has windows with {} "
                               "layers, and only then",
                               kLayersOfExaone32b));
  if (family.architecture == "olmo2" && config.local_rope &&
      config.local_rope->theta != config.rope.theta)
    refuse_setting(family, "rope_parameters",
                   "has two values of rope_theta; llama.cpp's {arch} has one");
}

void check_biases(const GgufFamily& family, const Branch& branch) {
  const auto* attention = std::get_if<AttentionBlock>(&branch.block);
  if (attention != nullptr && attention->output.bias && !family.output_bias)
    refuse_setting(family, family.bias_key,
                   "is true, but the output projection of llama.cpp's {arch} has no bias");
  const auto* mlp = std::get_if<GatedMlp>(&branch.block);
  if (mlp != nullptr && mlp->down.bias && !family.mlp_bias)
    refuse_setting(family, "mlp_bias", "is true, but the mlp of llama.cpp's {arch} has no biases");
}

void check_experts(const GgufFamily& family, const ModelConfig& config) {
  if (!config.dense_layers.empty() && !family.says_experts)
    refuse_setting(family, "mlp_only_layers or decoder_sparse_step",
                   "leaves layers without experts; in llama.cpp's {arch} every layer has them");
  if (!family.says_experts && config.normalize_experts == family.plain_expert_weights)
    refuse_setting(
        family, "norm_topk_prob",
        config.normalize_experts
            ? "is true; llama.cpp's {arch} does not divide the weights of experts by "
              "their sum"
            : "is false; llama.cpp's {arch} divides the weights of experts by their sum");
  if (config.expert_groups > 1)
    refuse_setting(
        family, "n_group",
        fmt::format("is {}; experts of llama.cpp's {{arch}} form no groups", config.expert_groups));
  if (family.architecture == "olmoe" && config.num_kv_heads != config.num_heads)
    refuse_setting(family, "num_key_value_heads",
                   "is not num_attention_heads, as it is in llama.cpp's {arch}");
}

void check_blocks(const GgufFamily& family, const ModelConfig& config, const Stack& stack) {
  for (int64_t layer = 0; layer < stack.layer_count(); ++layer)
    for (const Branch& branch : stack.layer(layer).branches) check_biases(family, branch);
  if (config.num_experts > 0) check_experts(family, config);
  if (config.gate_limit != 0 &&
      (static_cast<float>(config.gate_limit) != static_cast<float>(kGateLimit) ||
       static_cast<float>(config.gate_alpha) != static_cast<float>(kGateAlpha)))
    refuse_setting(family, "swiglu_limit and swiglu_alpha",
                   fmt::format("are {} and {}; llama.cpp's {{arch}} has {} and {}",
                               config.gate_limit, config.gate_alpha, kGateLimit, kGateAlpha));
}

}  // namespace

std::span<const GgufFamily> gguf_families() { return kGgufFamilies; }

const GgufFamily& gguf_family(std::string_view model_type) {
  std::string names;
  for (const GgufFamily& family : kGgufFamilies) {
    if (family.model_type == model_type) return family;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.model_type);
  }
  base::throw_user_error(
      "snug writes no GGUF file of the family \"{}\". Run its folder in a program that reads "
      "Hugging Face's format, or make the file with llama.cpp's converter where that knows it. "
      "Snug writes: {}",
      model_type, names);
}

void check_runs_in_llama_cpp(const GgufFamily& family, const ModelConfig& config,
                             const Stack& stack) {
  check_attention(family, config);
  if (config.positions == Positions::rotary) check_layers(family, config);
  check_blocks(family, config, stack);
  if (family.head == GgufHead::tied && !stack.tied_head)
    refuse_setting(family, "tie_word_embeddings",
                   "is false: the head has weights of its own, and llama.cpp's {arch} computes "
                   "logits from the embedding");
  if (family.architecture == "falcon" && config.positions == Positions::alibi)
    refuse_setting(family, "alibi", "is true (Falcon-RW); llama.cpp's {arch} rotates");
  if (family.architecture == "falcon" && !config.parallel_residual)
    refuse_setting(family, "parallel_attn",
                   "is false; the blocks of llama.cpp's {arch} stand side by side");
  if (config.layer_input_size > 0 && config.layer_input_vocab != config.vocab_size)
    refuse_setting(family, "vocab_size_per_layer_input",
                   fmt::format("is {}, not vocab_size, {}, as in llama.cpp's {{arch}}",
                               config.layer_input_vocab, config.vocab_size));
  if (config.state_key_dim != config.state_value_dim)
    refuse_setting(family, "linear_key_head_dim",
                   "is not linear_value_head_dim; states of llama.cpp's {arch} are square");
  if (family.architecture == "gemma2" &&
      (config.attention_softcap == 0 || config.logit_softcap == 0))
    refuse_setting(family, "attn_logit_softcapping or final_logit_softcapping",
                   "is null; scores and logits of llama.cpp's {arch} are capped");
}

bool rotates_in_llama_cpp(const GgufFamily& family, const ModelConfig& config, int64_t layer) {
  if (family.unrotated_period > 0) return (layer + 1) % family.unrotated_period != 0;
  return !family.rotates_windows || !has_windows(config) || config.window_of(layer) > 0;
}

double gguf_score_scale(const GgufFamily& family, const ModelConfig& config) {
  // Gemma 2 and 3 of 27B, which llama.cpp knows by their layers.
  const bool is_27b = (family.architecture == "gemma2" && config.num_layers == 46) ||
                      (family.architecture == "gemma3" && config.num_layers == 62);
  if (family.architecture == "t5" || family.architecture == "gemma4") return 1.0;
  if (family.architecture.starts_with("granite") && config.attention_scale != 0)
    return config.attention_scale;
  const int64_t width = is_27b ? config.hidden_size / config.num_heads : config.head_dim;
  return 1.0 / std::sqrt(static_cast<double>(width));
}

}  // namespace snug::models
