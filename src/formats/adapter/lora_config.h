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

// Of one module.
struct LoraSize {
  int64_t r = 0;
  double alpha = 0;
  bool operator==(const LoraSize&) const = default;
};
// By full names of modules.
using LoraSizes = std::map<std::string, LoraSize, std::less<>>;

// What B A is multiplied by: alpha / r, or alpha / sqrt(r) with rank-stabilised LoRA.
double lora_scale(const LoraSize& size, bool is_stabilised);

// Tokens whose rows of a table the adapter replaces.
struct TokenRows {
  std::string module;  // the end of the table's name; empty: the embedding
  std::vector<int64_t> tokens;
};

struct LoraConfig {
  int64_t r = 0;
  double alpha = 0;
  double dropout = 0;
  bool use_rslora = false;
  bool use_dora = false;  // each module has a magnitude, too
  // Whether the base model stores its linears as (in, out), as GPT-2 does. It is written for PEFT.
  // It is ignored when an adapter is read: the model's family says how its linears are stored.
  bool fan_in_fan_out = false;
  // Whether the base model has an encoder, which is written for PEFT too.
  bool has_encoder = false;
  // {"all-linear"} stands for every linear layer but the head. Where the file narrows them by
  // layers_to_transform, exclude_modules or a pattern: the full names of those that have tensors.
  // Names are without wrappers (adapter_names.h).
  std::vector<std::string> target_modules;
  std::string base_model;  // base_model_name_or_path; may be empty
  // Modules that train whole next to the adapter, by the ends of their names.
  std::vector<std::string> modules_to_save{};
  // The modules that have tensors and another rank or alpha (rank_pattern, alpha_pattern).
  LoraSizes sizes{};
  std::vector<TokenRows> token_rows{};  // trainable_token_indices
  // ensure_weight_tying: a head and an embedding that are one tensor stay so where one is saved.
  bool ties_tables = false;
  // The same of their adapters, where one of them has one: B of the one is A of the other.
  bool ties_adapters = false;

  LoraSize size_of(std::string_view module) const;
  // Of the modules that no pattern names.
  double scale() const { return lora_scale({r, alpha}, use_rslora); }
};

// Throws UserError for a file that is broken, is not LoRA, or asks for what Snug cannot honour
// (layer_replication, lora_bias, bias, ...), naming the key.
LoraConfig read_lora_config(const std::filesystem::path& folder);

// Writes FOLDER/adapter_config.json with every key that PEFT writes; of an adapter whose modules
// are all of one size, and that replaces no rows.
void write_lora_config(const std::filesystem::path& folder, const LoraConfig& config);

}  // namespace snug::formats
