// adapter_config.json of a LoRA adapter, as PEFT writes and reads it.
// Format: https://huggingface.co/docs/peft/package_reference/lora
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// The size of one module's adapter.
struct LoraSize {
  int64_t r = 0;
  double alpha = 0;
  bool operator==(const LoraSize&) const = default;
};
// By full names of modules.
using LoraSizes = std::map<std::string, LoraSize, std::less<>>;

// The factor of B A: alpha / r, or alpha / sqrt(r) with rank-stabilised LoRA.
double lora_scale(const LoraSize& size, bool is_stabilised);

// Tokens whose rows in a table the adapter replaces.
struct TokenRows {
  std::string module;  // end of the table's name; empty: the embedding
  std::vector<int64_t> tokens;
};

// What becomes of an adapter's tensors of a multimodal model's other parts, such as its encoder of
// images, when a model is only its text part, or is the whole.
enum class OtherParts : uint8_t { left_out, kept };

struct LoraConfig {
  int64_t r = 0;
  double alpha = 0;
  double dropout = 0;
  bool use_rslora = false;
  bool use_dora = false;  // each module also has a magnitude
  // Whether the base model stores its linears as (in, out), as GPT-2 does. Only written, for PEFT:
  // reading an adapter ignores it, since the model's family knows how its linears are stored.
  bool fan_in_fan_out = false;
  // Whether the base model has an encoder; also only written for PEFT.
  bool has_encoder = false;
  // {"all-linear"} stands for every linear layer except the head. If the file restricts the modules
  // by layers_to_transform, exclude_modules or a pattern: the full names of the modules that have
  // tensors. Names are without wrappers (adapter_names.h).
  std::vector<std::string> target_modules;
  std::string base_model;                        // base_model_name_or_path; may be empty
  std::vector<std::string> target_parameters{};  // by the ends of their names
  // The modules that train whole next to the adapter, by the ends of their names.
  std::vector<std::string> modules_to_save{};
  // The modules with tensors whose rank or alpha differs (rank_pattern, alpha_pattern).
  LoraSizes sizes{};
  std::vector<TokenRows> token_rows{};  // trainable_token_indices
  // ensure_weight_tying: a tied head and embedding stay tied where one of them is saved.
  bool ties_tables = false;
  // The same of their adapters, where one of them has one: B of the one is A of the other.
  bool ties_adapters = false;

  LoraSize size_of(std::string_view module) const;
  // The factor for modules that no pattern names.
  double scale() const { return lora_scale({r, alpha}, use_rslora); }
};

// Throws UserError, naming the key, for a file that is broken, is not LoRA, or has a setting that
// Snug does not support (layer_replication, lora_bias, bias, ...).
LoraConfig read_lora_config(const std::filesystem::path& folder,
                            OtherParts others = OtherParts::left_out);

// Writes FOLDER/adapter_config.json with every key that PEFT writes. The adapter must
// replace no rows.
void write_lora_config(const std::filesystem::path& folder, const LoraConfig& config);

}  // namespace snug::formats
