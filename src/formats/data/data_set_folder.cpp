#include "formats/data/data_set_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "formats/data/data_set_configs.h"
#include "formats/data/file_kinds.h"
#include "formats/data/no_data.h"
#include "formats/data/path_pattern.h"

namespace snug::formats {
namespace {

std::string nearest_text(const std::string& word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const auto nearest = base::nearest_name(word, candidates);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : "";
}

// What a request takes of the configurations and splits that a folder has.
class PartOfDataSet {
 public:
  explicit PartOfDataSet(const DataSetRequest& request)
      : request_(request), configs_(request.folder) {}

  DataSetPart take() {
    if (std::ranges::none_of(configs_.files(), [](const auto& file) { return is_data_file(file); }))
      throw base::UserError(no_data_text(request_.name, configs_.files(), request_.download));
    const CardConfig config = chosen_config();
    part_.config = config.name;
    const std::vector<ConfigSplit> splits = configs_.splits_of(config);
    std::vector<std::string> files;
    for (const std::string& name : chosen_splits(splits)) {
      const auto split =
          std::ranges::find(splits, name, [](const ConfigSplit& each) { return each.data.name; });
      require_files(*split);
      part_.splits.push_back(name);
      std::ranges::copy(split->data.files, std::back_inserter(files));
    }
    KindChoice kinds = commonest_kind(without_repeats(std::move(files)));
    part_.files = std::move(kinds.files);
    require_one_set(config);
    if (!configs_.has_card()) note_left_out(splits);
    note("of another kind, and left out", kinds.others);
    note("read without what the card says of", config.reading);
    note_parts();
    return std::move(part_);
  }

 private:
  std::vector<std::string> config_names() const {
    std::vector<std::string> names;
    for (const CardConfig& config : configs_.all()) names.push_back(config.name);
    return names;
  }

  CardConfig chosen_config() const {
    const std::vector<CardConfig>& all = configs_.all();
    if (all.empty()) return config_without_card();
    const auto by_name = [&](const std::string& name) {
      return std::ranges::find(all, name, &CardConfig::name);
    };
    auto chosen = by_name(request_.config);
    if (request_.config.empty()) {
      if (all.size() == 1) return all.front();
      chosen = std::ranges::find(all, true, &CardConfig::is_default);
      if (chosen == all.end()) chosen = by_name("default");
      if (chosen == all.end())
        fail(
            fmt::format("has several configurations, and none is the default: give one of {} as "
                        "config",
                        listed(config_names())));
    }
    if (chosen == all.end())
      fail(fmt::format("has no configuration \"{}\"; there are {}{}", request_.config,
                       listed(config_names()), nearest_text(request_.config, config_names())));
    return *chosen;
  }

  // A folder in it can be named as a configuration.
  CardConfig config_without_card() const {
    const std::string& name = request_.config;
    if (name.empty() || name == "default") return {};
    if (!configs_.has_folder(name))
      fail(
          fmt::format("has no configuration \"{}\": there is no card (README.md) that names any, "
                      "and no such folder in it; leave config out",
                      name));
    return {.name = name, .folder = name};
  }

  std::vector<std::string> chosen_splits(const std::vector<ConfigSplit>& splits) const {
    std::vector<std::string> names;
    names.reserve(splits.size());
    for (const ConfigSplit& split : splits) names.push_back(split.data.name);
    const auto has = [&](std::string_view name) {
      return std::ranges::find(names, name) != names.end();
    };
    if (request_.split.names == std::vector<std::string>{SplitChoice::kAll}) return names;
    for (const std::string& name : request_.split.names)
      if (!has(name))
        fail(fmt::format("has no split \"{}\"; there are {}{}", name, listed(names),
                         nearest_text(name, names)));
    if (!request_.split.names.empty()) return request_.split.names;
    if (request_.use == DataUse::evaluation) {
      for (const char* name : {"validation", "test"})
        if (has(name)) return {name};
      if (names.size() == 1) return names;
    } else if (has("train")) {
      return {"train"};
    }
    fail(fmt::format("has no split \"{}\"; there are {}: give one as split",
                     request_.use == DataUse::training ? "train" : "validation\" or \"test",
                     listed(names)));
  }

