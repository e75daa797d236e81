#include "formats/folder/hub_cache.h"

#include "base/file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <system_error>

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLetters = 96;  // of each part: the hub's own limit

// The hub allows letters, digits, '-', '_' and '.'; so no part can lead out of the cache.
bool is_part(std::string_view word) {
  const auto is_plain = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ||
           letter == '_' || letter == '.';
  };
  return !word.empty() && word.size() <= kMaxLetters && word.front() != '.' &&
         word.find("..") == std::string_view::npos &&
         std::all_of(word.begin(), word.end(), is_plain);
}

fs::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The commit in a file of refs; empty if there is no such file.
std::string commit_of(const fs::path& ref) {
  constexpr int64_t kMaxBytes = 256;
  std::error_code error;
  if (!fs::is_regular_file(ref, error)) return "";
  std::string commit = base::read_text_file(ref, kMaxBytes);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())) != 0)
    commit.pop_back();
  return is_part(commit) ? commit : "";
}

}  // namespace

std::string HubName::download_command() const {
  return "hf download " + repository() + (revision == "main" ? "" : " --revision " + revision);
}

std::optional<HubName> parse_hub_name(std::string_view word) {
  HubName result;
  if (const size_t at = word.find('@'); at != std::string_view::npos) {
    result.revision = word.substr(at + 1);
    word = word.substr(0, at);
  }
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  result.organisation = word.substr(0, slash);
  result.name = word.substr(slash + 1);
  for (const std::string& part : {result.organisation, result.name, result.revision})
    if (!is_part(part)) return std::nullopt;
  return result;
}

fs::path hub_cache_folder() {
  if (const fs::path cache = from_environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const fs::path home = from_environment("HF_HOME"); !home.empty()) return home / "hub";
  fs::path cache = from_environment("XDG_CACHE_HOME");
  if (cache.empty()) cache = from_environment("HOME") / ".cache";
  return cache / "huggingface" / "hub";
}

std::optional<fs::path> find_in_hub_cache(const HubName& name) {
  const fs::path repository =
      hub_cache_folder() / ("models--" + name.organisation + "--" + name.name);
  const std::string commit = commit_of(repository / "refs" / name.revision);
  const fs::path snapshot = repository / "snapshots" / (commit.empty() ? name.revision : commit);
  if (!is_folder(snapshot)) return std::nullopt;
  return snapshot;
}

}  // namespace snug::formats
