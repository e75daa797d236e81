// adapter_config.json of an adapter of any type, which the key peft_type gives.
#pragma once

#include <filesystem>
#include <variant>

#include "formats/adapter/lora_config.h"
#include "formats/adapter/prompt_config.h"

namespace snug::formats {

using AdapterConfig = std::variant<LoraConfig, PromptConfig>;

// Throws UserError, naming the key, for a folder without the file, for a broken file, and for an
// adapter type or a setting that Snug does not support.
AdapterConfig read_adapter_config(const std::filesystem::path& folder);

// Writes FOLDER/adapter_config.json with all the keys that PEFT writes.
void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config);

}  // namespace snug::formats
