#include "formats/data/data_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ending.h"
#include "formats/data/file_kinds.h"
#include "formats/data/folder_files.h"
#include "formats/data/missing_data.h"
#include "formats/data/path_pattern.h"
#include "formats/folder/hub_cache.h"
#include "formats/folder/run_mark.h"
#include "formats/recipe/recipe.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHubScheme = "hf://datasets/";

// What the path names in the end; the home folder and file:// are written out.
std::string plain_path(const std::string& path) {
  constexpr std::string_view kFileScheme = "file://";
  if (path.starts_with(kFileScheme)) return path.substr(kFileScheme.size());
  const char* home = std::getenv("HOME");
  if ((path == "~" || path.starts_with("~/")) && home != nullptr && !base::is_there(path))
    return home + path.substr(1);
  return path;
}

bool is_folder_of_data(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_there(const fs::path& path) {
  std::error_code error;
  // What cannot be checked counts as there: reading it tells why it cannot be read.
  return fs::exists(path, error) || error;
}

std::vector<std::string> files_of_pattern(const std::string& path) {
  const PathPattern pattern(path);
  const fs::path folder = pattern.folder().empty() ? fs::path(".") : fs::path(pattern.folder());
  if (!is_folder_of_data(folder)) return {};
  const PathPattern below = pattern.below_folder();
  std::vector<std::string> files;
  for (const std::string& file :
       folder_files(folder, {.depth = below.depth(), .hidden = below.names_hidden()}))
    if (below.matches(file)) files.push_back(pattern.folder() + file);
  return files;
}

struct HubPlace {
  HubName name;
  fs::path folder;      // its snapshot
  std::string pattern;  // of files in it; empty: all
};

// A data set of the hub that the cache has.
std::optional<HubPlace> hub_place(const std::string& path) {
  std::string name = path;
  std::string pattern;
  if (name.starts_with(kHubScheme)) {
    name.erase(0, kHubScheme.size());
    const size_t slash = name.find('/', name.find('/') + 1);
    // refs/convert/parquet is a revision with parts of its own.
    const bool is_ref = name.find("@refs/") < slash;
    if (slash != std::string::npos && !is_ref) {
      pattern = name.substr(slash + 1);
      name.erase(slash);
    }
  }
  const auto hub = parse_hub_name(name, HubKind::dataset);
  if (!hub) return std::nullopt;
  auto folder = find_in_hub_cache(*hub);
  if (!folder) return std::nullopt;
  return HubPlace{*hub, std::move(*folder), std::move(pattern)};
}

void require_no_parts(const DataEntry& entry, const SplitChoice& split, const char* what) {
  for (const std::string& name : split.names)
    if (name != "train" && name != SplitChoice::kAll)
      base::throw_user_error("\"{}\" is {}, which has no split \"{}\"; leave split out", entry.path,
                             what, name);
  if (!entry.config.empty() && entry.config != "default")
    base::throw_user_error("\"{}\" is {}, which has no configuration \"{}\"; leave config out",
                           entry.path, what, entry.config);
}

// Files whose contents were never fetched would be read as a few lines of text.
void require_contents(const std::string& file, const std::string& fetch) {
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
  constexpr uintmax_t kMostPointerBytes = 1024;
  std::error_code error;
  if (!fs::exists(file, error))
    base::throw_user_error("{} is a link that leads nowhere; {}", file,
                           fetch.empty() ? "mend or remove it" : "fetch it with '" + fetch + "'");
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kMostPointerBytes) return;
  if (base::read_text_file(file).starts_with(kPointer))
    base::throw_user_error(
        "{} is a pointer of Git LFS, not the data; fetch them with 'git lfs pull' in its folder, "
        "or with hf download",
        file);
}

class EntryFiles {
 public:
  EntryFiles(const DataEntry& entry, DataUse use)
      : entry_(entry),
        use_(use),
        path_(plain_path(entry.path)),
        split_(read_split_choice(entry.split)) {}

  DataFiles find() {
    if (path_.empty()) base::throw_user_error("is an empty path");
    found_.description = entry_.path;
    std::string fetch;
    if (is_there(path_)) {
      is_folder_of_data(path_) ? take_folder() : take_file();
    } else if (const auto hub = hub_place(path_)) {
      fetch = hub->name.download_command();
      take_hub(*hub);
    } else if (PathPattern::is_pattern(path_) && path_.find("://") == std::string::npos) {
      take_pattern();
    } else {
      base::throw_user_error("\"{}\" does not exist{}", entry_.path, missing_data_advice(path_));
    }
    for (const std::string& file : found_.files) require_contents(file, fetch);
    found_.limit = entry_.limit;
    if (split_.limit > 0)
      found_.limit = found_.limit == 0 ? split_.limit : std::min(found_.limit, split_.limit);
    return std::move(found_);
  }

