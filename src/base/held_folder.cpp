#include "base/held_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace snug::base {

HeldFolder::HeldFolder(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ >= 0) static_cast<void>(::flock(descriptor_, LOCK_EX));
}

HeldFolder::~HeldFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace snug::base
