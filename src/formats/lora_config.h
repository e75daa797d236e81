// adapter_config.json of a LoRA adapter, as PEFT writes and reads it.
// Format: https://huggingface.co/docs/peft/package_reference/lora
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace snug::formats {

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
  std::vector<std::string> target_modules;
  std::string base_model;  // base_model_name_or_path; may be empty
  // Modules that train whole next to the adapter, by the ends of their names.
  std::vector<std::string> modules_to_save{};

  // What B·A is multiplied by: alpha / r, or alpha / sqrt(r) with rank-stabilised LoRA.
  double scale() const;
};

// Throws UserError for a file that is broken, is not LoRA, or asks for what Snug cannot honour
// (rank_pattern, lora_bias, bias, ...), naming the key.
LoraConfig read_lora_config(const std::filesystem::path& folder);

// Writes FOLDER/adapter_config.json with every key that PEFT writes.
void write_lora_config(const std::filesystem::path& folder, const LoraConfig& config);

}  // namespace snug::formats
