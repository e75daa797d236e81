#include "text/chat/folder_stop_ids.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/tokenizer/model/vocabulary.h"

namespace snug::text {

std::vector<int32_t> listed_ids(const JsonNode& config, std::string_view key) {
  std::vector<int32_t> ids;
  if (!config.has(key)) return ids;
  const nlohmann::json& value = config.value().at(std::string(key));
  const auto take = [&](const nlohmann::json& id) {
    if (!id.is_number_integer() || id.get<int64_t>() > Vocabulary::kMaxId)
      config.fail(fmt::format("expected '{}' to be a token id or a list of them", key));
    // Some files write -1 for "none".
    if (id.get<int64_t>() >= 0) ids.push_back(id.get<int32_t>());
  };
  if (value.is_array()) {
    for (const auto& id : value) take(id);
  } else {
    take(value);
  }
  return ids;
}

std::vector<int32_t> ids_of_file(const std::filesystem::path& path) {
  std::vector<int32_t> ids;
  if (!std::filesystem::exists(path)) return ids;
  const nlohmann::json document = base::read_json_file(path);
  for (const int32_t id : listed_ids({document, path.string()}, "eos_token_id"))
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  // The file may list the parts of an encoder-decoder as models of their own.
  if (ids.empty() && document.contains("decoder") && document["decoder"].is_object())
    ids = listed_ids({document["decoder"], path.string()}, "eos_token_id");
  return ids;
}

std::vector<int32_t> folder_stop_ids(const std::filesystem::path& folder,
                                     const std::filesystem::path& adapter) {
  constexpr const char* kFirst = "generation_config.json";
  std::vector<int32_t> ids;
  if (folder.empty()) return ids;
  if (!adapter.empty()) ids = ids_of_file(adapter / kFirst);
  if (ids.empty()) ids = ids_of_file(folder / kFirst);
  return ids.empty() ? ids_of_file(folder / "config.json") : ids;
}

std::string ignored_stop_ids(const std::filesystem::path& folder,
                             const std::filesystem::path& adapter) {
  if (folder.empty()) return "";
  const std::vector<int32_t> counted = folder_stop_ids(folder, adapter);
  const std::vector<int32_t> others = ids_of_file(folder / "config.json");
  const auto counts = [&](int32_t id) { return std::ranges::find(counted, id) != counted.end(); };
  if (std::ranges::all_of(others, counts)) return "";
  return fmt::format(
      "'eos_token_id' of generation_config.json, [{}], counts, and not that of config.json, [{}]",
      fmt::join(counted, ", "), fmt::join(others, ", "));
}

}  // namespace snug::text
