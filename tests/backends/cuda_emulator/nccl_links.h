// How emulated cards reach each other: bytes in memory that ranks share, whether they are threads
// of a process or processes of a machine. Each ordered pair of ranks has a queue of bytes, in which
// a message's head says what its sender does, so that ranks which do not do the same are found.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace snug::cuda_emulator {

class NcclLinks {
 public:
  // Of the group of this name, which all its ranks open.
  NcclLinks(const std::string& name, int ranks);
  NcclLinks(const NcclLinks&) = delete;
  NcclLinks& operator=(const NcclLinks&) = delete;
  ~NcclLinks();

  // Counters of ranks that have come, and that want to go.
  std::atomic<int>& joined();
  std::atomic<int>& finalized();
  // Takes the name away, once all have come.
  void forget_name();

  // As many bytes as there is room for, or as there are; returns how many.
  size_t push(int from, int to, const std::byte* data, size_t bytes);
  size_t pull(int from, int to, std::byte* data, size_t bytes);

 private:
  struct Queue;
  struct Shared;
  Queue& queue(int from, int to);

  std::string path_;
  int ranks_;
  size_t bytes_ = 0;
  Shared* shared_ = nullptr;
};

}  // namespace snug::cuda_emulator