  void require_files(const ConfigSplit& split) const {
    const auto is_needed = [&](const std::string& pattern) {
      return split.data.files.empty() || !PathPattern::is_pattern(pattern);
    };
    const auto missing = std::ranges::find_if(split.missing, is_needed);
    if (missing != split.missing.end()) fail_missing(split.data.name, *missing);
    if (split.data.files.empty())
      throw base::UserError(no_data_text(
          fmt::format("{} (split {})", request_.name, split.data.name), split.unread, ""));
  }

  [[noreturn]] void fail_missing(const std::string& split, const std::string& pattern) const {
    if (pattern.find("://") != std::string::npos)
      fail(
          fmt::format("takes the split {} from {}, and Snug downloads nothing; download it, and "
                      "give the file as data",
                      split, pattern));
    const std::string fetch =
        request_.download.empty()
            ? ""
            : fmt::format(", so it was not downloaded; fetch it with '{} --include \"{}\"'",
                          request_.download, pattern);
    fail(fmt::format("has a split {}, of the files {}, but there is no such file{}", split, pattern,
                     fetch));
  }

  // Without the card of a set of the hub, files of several configurations would pass as one.
  void require_one_set(const CardConfig& config) const {
    if (request_.download.empty() || configs_.has_card() || !config.name.empty()) return;
    if (std::filesystem::exists(request_.folder / "README.md")) return;
    std::set<std::string> folders;
    for (const std::string& file : part_.files) folders.insert(file.substr(0, file.find('/')));
    const bool are_folders = std::ranges::any_of(
        part_.files, [](const std::string& file) { return file.find('/') != std::string::npos; });
    if (folders.size() < 2 || !are_folders) return;
    fail(
        fmt::format("has files in {}, and its README.md, which says which of them belong "
                    "together, was not downloaded; fetch it with '{} README.md', or give one of "
                    "these folders as config",
                    listed({folders.begin(), folders.end()}), request_.download));
  }

  static std::vector<std::string> without_repeats(std::vector<std::string> files) {
    std::set<std::string> seen;
    std::erase_if(files, [&](const std::string& file) { return !seen.insert(file).second; });
    return files;
  }

  void note_left_out(const std::vector<ConfigSplit>& splits) {
    std::set<std::string> in_split;
    for (const ConfigSplit& split : splits)
      in_split.insert(split.data.files.begin(), split.data.files.end());
    std::vector<std::string> no_data;
    std::vector<std::string> no_split;
    const std::string below = part_.config.empty() ? "" : part_.config + "/";
    for (const std::string& file : configs_.files()) {
      if (!file.starts_with(below) || in_split.contains(file)) continue;
      (is_data_file(file) ? no_split : no_data).push_back(file);
    }
    note("of no split, and left out", no_split);
    note("no data, and left out", no_data);
  }

  void note_parts() {
    for (const NumberedParts& parts : numbered_parts(part_.files))
      if (parts.present < parts.whole)
        part_.notes.push_back(fmt::format("only {} of the {} parts of {} are there", parts.present,
                                          parts.whole, parts.name));
  }

  void note(std::string_view what, const std::vector<std::string>& files) {
    if (!files.empty()) part_.notes.push_back(fmt::format("{}: {}", what, listed(files)));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    base::throw_user_error("\"{}\" {}", request_.name, problem);
  }

  const DataSetRequest& request_;
  const DataSetConfigs configs_;
  DataSetPart part_;
};

}  // namespace

DataSetPart data_set_part(const DataSetRequest& request) { return PartOfDataSet(request).take(); }

}  // namespace snug::formats
