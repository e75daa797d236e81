#include "base/held_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/console.h"

namespace snug::base {

HeldFolder::HeldFolder(const std::filesystem::path& folder, std::string_view what)
    : descriptor_(::open((folder.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) return;
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  say("{} ({}); waiting for it", what, folder.string());
  static_cast<void>(::flock(descriptor_, LOCK_EX));
}

HeldFolder::~HeldFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace snug::base
