#include "base/temporary_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/error.h"
#include "base/file.h"

namespace snug::base {
namespace {

constexpr std::string_view kEnding = ".snug-tmp";

// "out" for "out.snug-tmp-7"; empty for any other name.
std::string staged_name(const std::string& name) {
  const size_t at = name.rfind(kStagingInfix);
  if (at == std::string::npos) return "";
  const std::string number = name.substr(at + kStagingInfix.size());
  const bool is_number =
      !number.empty() && std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? name.substr(0, at) : "";
}

}  // namespace

std::filesystem::path temporary_for(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += kEnding;
  struct stat status = {};
  if (::lstat(temporary.c_str(), &status) != 0) return temporary;
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
    throw_user_error(
        "{} is in the way: {} is written there first, and it is not a file of its own (but a link, "
        "a folder or a device); move it away",
        temporary.string(), path.string());
  if (::unlink(temporary.c_str()) != 0) throw_system_error("remove", temporary, errno);
  return temporary;
}

std::string name_of_written(const std::filesystem::path& path) {
  std::string file = path.filename().string();
  const bool is_temporary = file.ends_with(kEnding);
  if (is_temporary) file.resize(file.size() - kEnding.size());
  std::filesystem::path above;
  for (auto part = path.begin(); part != path.end(); above /= *part++) {
    const std::string folder = staged_name(part->string());
    if (folder.empty()) continue;
    const auto parts_below = std::distance(std::next(part), path.end());
    if (parts_below > 0 && std::next(part)->string() != kStagedFolder) continue;
    const std::string target = (above / folder).string();
    return parts_below < 2 ? target : fmt::format("{} of {}", file, target);
  }
  return is_temporary ? (path.parent_path() / file).string() : path.string();
}

}  // namespace snug::base
