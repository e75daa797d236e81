// A folder that several processes write: whoever holds it is alone until the holder ends.
#pragma once

#include <filesystem>

namespace snug::base {

// Waits until no other object, of this process or of another one, holds the folder (flock). File
// systems without locks, and folders that are not there, hold nobody up.
class HeldFolder {
 public:
  explicit HeldFolder(const std::filesystem::path& folder);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

 private:
  int descriptor_;
};

}  // namespace snug::base
