// A folder that several processes write: whoever holds it is alone until it lets go or ends.
#pragma once

#include <filesystem>
#include <string_view>

namespace snug::base {

// Waits until no other object, of this process or of another one, holds the folder (flock on
// the file FOLDER.lock, which network file systems know too), and says once for whom it waits.
// Where no lock can be had, nobody is held up.
class HeldFolder {
 public:
  // `what` is for people: "another process checks cuDNN's attention".
  HeldFolder(const std::filesystem::path& folder, std::string_view what);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

 private:
  int descriptor_;
};

}  // namespace snug::base
