#include "convert/folder/companions.h"

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "base/file.h"
#include "base/json.h"
#include "formats/folder/hf_folder.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kTemplate = "chat_template";
constexpr const char* kMoreTemplates = "additional_chat_templates";

bool is_present(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_template_file(const fs::path& path) {
  return path.filename().string().starts_with("chat_template.");
}

// The template in tokenizer_config.json; null if there is none.
json template_of_config(const fs::path& folder) {
  const fs::path path = folder / kTokenizerConfig;
  if (!is_present(path)) return nullptr;
  const json config = base::read_json_file(path);
  return config.is_object() ? config.value(kTemplate, json()) : json();
}

bool has_template(const fs::path& folder) {
  if (!template_of_config(folder).is_null()) return true;
  for (const auto& entry : base::list_folder(folder))
    if (is_template_file(entry.path())) return true;
  return false;
}

void remove_templates(const fs::path& folder) {
  std::error_code unknown;
  fs::remove_all(folder / kMoreTemplates, unknown);
  for (const auto& entry : base::list_folder(folder))
    if (is_template_file(entry.path())) fs::remove(entry.path(), unknown);
}

void copy_over(const fs::path& other, const fs::path& folder) {
  const bool brings_template = has_template(other);
  const json kept = brings_template ? json() : template_of_config(folder);
  if (brings_template) remove_templates(folder);
  formats::copy_companion_files(other, folder);
  const fs::path path = folder / kTokenizerConfig;
  if (kept.is_null() || !is_present(other / kTokenizerConfig)) return;
  json config = base::read_json_file(path);
  config[kTemplate] = kept;
  base::write_file_atomically(path, config.dump(2) + "\n");
}

void copy_code(const fs::path& model, const fs::path& folder) {
  const fs::path config = model / "config.json";
  if (!is_present(config) || !base::read_json_file(config).contains("auto_map")) return;
  for (const auto& entry : base::list_folder(model))
    if (entry.is_regular_file() && entry.path().extension() == ".py")
      base::copy_file_atomically(entry.path(), folder / entry.path().filename());
}

}  // namespace

void copy_companions(const fs::path& model, std::span<const fs::path> others,
                     const fs::path& folder) {
  if (!model.empty()) {
    formats::copy_companion_files(model, folder);
    copy_code(model, folder);
  }
  for (const fs::path& other : others) copy_over(other, folder);
}

}  // namespace snug::convert
