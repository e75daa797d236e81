// A Hugging Face model folder: config.json, weights, tokenizer and small companion files. Users
// consider a fine-tuned model without its companion files broken, so every output includes them.
#pragma once

#include "formats/folder/tensor_index.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

class HfFolder {
 public:
  // Reads config.json. Throws UserError when the folder or the file is missing or is not a JSON
  // object.
  explicit HfFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  // The last part of the path, even for "models/x/" and ".".
  std::string name() const;
  const nlohmann::json& config() const { return *config_; }
  std::filesystem::path config_path() const { return path_ / "config.json"; }

  // The path of the file with this name, if the folder has it.
  std::optional<std::filesystem::path> file(std::string_view name) const;
  // tokenizer.json if present, else tokenizer.model; throws UserError when there is neither.
  std::filesystem::path tokenizer_path() const;
  // The parsed file, or nothing if the folder does not have it.
  std::optional<nlohmann::json> optional_json(std::string_view name) const;
  TensorIndex weights() const { return TensorIndex(path_); }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const nlohmann::json> config_;
};

// Whether this path looks like a model folder (a directory with config.json).
bool is_hf_folder(const std::filesystem::path& folder);

// The companion files present in a folder, sorted by name: tokenizer.*, tokenizer_config.json,
// special_tokens_map.json, added_tokens.json, vocab.json, merges.txt and a tokenizer's other files,
// generation_config.json, chat_template.*, additional_chat_templates/*.jinja, what processors of
// images and sound read, and licences; but neither config.json nor weights. Empty if the folder has
// none or does not exist.
std::vector<std::filesystem::path> companion_files(const std::filesystem::path& folder);

// Copies the companion files to the same relative paths in an existing folder, synced, and never as
// links.
void copy_companion_files(const std::filesystem::path& from, const std::filesystem::path& to);

// For the end of a message: what to give in place of a folder that has no config.json.
std::string advice_on_model_folder(const std::filesystem::path& folder);

}  // namespace snug::formats
