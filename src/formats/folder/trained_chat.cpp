#include "formats/folder/trained_chat.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_object(const fs::path& path) {
  json document = base::read_json_file(path);
  const base::JsonObject must_be_an_object(document, path.string());
  return document;
}

void write_template(const fs::path& folder, const std::string& source) {
  std::error_code unknown;
  fs::remove_all(folder / "additional_chat_templates", unknown);
  for (const auto& entry : base::list_folder(folder))
    if (entry.path().filename().string().starts_with("chat_template."))
      fs::remove(entry.path(), unknown);
  base::write_file_atomically(folder / "chat_template.jinja", source);
  // Written here too, since older readers look for the template in this file first, or only there.
  const fs::path config = folder / "tokenizer_config.json";
  if (!fs::exists(config)) return;
  json document = read_object(config);
  if (!document.contains("chat_template")) return;
  document["chat_template"] = source;
  base::write_file_atomically(config, document.dump(2) + "\n");
}

// Makes the file from a model's config, as transformers does.
json generation_config(const fs::path& base_config) {
  json made = json::object();
  if (!fs::exists(base_config)) return made;
  const json config = read_object(base_config);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"})
    if (config.contains(key) && !config[key].is_null()) made[key] = config[key];
  return made;
}

}  // namespace

void write_trained_chat(const fs::path& folder, const fs::path& base_config,
                        const TrainedChat& chat) {
  write_added_tokens(folder, chat.added_tokens);
  if (chat.chat_template) write_template(folder, *chat.chat_template);
  if (chat.stop_ids.empty()) return;
  const fs::path path = folder / "generation_config.json";
  json config = fs::exists(path) ? read_object(path) : generation_config(base_config);
  if (chat.stop_ids.size() == 1)
    config["eos_token_id"] = chat.stop_ids.front();
  else
    config["eos_token_id"] = chat.stop_ids;
  base::write_file_atomically(path, config.dump(2) + "\n");
}

}  // namespace snug::formats
