#include "formats/data/missing_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/file_ending.h"
#include "base/lower_case.h"
#include "base/nearest.h"
#include "formats/data/file_kinds.h"
#include "formats/data/path_pattern.h"
#include "formats/folder/hub_cache.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

bool is_folder_there(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

fs::path processed_sets_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path cache = variable("HF_DATASETS_CACHE"); !cache.empty()) return cache;
  return hub_cache_folder().parent_path() / "datasets";
}

// As the `datasets` library makes folders of names: OpenOrca as open_orca.
std::string processed_name(std::string_view name) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto is_upper = [&](size_t at) {
      return std::isupper(static_cast<unsigned char>(name[at])) != 0;
    };
    if (i > 0 && is_upper(i) && !is_upper(i - 1) && name[i - 1] != '_' && name[i - 1] != '-')
      result += '_';
    result += name[i];
  }
  return base::lower_case(result);
}

std::string hub_set_advice(const HubName& hub) {
  const std::vector<std::string> revisions = revisions_in_hub_cache(hub);
  if (!revisions.empty())
    return fmt::format(
        "; the cache of the hub has other revisions of it: {}. Give one as {}@REVISION, "
        "or fetch this one with '{}'",
        listed(revisions), hub.repository(), hub.download_command());
  const bool is_processed = is_folder_there(
      processed_sets_folder() / fmt::format("{}___{}", hub.organisation, processed_name(hub.name)));
  return fmt::format(
      "; a data set of the Hugging Face hub is fetched with '{}'{}", hub.download_command(),
      is_processed ? " (what load_dataset made of it are Arrow files, which are not read)" : "");
}

// ORG/NAME and the rest of a page of the hub: datasets/ORG/NAME/blob/main/FILE.
std::optional<std::string> hub_page_advice(std::string_view url) {
  for (const std::string_view site : {"https://", "http://", "www."})
    if (url.starts_with(site)) url.remove_prefix(site.size());
  const auto begin = [&](std::string_view word) {
    if (!url.starts_with(word)) return false;
    url.remove_prefix(word.size());
    return true;
  };
  if (!(begin("huggingface.co/") || begin("hf.co/")) || !begin("datasets/")) return std::nullopt;
  std::vector<std::string> parts;
  for (url = url.substr(0, url.find_first_of("?#")); !url.empty();) {
    const size_t end = std::min(url.find('/'), url.size());
    if (end > 0) parts.emplace_back(url.substr(0, end));
    url.remove_prefix(std::min(end + 1, url.size()));
  }
  if (parts.size() < 2) return std::nullopt;
  std::string name = parts[0] + "/" + parts[1];
  // After blob, resolve or tree come the revision and a file.
  if (parts.size() > 3 && parts[2] != "viewer" && parts[3] != "main") name += "@" + parts[3];
  const auto hub = parse_hub_name(name, HubKind::dataset);
  if (!hub) return std::nullopt;
  const bool names_file = parts.size() > 4 && parts[2] != "viewer";
  return fmt::format(
      "; it is a page of the hub: fetch the data set with '{}', and give {} as data{}",
      hub->download_command(), name,
      names_file ? fmt::format(" (or hf://datasets/{}/{} for this file)", name,
                               fmt::join(parts.begin() + 4, parts.end(), "/"))
                 : "");
}

std::optional<std::string> url_advice(const std::string& path) {
  constexpr std::string_view kHubFiles = "hf://datasets/";
  if (path.starts_with(kHubFiles)) {
    const std::string name = path.substr(kHubFiles.size());
    const auto hub =
        parse_hub_name(name.substr(0, name.find('/', name.find('/') + 1)), HubKind::dataset);
    if (hub) return hub_set_advice(*hub);
  }
  const size_t colon = path.find("://");
  const bool is_page = path.starts_with("huggingface.co/") || path.starts_with("hf.co/");
  if (colon == std::string::npos && !is_page) return std::nullopt;
  if (auto advice = hub_page_advice(path)) return advice;
  if (path.starts_with("http"))
    return fmt::format(
        "; Snug downloads nothing: fetch it with \"curl -LO '{}'\", and give the "
        "file as data",
        path);
  return "; Snug reads local files alone: copy it here, and give the copy as data";
}

// What the folder has that `name` may have been meant for.
std::string nearest_in(const fs::path& folder, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : base::list_folder(folder.empty() ? "." : folder))
    if (const std::string each = entry.path().filename().string(); !each.starts_with('.'))
      names.push_back(each);
  std::ranges::sort(names);
  // A name without its ending comes first: train for train.jsonl.
  for (const std::string& each : names)
    if (each.starts_with(name + ".") && is_data_file(each)) return (folder / each).string();
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const auto nearest = base::nearest_name(name, candidates);
  return nearest ? (folder / *nearest).string() : "";
}

// The first part of the path that is not there, and what is there in its place.
std::string nearest_path(const std::string& path) {
  fs::path folder;
  for (const fs::path& part : fs::path(path)) {
    if (part.empty()) break;
    if (PathPattern::is_pattern(part.string())) return "";
    if (base::is_there(folder / part)) {
      folder /= part;
      continue;
    }
    if (!folder.empty() && !is_folder_there(folder)) return "";
    try {
      return nearest_in(folder, part.string());
    } catch (const base::UserError&) {
      return "";  // a folder that cannot be read
    }
  }
  return "";
}

}  // namespace

std::string missing_data_advice(const std::string& path) {
  if (const auto advice = url_advice(path)) return *advice;
  if (path.find('$') != std::string::npos)
    return "; variables such as $HOME are not replaced in a recipe: write the path out";
  if (path.starts_with('~')) return "; of ~ only ~/ is known, the home folder: write the path out";
  if (path.find('{') != std::string::npos)
    return "; braces are no pattern here: give a list of paths, or a pattern of * ? [abc] **";
  std::string advice;
  if (const std::string nearest = nearest_path(path); !nearest.empty())
    advice = fmt::format("; did you mean {}?", nearest);
  const auto hub = parse_hub_name(path, HubKind::dataset);
  if (hub && !hub->organisation.empty() && base::data_file_ending(hub->name) == nullptr)
    advice += hub_set_advice(*hub);
  return advice;
}

}  // namespace snug::formats