 private:
  void take_file() {
    require_no_parts(entry_, split_, "a file");
    base::require_regular(path_);
    found_.files = {path_};
  }

  void take_pattern() {
    require_no_parts(entry_, split_, "a pattern of files");
    take_matches(files_of_pattern(path_), missing_data_advice(path_));
  }

  // Of what a pattern fits, the data; `advice` for one that fits nothing.
  void take_matches(const std::vector<std::string>& files, const std::string& advice) {
    std::vector<std::string> data;
    std::vector<std::string> others;
    for (const std::string& file : files)
      (is_data_file(file, path_) ? data : others).push_back(file);
    if (files.empty()) base::throw_user_error("\"{}\" fits no file{}", entry_.path, advice);
    if (data.empty())
      base::throw_user_error(
          "\"{}\" fits {}, of which none is read; give .json, .jsonl, .ndjson, .txt, .csv, .tsv "
          "(also .gz, .zst) or .parquet",
          entry_.path, listed(files));
    KindChoice kinds = commonest_kind(data);
    found_.files = std::move(kinds.files);
    note("of another kind, and left out", kinds.others);
    note("no data, and left out", others);
  }

  void take_folder() {
    if (base::is_there(fs::path(path_) / kRunMark))
      base::throw_user_error(
          "\"{}\" is the output_dir of a run; keep data and output in folders of their own",
          entry_.path);
    take_part({.name = entry_.path,
               .folder = path_,
               .config = entry_.config,
               .split = split_,
               .use = use_});
  }

  void take_hub(const HubPlace& hub) {
    if (!hub.pattern.empty()) {
      require_no_parts(entry_, split_, "a pattern of files");
      std::vector<std::string> files;
      const PathPattern pattern(hub.pattern);
      for (const std::string& file : folder_files(hub.folder))
        if (file == hub.pattern || pattern.matches(file))
          files.push_back((hub.folder / file).string());
      take_matches(files, fmt::format(" of it in the cache; fetch it with '{} --include \"{}\"'",
                                      hub.name.download_command(), hub.pattern));
    } else {
      take_part({.name = entry_.path,
                 .folder = hub.folder,
                 .config = entry_.config,
                 .split = split_,
                 .use = use_,
                 .download = hub.name.download_command()});
    }
    found_.description += ", commit " + hub.folder.filename().string();
  }

  void take_part(const DataSetRequest& request) {
    DataSetPart part = data_set_part(request);
    for (const std::string& file : part.files)
      found_.files.push_back((request.folder / file).lexically_normal().string());
    found_.notes = std::move(part.notes);
    if (!part.config.empty()) found_.description += ", configuration " + part.config;
    found_.description += fmt::format(", split {}", fmt::join(part.splits, "+"));
  }

  void note(std::string_view what, const std::vector<std::string>& files) {
    if (!files.empty()) found_.notes.push_back(fmt::format("{}: {}", what, listed(files)));
  }

  const DataEntry& entry_;
  const DataUse use_;
  const std::string path_;
  const SplitChoice split_;
  DataFiles found_;
};

}  // namespace

DataFiles data_files(const DataEntry& entry, DataUse use) { return EntryFiles(entry, use).find(); }

DataFiles data_files(const Recipe& recipe, std::string_view key, const DataEntry& entry,
                     DataUse use) {
  try {
    return data_files(entry, use);
  } catch (const base::UserError& error) {
    recipe.fail(key, error.what());
  }
}

std::string data_name(const DataEntry& entry) {
  if (!entry.name.empty()) return entry.name;
  std::string name;
  for (const fs::path& part : fs::path(entry.path))
    if (const std::string text = part.string(); !text.empty() && !PathPattern::is_pattern(text))
      name = text;
  const base::FileEnding ending = base::file_ending(name);
  if (base::data_file_ending(name) != nullptr)
    name.resize(name.size() - ending.contents.size() - ending.packing.size());
  return name.substr(0, name.find('@'));
}

bool is_data_there(const std::string& path) {
  const std::string plain = plain_path(path);
  if (is_there(plain)) return true;
  if (!PathPattern::is_pattern(plain) || plain.find("://") != std::string::npos) return false;
  try {
    return !files_of_pattern(plain).empty();
  } catch (const base::UserError&) {
    return true;  // data_files tells what is wrong with the pattern
  }
}

bool is_data_in_hub_cache(const std::string& path) { return hub_place(path).has_value(); }

}  // namespace snug::formats
