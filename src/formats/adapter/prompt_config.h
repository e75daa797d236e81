// adapter_config.json of an adapter that is prompts of attention (LLaMA-Adapter). PEFT's form of
// it, ADAPTION_PROMPT, has one gate a layer:
// https://huggingface.co/docs/peft/package_reference/llama_adapter. What PEFT does not have is
// LLAMA_ADAPTER, the same keys and `adapter_gates`, a type that PEFT does not know, so that it
// takes none for another; with biases and scales of linears it is LLAMA_ADAPTER_V2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "formats/recipe/choices.h"

namespace snug::formats {

inline constexpr std::string_view kPeftPromptType = "ADAPTION_PROMPT";
inline constexpr std::string_view kPromptType = "LLAMA_ADAPTER";
inline constexpr std::string_view kPromptV2Type = "LLAMA_ADAPTER_V2";

struct PromptConfig {
  int64_t tokens = 0;  // adapter_len
  int64_t layers = 0;  // adapter_layers: from the top
  AdapterGates gates = AdapterGates::layer;
  bool is_peft = false;  // PEFT loads it
  bool adjusts_linears = false;
  std::string base_model;  // base_model_name_or_path; may be empty
};

// Throws UserError for a file that is broken or asks for what Snug cannot honour, naming the key.
PromptConfig read_prompt_config(const std::filesystem::path& folder);

// Writes FOLDER/adapter_config.json, with every key that PEFT writes.
void write_prompt_config(const std::filesystem::path& folder, const PromptConfig& config);

}  // namespace snug::formats
