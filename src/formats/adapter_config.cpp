#include "formats/adapter_config.h"

namespace snug::formats {
namespace {

void write(const std::filesystem::path& folder, const LoraConfig& config) {
  write_lora_config(folder, config);
}

}  // namespace

AdapterConfig read_adapter_config(const std::filesystem::path& folder) {
  return read_lora_config(folder);
}

void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config) {
  std::visit([&](const auto& each) { write(folder, each); }, config);
}

}  // namespace snug::formats
