#include "formats/folder/file_list.h"

#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kListName = ".snug_files.json";

void add_files(const fs::path& folder, const fs::path& top, std::map<std::string, int64_t>& files) {
  for (const auto& entry : base::list_folder(folder)) {
    const fs::file_status status = entry.symlink_status();
    if (fs::is_directory(status))
      add_files(entry.path(), top, files);
    else
      files[entry.path().lexically_relative(top).string()] =
          fs::is_regular_file(status) ? static_cast<int64_t>(entry.file_size()) : -1;
  }
}

// The bytes of each file; -1 for an entry that is neither a file nor a folder, such as a link.
std::map<std::string, int64_t> files_of(const fs::path& folder) {
  std::map<std::string, int64_t> files;
  add_files(folder, folder, files);
  files.erase(kListName);
  return files;
}

std::map<std::string, int64_t> read_list(const fs::path& path) {
  const nlohmann::json document = base::read_json_file(path);
  const base::JsonObject list(document, path.string());
  const base::JsonObject files = list.object("files");
  std::map<std::string, int64_t> result;
  for (const auto& [name, bytes] : files.value().items()) result[name] = files.integer(name);
  return result;
}

}  // namespace

void write_file_list(const fs::path& folder) {
  const nlohmann::json document{{"schema_version", 1}, {"files", files_of(folder)}};
  base::write_file_atomically(folder / kListName, document.dump(2) + "\n");
}

std::optional<std::string> foreign_entry(const fs::path& folder) {
  if (!fs::is_directory(fs::symlink_status(folder))) return ".";
  if (fs::is_empty(folder)) return std::nullopt;
  const fs::path path = folder / kListName;
  if (!fs::is_regular_file(fs::symlink_status(path))) return kListName;
  try {
    const std::map<std::string, int64_t> listed = read_list(path);
    for (const auto& [name, bytes] : files_of(folder))
      if (const auto known = listed.find(name); known == listed.end() || known->second != bytes)
        return name;
  } catch (const base::UserError&) {
    return kListName;
  }
  return std::nullopt;
}

std::optional<std::string> damaged_entry(const fs::path& folder) {
  try {
    for (const auto& [name, bytes] : read_list(folder / kListName)) {
      std::error_code error;
      if (bytes >= 0 && fs::file_size(folder / name, error) != static_cast<uintmax_t>(bytes))
        return name;
    }
  } catch (const base::UserError&) {
    return kListName;
  }
  return std::nullopt;
}

}  // namespace snug::formats
