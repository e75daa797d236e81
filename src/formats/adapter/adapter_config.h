// adapter_config.json of an adapter of any kind: which kind it is says the key peft_type.
#pragma once

#include <filesystem>
#include <variant>

#include "formats/adapter/lora_config.h"
#include "formats/adapter/prompt_config.h"

namespace snug::formats {

using AdapterConfig = std::variant<LoraConfig, PromptConfig>;

// Throws UserError for a folder without the file, one that is broken, is of no kind that Snug
// reads, or asks for what Snug cannot honour, naming the key.
AdapterConfig read_adapter_config(const std::filesystem::path& folder);

// Writes FOLDER/adapter_config.json with every key that PEFT writes.
void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config);

}  // namespace snug::formats
