// adapter_config.json of an adapter that consists of prompts of attention (LLaMA-Adapter). PEFT's
// type is ADAPTION_PROMPT, with one gate per layer:
// https://huggingface.co/docs/peft/package_reference/llama_adapter. Forms that PEFT does not have
// use the type LLAMA_ADAPTER, with the same keys and `adapter_gates`, or LLAMA_ADAPTER_V2 with
// biases and scales of linears. PEFT does not know these types, so it cannot misread such an
// adapter.
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
  int64_t layers = 0;  // adapter_layers, counted from the top
  AdapterGates gates = AdapterGates::layer;
  bool is_peft = false;  // of a type that PEFT loads
  bool adjusts_linears = false;
  std::string base_model;  // base_model_name_or_path; may be empty
};

// Throws UserError, naming the key, for a broken file and for a setting that Snug does not support.
PromptConfig read_prompt_config(const std::filesystem::path& folder);

// Writes FOLDER/adapter_config.json, with every key that PEFT writes.
void write_prompt_config(const std::filesystem::path& folder, const PromptConfig& config);

}  // namespace snug::formats
