#include "base/temporary_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"

namespace snug::base {

std::filesystem::path temporary_for(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += ".snug-tmp";
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

}  // namespace snug::base
