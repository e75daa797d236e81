#include "formats/data/data_set_configs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "formats/data/file_kinds.h"
#include "formats/data/folder_files.h"
#include "formats/data/path_pattern.h"

namespace snug::formats {
namespace {

struct ConvertedPath {
  std::string config;
  std::string split;
};

// CONFIG/SPLIT/0000.parquet, as the hub writes the revision refs/convert/parquet; it calls splits
// that it converted in part partial-SPLIT.
std::optional<ConvertedPath> converted_path(const std::string& file) {
  constexpr std::string_view kPartial = "partial-";
  const size_t first = file.find('/');
  const size_t last = file.rfind('/');
  if (first == last || file.find('/', first + 1) != last) return std::nullopt;
  if (!name_matches("[0-9][0-9][0-9][0-9].parquet", std::string_view(file).substr(last + 1)))
    return std::nullopt;
  std::string split = file.substr(first + 1, last - first - 1);
  if (split.starts_with(kPartial)) split.erase(0, kPartial.size());
  return ConvertedPath{file.substr(0, first), std::move(split)};
}

bool names_hidden(const std::vector<CardConfig>& configs) {
  for (const CardConfig& config : configs)
    for (const CardSplit& split : config.splits)
      for (const std::string& pattern : split.patterns)
        if (PathPattern(pattern).names_hidden()) return true;
  return false;
}

}  // namespace

DataSetConfigs::DataSetConfigs(const std::filesystem::path& folder)
    : configs_(card_configs(folder)),
      has_card_(!configs_.empty()),
      files_(folder_files(folder, {.hidden = names_hidden(configs_)})) {
  if (!has_card_) configs_ = converted_configs();
}

std::vector<CardConfig> DataSetConfigs::converted_configs() const {
  std::map<std::string, std::map<std::string, CardSplit>> found;
  for (const std::string& file : files_) {
    if (!is_data_file(file)) continue;
    const auto path = converted_path(file);
    if (!path) return {};
    CardSplit& split = found[path->config][path->split];
    split.name = path->split;
    split.patterns.push_back(file);
  }
  std::vector<CardConfig> configs;
  for (auto& [name, splits] : found) {
    CardConfig config{.name = name};
    for (auto& [split_name, split] : splits) config.splits.push_back(std::move(split));
    configs.push_back(std::move(config));
  }
  return configs;
}

bool DataSetConfigs::has_folder(const std::string& name) const {
  return std::ranges::any_of(files_,
                             [&](const std::string& file) { return file.starts_with(name + "/"); });
}

std::vector<ConfigSplit> DataSetConfigs::splits_of(const CardConfig& config) const {
  std::string folder = config.folder;
  while (folder.starts_with("./")) folder.erase(0, 2);
  if (!folder.empty() && folder != "." && !folder.ends_with('/')) folder += "/";
  if (folder == "." || folder == "/") folder.clear();
  std::vector<ConfigSplit> splits;
  for (const CardSplit& split : config.splits) splits.push_back(split_by_patterns(split, folder));
  if (!splits.empty()) return splits;
  const PathPattern all_open("**");
  std::vector<std::string> below;
  for (const std::string& file : files_) {
    if (!file.starts_with(folder) || !is_data_file(file)) continue;
    if (std::string rest = file.substr(folder.size()); all_open.matches(rest))
      below.push_back(std::move(rest));
  }
  for (DataSplit& split : named_splits(below)) {
    for (std::string& file : split.files) file.insert(0, folder);
    splits.push_back({std::move(split)});
  }
  return splits;
}

ConfigSplit DataSetConfigs::split_by_patterns(const CardSplit& split,
                                              const std::string& folder) const {
  ConfigSplit result{.data = {split.name, {}}};
  std::set<std::string> taken;
  for (const std::string& text : split.patterns) {
    const PathPattern pattern(folder + text);
    bool is_found = false;
    for (const std::string& file : files_) {
      if (file != folder + text && !pattern.matches(file)) continue;
      is_found = true;
      if (!taken.insert(file).second) continue;
      (is_data_file(file, text) ? result.data.files : result.unread).push_back(file);
    }
    if (!is_found) result.missing.push_back(folder + text);
  }
  return result;
}

}  // namespace snug::formats
