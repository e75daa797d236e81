#include "text/folder_stop_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/vocabulary.h"

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

std::vector<int32_t> folder_stop_ids(const std::filesystem::path& folder) {
  std::vector<int32_t> ids;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::exists(path)) continue;
    const nlohmann::json document = base::read_json_file(path);
    for (const int32_t id : listed_ids({document, path.string()}, "eos_token_id"))
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
    // The parts of an encoder-decoder may be listed there as models of their own.
    if (ids.empty() && document.contains("decoder") && document["decoder"].is_object())
      ids = listed_ids({document["decoder"], path.string()}, "eos_token_id");
    if (!ids.empty()) break;
  }
  return ids;
}

}  // namespace snug::text
