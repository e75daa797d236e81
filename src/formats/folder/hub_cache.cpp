#include "formats/folder/hub_cache.h"

#include "base/file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
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

// A branch or tag, or one below refs/, such as refs/convert/parquet and refs/pr/1.
bool is_revision(std::string_view word) {
  constexpr std::string_view kRefs = "refs/";
  if (!word.starts_with(kRefs)) return is_part(word);
  for (word.remove_prefix(kRefs.size());;) {
    const size_t end = word.find('/');
    if (!is_part(word.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    word.remove_prefix(end + 1);
  }
}

fs::path repository_folder(const HubName& name) {
  std::string folder = name.kind == HubKind::model ? "models--" : "datasets--";
  if (!name.organisation.empty()) folder += name.organisation + "--";
  return hub_cache_folder() / (folder + name.name);
}

}  // namespace

std::string HubName::download_command() const {
  return std::string("hf download ") + (kind == HubKind::dataset ? "--repo-type dataset " : "") +
         repository() + (revision == "main" ? "" : " --revision " + revision);
}

std::optional<HubName> parse_hub_name(std::string_view word, HubKind kind) {
  HubName result{.kind = kind};
  if (const size_t at = word.find('@'); at != std::string_view::npos) {
    result.revision = word.substr(at + 1);
    word = word.substr(0, at);
  }
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos && kind == HubKind::model) return std::nullopt;
  if (slash != std::string_view::npos) result.organisation = word.substr(0, slash);
  result.name = word.substr(slash == std::string_view::npos ? 0 : slash + 1);
  const bool has_part = slash == std::string_view::npos || is_part(result.organisation);
  if (!has_part || !is_part(result.name) || !is_revision(result.revision)) return std::nullopt;
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
  const fs::path repository = repository_folder(name);
  const std::string commit = commit_of(repository / "refs" / name.revision);
  const fs::path snapshot = repository / "snapshots" / (commit.empty() ? name.revision : commit);
  if (!is_folder(snapshot)) return std::nullopt;
  return snapshot;
}

std::vector<std::string> revisions_in_hub_cache(const HubName& name) {
  const fs::path refs = repository_folder(name) / "refs";
  const fs::path snapshots = repository_folder(name) / "snapshots";
  std::set<std::string> revisions;
  std::set<std::string> named;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(refs, error)) {
    const std::string commit = commit_of(entry.path());
    if (commit.empty() || !is_folder(snapshots / commit)) continue;
    named.insert(commit);
    revisions.insert(entry.path().lexically_relative(refs).string());
  }
  for (const auto& entry : fs::directory_iterator(snapshots, error))
    if (const std::string commit = entry.path().filename().string(); !named.contains(commit))
      revisions.insert(commit);
  return {revisions.begin(), revisions.end()};
}

}  // namespace snug::formats
