#include "formats/adapter_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"

namespace snug::formats {
namespace {

void write(const std::filesystem::path& folder, const LoraConfig& config) {
  write_lora_config(folder, config);
}

void write(const std::filesystem::path& folder, const PromptConfig& config) {
  write_prompt_config(folder, config);
}

}  // namespace

// LoRA's reader explains what there is instead of an adapter.
AdapterConfig read_adapter_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "adapter_config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return read_lora_config(folder);
  const nlohmann::json document = base::read_json_file(path);
  const std::string type = base::JsonObject(document, path.string()).text("peft_type");
  if (type == kPeftPromptType || type == kPromptType || type == kPromptV2Type)
    return read_prompt_config(folder);
  return read_lora_config(folder);
}

void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config) {
  std::visit([&](const auto& each) { write(folder, each); }, config);
}

}  // namespace snug::formats
