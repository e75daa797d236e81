// Stages: which family the file's architecture is; the sizes that every model has; biases, experts
// and windows; what single families have in addition. Sizes that the tensors show are taken from
// these, since converters write some of them by a rule of thumb.
#include "models/gguf/imported_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "base/error.h"
#include "formats/gguf/metadata_view.h"
#include "models/config/config_keys.h"
#include "models/config/rope.h"
#include "models/families/families.h"
#include "models/gguf/architecture.h"
#include "models/gguf/gguf_family.h"
#include "models/gguf/imported_rope.h"
#include "program/kinds/recurrence/causal_convolution.h"

namespace snug::models {
namespace {

using formats::GgufFile;
using formats::GgufTensorInfo;
using formats::MetadataView;

void refuse_other_contents(const GgufFile& file, const MetadataView& metadata,
                           const std::string& architecture) {
  const auto refuse = [&](const std::string& what) {
    base::throw_user_error("{}: {}", file.path().string(), what);
  };
  const std::string type =
      metadata.has("general.type") ? metadata.text("general.type") : std::string("model");
  if (type == "adapter")
    refuse(
        "this is a LoRA adapter in GGUF, not a model. Train on the Hugging Face folder of an "
        "adapter, which the program that made this one kept or can write");
  if (type == "mmproj" || architecture == "clip")
    refuse(
        "this file holds the encoder of images (or sound) of a multimodal model; give the .gguf "
        "file of its language model, which lies next to it");
  if (type == "imatrix" || architecture == "imatrix")
    refuse("this file holds statistics for quantising (an importance matrix), not a model");
  if (file.tensors().empty())
    refuse("the file has no tensors: it holds a vocabulary alone; give the model's .gguf file");
}

class ConfigImport {
 public:
  explicit ConfigImport(const GgufFile& file)
      : file_(file),
        metadata_(file.metadata(), file.path().string()),
        architecture_(metadata_.text("general.architecture")) {}

