// A control group whose processes may not use more memory than it is given. Version 1 or 2 of the
// kernel's groups; making one takes the right to write there, which root has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

namespace snug::hostile {

class MemoryGroup {
 public:
  // Nothing where no group can be made here.
  static std::unique_ptr<MemoryGroup> make(int64_t limit_bytes);
  // Removes the group, whose processes have ended.
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Processes that the kernel killed for memory.
  int64_t kills() const;

 private:
  explicit MemoryGroup(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace snug::hostile
