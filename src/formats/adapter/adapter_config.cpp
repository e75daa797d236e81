#include "formats/adapter/adapter_config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "formats/adapter/adapter_folder.h"

namespace snug::formats {
namespace {

void write(const std::filesystem::path& folder, const LoraConfig& config) {
  write_lora_config(folder, config);
}

void write(const std::filesystem::path& folder, const PromptConfig& config) {
  write_prompt_config(folder, config);
}

}  // namespace

AdapterConfig read_adapter_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kAdapterConfigName;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) refuse_adapter_folder(folder);
  const nlohmann::json document = base::read_json_file(path);
  const base::JsonObject config(document, path.string());
  check_adapter_type(config);
  if (config.text("peft_type") == "LORA") return read_lora_config(folder);
  return read_prompt_config(folder);
}

void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config) {
  std::visit([&](const auto& each) { write(folder, each); }, config);
}

}  // namespace snug::formats