  ModelConfig import() {
    refuse_other_contents(file_, metadata_, architecture_);
    choose_family();
    import_sizes();
    import_norms();
    import_experts();
    import_positions();
    import_biases();
    import_windows();
    import_family();
    return std::move(config_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  bool has_tensor(std::string_view name) const { return file_.find(name) != nullptr; }
  const GgufTensorInfo& tensor(std::string_view name) const {
    const GgufTensorInfo* found = file_.find(name);
    if (found == nullptr)
      base::throw_user_error("{}: there is no tensor '{}', which every {} has; the file is damaged",
                             file_.path().string(), name, architecture_);
    return *found;
  }
  int64_t axis(std::string_view name, size_t index) const {
    const std::vector<int64_t>& shape = tensor(name).shape;
    if (shape.size() != 2)
      base::throw_user_error("{}: tensor '{}' has {} axes; expected 2", file_.path().string(), name,
                             shape.size());
    return shape[index];
  }
  // An integer from 1 to `most`.
  int64_t size(std::string_view name, int64_t most) const {
    return checked(name, metadata_.integer(key(name)), most);
  }
  int64_t checked(std::string_view name, int64_t value, int64_t most) const {
    if (value < 1 || value > most)
      metadata_.fail(key(name),
                     fmt::format("is {}; expected 1 to {}. Is the file damaged?", value, most));
    return value;
  }
  // A size that files may give for each layer, 0 where the layer has no attention; layers that
  // differ otherwise are another family's.
  int64_t size_of_layers(std::string_view name, int64_t most) const {
    std::vector<int64_t> list = metadata_.integers(key(name), config_.num_layers);
    if (!config_.recurrent_layers.empty()) std::erase(list, 0);
    if (list.empty()) list.push_back(0);
    if (std::ranges::adjacent_find(list, std::ranges::not_equal_to()) != list.end())
      metadata_.fail(key(name), "differs from layer to layer, which no family of Snug has");
    return checked(name, list.front(), most);
  }

  // Layers after the last one, which predict tokens after the next one.
  void refuse_further_layers() const {
    const int64_t further = metadata_.integer_or(key("nextn_predict_layers"), 0);
    if (further > 0)
      metadata_.fail(key("nextn_predict_layers"),
                     fmt::format("is {}: the file has layers that predict further tokens, which "
                                 "Snug leaves out of no file; give one without them (converted "
                                 "with --no-mtp)",
                                 further));
  }

  // Layers with a short convolution have no heads of keys.
  void import_short_convolutions() {
    config_.convolution_width = size("shortconv.l_cache", program::kMostConvolutionWidth);
    const std::vector<int64_t> heads =
        metadata_.integers(key("attention.head_count_kv"), config_.num_layers);
    for (int64_t layer = 0; layer < config_.num_layers; ++layer)
      if (heads[static_cast<size_t>(layer)] == 0) config_.recurrent_layers.push_back(layer);
  }

  void import_gated_delta_nets() {
    config_.convolution_width = size("ssm.conv_kernel", program::kMostConvolutionWidth);
    config_.state_key_dim = size("ssm.state_size", kMaxHeads);
    config_.state_key_heads = size("ssm.group_count", kMaxHeads);
    config_.state_value_heads = size("ssm.time_step_rank", kMaxHeads);
    config_.state_value_dim =
        size("ssm.inner_size", kMaxHeads * kMaxHeads) / config_.state_value_heads;
    const std::string list = key("attention.recurrent_layers");
    std::vector<int64_t> keeps_state;
    if (metadata_.has(list)) keeps_state = metadata_.integers(list, config_.num_layers);
    const int64_t interval = metadata_.integer_or(key("full_attention_interval"), 4);
    for (int64_t layer = 0; layer < config_.num_layers; ++layer)
      if (keeps_state.empty() ? interval < 1 || (layer + 1) % interval != 0
                              : keeps_state[static_cast<size_t>(layer)] != 0)
        config_.recurrent_layers.push_back(layer);
  }

  // How many heads of keys the layers with attention have.
  int64_t kv_heads() const {
    if (!metadata_.has(key("attention.head_count_kv"))) return config_.num_heads;
    if (std::ssize(config_.recurrent_layers) == config_.num_layers) return config_.num_heads;
    return size_of_layers("attention.head_count_kv", kMaxHeads);
  }

  // Several families of Hugging Face are one architecture.
  void choose_family() {
    const auto families = families_of_architecture(architecture_);
    if (families.empty())
      base::throw_user_error(
          "{}: the model's architecture is '{}', of which Snug has no family; it has {}",
          file_.path().string(), architecture_, architecture_names());
    config_.model_type = families.front();
    const bool has_window = metadata_.integer_or(key("attention.sliding_window"), 0) > 0;
    if (architecture_ == "olmo2" && has_window) config_.model_type = "olmo3";
    if (architecture_ != "llama") return;
    if (metadata_.integer_or(key("expert_count"), 0) > 0)
      config_.model_type = "mixtral";
    else if (has_window)
      config_.model_type = "mistral";
  }

  void import_sizes() {
    refuse_further_layers();
    config_.num_layers = size("block_count", kMaxLayers);
    config_.hidden_size = size("embedding_length", kMaxHidden);
    config_.num_heads = size_of_layers("attention.head_count", kMaxHeads);
    if (metadata_.has(key("shortconv.l_cache"))) import_short_convolutions();
    if (metadata_.has(key("ssm.state_size"))) import_gated_delta_nets();
    if (architecture_ == "gemma4")
      import_unlike_heads();
    else
      import_heads();
    config_.max_position = size("context_length", kMaxPositions);
    config_.vocab_size = checked("vocab_size", axis("token_embd.weight", 0), kMaxVocabulary);
    if (const auto* tokens = file_.metadata().find("tokenizer.ggml.tokens"))
      if (const auto* list = std::get_if<std::vector<std::string>>(tokens);
          list != nullptr && std::ssize(*list) > config_.vocab_size)
        metadata_.fail("tokenizer.ggml.tokens",
                       fmt::format("has {} tokens, but token_embd.weight has {} rows", list->size(),
                                   config_.vocab_size));
    const std::string_view down =
        architecture_ == "t5" ? "enc.blk.0.ffn_down.weight" : "blk.0.ffn_down.weight";
    // A mixture in which no layer has one mlp may say only how wide its experts are.
    const std::string_view width = metadata_.has(key("feed_forward_length"))
                                       ? "feed_forward_length"
                                       : "expert_feed_forward_length";
    config_.intermediate_size =
        has_tensor(down) ? checked("feed_forward_length", axis(down, 1), kMaxIntermediate)
                         : size_of_layers(width, kMaxIntermediate);
    const bool is_always_tied = gguf_family(config_.model_type).head == GgufHead::tied;
    config_.tied_embeddings = is_always_tied || !has_tensor("output.weight");
  }

  int64_t head_size(std::string_view of_keys, std::string_view of_values, int64_t absent) const {
    const int64_t width = checked(of_keys, metadata_.integer_or(key(of_keys), absent), kMaxHeads);
    if (metadata_.integer_or(key(of_values), width) != width)
      metadata_.fail(key(of_values),
                     fmt::format("is not {}, as it is in every family of Snug", of_keys));
    return width;
  }

  void import_heads() {
    config_.num_kv_heads = kv_heads();
    config_.head_dim = head_size("attention.key_length", "attention.value_length",
                                 config_.hidden_size / config_.num_heads);
    if (has_tensor("blk.0.attn_k.weight"))
      config_.num_kv_heads = checked("attention.head_count_kv",
                                     axis("blk.0.attn_k.weight", 0) / config_.head_dim, kMaxHeads);
  }

  // Layers with a window have heads of other sizes than those without, of which the last is one.
  void import_unlike_heads() {
    config_.head_dim = head_size("attention.key_length_swa", "attention.value_length_swa", 0);
    config_.full_head_dim = head_size("attention.key_length", "attention.value_length", 0);
    const std::string counts = key("attention.head_count_kv");
    const std::vector<int64_t> heads = metadata_.integers(counts, config_.num_layers);
    const std::vector<int64_t> has_window =
        metadata_.integers(key("attention.sliding_window_pattern"), config_.num_layers);
    config_.full_kv_heads = checked("attention.head_count_kv", heads.back(), kMaxHeads);
    config_.num_kv_heads = config_.full_kv_heads;
    int64_t full_layer = config_.num_layers - 1;
    for (size_t layer = heads.size(); layer-- > 0;)
      if (has_window[layer] != 0)
        config_.num_kv_heads = checked("attention.head_count_kv", heads[layer], kMaxHeads);
      else
        full_layer = static_cast<int64_t>(layer);
    for (size_t layer = 0; layer < heads.size(); ++layer)
      if (heads[layer] != (has_window[layer] != 0 ? config_.num_kv_heads : config_.full_kv_heads))
        metadata_.fail(counts, "differs between layers of one kind, with a window or without");
    // The first layer without a window has keys of its own in every model.
    config_.keys_as_values = !has_tensor(fmt::format("blk.{}.attn_v.weight", full_layer));
  }

  void import_gemma4() {
    config_.attention_scale = 1.0;
    config_.logit_softcap =
        static_cast<float>(metadata_.number_or(key("final_logit_softcapping"), 0.0));
    config_.sharing_layers = metadata_.integer_or(key("attention.shared_kv_layers"), 0);
    const std::string last = fmt::format("blk.{}.ffn_down.weight", config_.num_layers - 1);
    config_.wide_sharing_mlps = axis(last, 1) != config_.intermediate_size;
    config_.layer_input_size = metadata_.integer_or(key("embedding_length_per_layer_input"), 0);
    if (config_.layer_input_size > 0)
      config_.layer_input_vocab = axis("per_layer_token_embd.weight", 0);
  }

  void import_norms() {
    const std::string rms = key("attention.layer_norm_rms_epsilon");
    const std::string name = metadata_.has(rms) ? rms : key("attention.layer_norm_epsilon");
    config_.norm_epsilon = static_cast<float>(metadata_.number(name));
    if (!(config_.norm_epsilon >= 0)) metadata_.fail(name, "is below 0");
  }

  void import_experts() {
    const int64_t experts = metadata_.integer_or(key("expert_count"), 0);
    const std::string& type = config_.model_type;
    const bool has_experts = find_family(type)->form == FamilyForm::mixture;
    const bool may_have = type == "gemma4_text";
    if (!has_experts && experts == 0) return;
    if (!has_experts && !may_have)
      metadata_.fail(key("expert_count"),
                     fmt::format("is {}; Snug's {} has no experts", experts, type));
    config_.num_experts = size("expert_count", kMaxExperts);
    config_.chosen_experts = size("expert_used_count", config_.num_experts);
    const bool has_own_size = may_have || type.starts_with("qwen") || type == "glm4_moe";
    config_.expert_size = has_own_size ? size("expert_feed_forward_length", kMaxIntermediate)
                                       : config_.intermediate_size;
    config_.normalize_experts = !gguf_family(type).plain_expert_weights;
    config_.router_coefficient = type == "olmoe" ? 0.01 : 0.001;
    if (type == "qwen3_5_moe_text") config_.intermediate_size = config_.expert_size;
    if (type.starts_with("qwen") && type != "qwen3_moe")
      config_.shared_expert_size = size("expert_shared_feed_forward_length", kMaxIntermediate);
    if (type == "glm4_moe") import_sigmoid_experts();
    if (type != "gpt_oss") return;
    // The published models' settings, which llama.cpp computes with.
    config_.gate_limit = 7.0;
    config_.gate_alpha = 1.702;
    config_.router_coefficient = 0.9;
  }

  void import_sigmoid_experts() {
    config_.shared_expert_size = config_.expert_size * size("expert_shared_count", kMaxExperts);
    config_.normalize_experts = metadata_.boolean_or(key("expert_weights_norm"), false);
    config_.expert_scale =
        positive("expert_weights_scale", metadata_.number_or(key("expert_weights_scale"), 1.0));
    config_.query_key_norms = has_tensor("blk.0.attn_q_norm.weight");
    const int64_t dense = metadata_.integer_or(key("leading_dense_block_count"), 0);
    if (dense < 0 || dense > config_.num_layers)
      metadata_.fail(key("leading_dense_block_count"),
                     fmt::format("is {}; the model has {} layers", dense, config_.num_layers));
    for (int64_t layer = 0; layer < dense; ++layer) config_.dense_layers.push_back(layer);
  }

  void import_positions() {
    const std::string& type = config_.model_type;
    if (type == "gpt2") config_.positions = Positions::learned;
    if (type == "bloom") config_.positions = Positions::alibi;
    if (type == "t5") config_.positions = Positions::relative;
    if (type == "gpt2") config_.max_position = axis("position_embd.weight", 0);
    if (type == "bloom" || type == "t5") config_.max_position = kMaxPositions;
    import_rope(file_, metadata_, architecture_, config_);
  }

  void import_biases() {
    config_.attention_bias = has_tensor("blk.0.attn_q.bias") || has_tensor("blk.0.attn_qkv.bias");
    config_.mlp_bias = has_tensor("blk.0.ffn_gate.bias");
  }

  // Files say how wide the window is; which layers have it follows from the architecture, unless
  // there is a list of them or another period.
  void import_windows() {
    const std::string name = key("attention.sliding_window");
    const int64_t window = metadata_.integer_or(name, 0);
    config_.windows.assign(static_cast<size_t>(config_.num_layers), 0);
    if (window == 0) return;
    checked("attention.sliding_window", window, kMaxPositions);
    const std::string& type = config_.model_type;
    const int64_t period = gguf_family(type).window_period;
    const bool in_all_layers = type == "mistral" || type == "mixtral" || type == "phi3";
    if (period == 0 && !in_all_layers)
      metadata_.fail(name, fmt::format("is {}; Snug's {} has no windows in GGUF", window, type));
    if (in_all_layers) return set_window(config_, window);
    const std::string pattern = key("attention.sliding_window_pattern");
    if (!metadata_.has(pattern)) return set_window_pattern(config_, window, period);
    const auto list = metadata_.integers(pattern, config_.num_layers);
    if (!std::holds_alternative<std::vector<bool>>(*file_.metadata().find(pattern)))
      return set_window_pattern(
          config_, window, checked("attention.sliding_window_pattern", list.front(), kMaxLayers));
    for (size_t layer = 0; layer < list.size(); ++layer)
      config_.windows[layer] = list[layer] != 0 ? window : 0;
  }

  void import_family() {
    const std::string& type = config_.model_type;
    if (type == "gemma2" || type == "gemma3_text") import_gemma();
    if (type == "gemma4_text") import_gemma4();
    if (type == "gpt_neox")
      config_.parallel_residual = metadata_.boolean_or(key("use_parallel_residual"), true);
    if (type == "falcon") {
      config_.parallel_residual = true;
      config_.parallel_norms = has_tensor("blk.0.attn_norm_2.weight") ? 2 : 1;
    }
    if (type == "stablelm") {
      config_.query_key_norms = has_tensor("blk.0.attn_q_norm.weight");
      config_.parallel_residual = !has_tensor("blk.0.ffn_norm.weight");
    }
    if (type == "t5") import_t5();
    if (type.starts_with("granite")) import_factors();
    if (type == "cohere2")
      config_.logit_scale = positive("logit_scale", metadata_.number(key("logit_scale")));
    if (type == "olmo3") config_.local_rope.emplace().theta = config_.rope.theta;
    if (type == "ministral3")
      config_.rope.query_beta = metadata_.number_or(key("attention.temperature_scale"), 0.0);
    import_unrotated();
  }

  double positive(std::string_view name, double value) const {
    if (!(value > 0) || !std::isfinite(value))
      metadata_.fail(key(name), fmt::format("is {}; expected a number above 0", value));
    return value;
  }

  // Where a file says none, llama.cpp multiplies by 1, and scores by what all families have.
  void import_factors() {
    const auto factor = [&](std::string_view name, double absent) {
      return positive(name, metadata_.number_or(key(name), absent));
    };
    config_.embedding_scale = factor("embedding_scale", 1.0);
    config_.residual_scale = factor("residual_scale", 1.0);
    config_.attention_scale =
        factor("attention.scale", 1.0 / std::sqrt(static_cast<double>(config_.head_dim)));
    config_.logit_scale = 1.0 / factor("logit_scale", 1.0);
  }

  void import_unrotated() {
    const GgufFamily& family = gguf_family(config_.model_type);
    for (int64_t layer = 0; layer < config_.num_layers; ++layer)
      if (!rotates_in_llama_cpp(family, config_, layer)) config_.unrotated_layers.push_back(layer);
  }

  void import_gemma() {
    config_.attention_softcap = static_cast<float>(metadata_.number_or(
        key("attn_logit_softcapping"), config_.model_type == "gemma2" ? 50.0 : 0.0));
    config_.logit_softcap = static_cast<float>(metadata_.number_or(
        key("final_logit_softcapping"), config_.model_type == "gemma2" ? 30.0 : 0.0));
    const double scale = gguf_score_scale(gguf_family(config_.model_type), config_);
    config_.query_scalar = std::round(1.0 / (scale * scale));
  }

  void import_t5() {
    config_.encoder_layers = config_.num_layers;
    config_.num_layers += checked(
        "decoder_block_count",
        metadata_.integer_or(key("decoder_block_count"), config_.encoder_layers), kMaxLayers);
    config_.windows.clear();
    config_.gated_mlp = has_tensor("enc.blk.0.ffn_gate.weight");
    config_.scaled_head = config_.tied_embeddings;
    config_.relative_buckets = size("attention.relative_buckets_count", 1 << 16);
    config_.relative_distance = 128;
    config_.decoder_start_id = metadata_.integer_or(key("decoder_start_token_id"), 0);
    config_.padding_id = metadata_.integer_or("tokenizer.ggml.padding_token_id", 0);
  }

  const GgufFile& file_;
  MetadataView metadata_;
  std::string architecture_;
  ModelConfig config_;
};

}  // namespace

ModelConfig imported_config(const GgufFile& file) { return ConfigImport(file).import(); }

nlohmann::json imported_config_json(const ModelConfig& config, const GgufFile& file) {
  nlohmann::json json = describe(config);
  const MetadataView metadata(file.metadata(), file.path().string());
  for (const char* token : {"bos", "eos", "padding"}) {
    const int64_t id = metadata.integer_or(fmt::format("tokenizer.ggml.{}_token_id", token), -1);
    const std::string key =
        std::string_view(token) == "padding" ? "pad_token_id" : fmt::format("{}_token_id", token);
    // transformers takes a missing key for the family's usual token.
    if (id >= 0 && id < config.vocab_size)
      json[key] = id;
    else if (!json.contains(key))
      json[key] = nullptr;
  }
  // transformers 5 wants an integer.
  if (json.contains("query_pre_attn_scalar"))
    json["query_pre_attn_scalar"] = std::llround(config.query_scalar);
  // transformers 4 refuses the key, and computes this factor itself.
  const RopeConfig& rope = config.rope;
  const double factor =
      static_cast<double>(config.max_position) / static_cast<double>(rope.original_max_position);
  if (rope.scaling == RopeScaling::longrope &&
      std::abs(longrope_attention_factor(factor, rope.original_max_position) -
               rope.attention_factor) > 1e-5)
    json["rope_scaling"]["attention_factor"] = rope.attention_factor;
  return json;
}

}  // namespace snug::models
