// What kernels that may still be running have written. A kernel that begins early must not read it
// before it waits, and may write nothing until then. While `hides_unfinished_writes` holds, such a
// kernel finds 0xff bytes (NaN) in its place until all threads of the block have waited, and a
// write before aborts. Bytes that a kernel overwrote with the same value do not count. Of one
// thread.
//
// Which kernels may still run: the one before, always, since what it wrote is surely seen only
// after the wait; and those that it may run beside itself, if it lets the next kernel begin before
// it has waited.
#pragma once

#include <cstddef>

namespace snug::cuda_emulator {

inline bool hides_unfinished_writes = false;
// Sets it while it lives.
struct UnfinishedWritesHidden {
  UnfinishedWritesHidden() { hides_unfinished_writes = true; }
  UnfinishedWritesHidden(const UnfinishedWritesHidden&) = delete;
  UnfinishedWritesHidden& operator=(const UnfinishedWritesHidden&) = delete;
  ~UnfinishedWritesHidden() { hides_unfinished_writes = false; }
};

// Around a kernel that runs, if hides_unfinished_writes.
void begin_to_watch_writes();
void end_to_watch_writes(bool before_it_may_run);
// Around the part of a block that runs before its threads have waited.
void hide_unfinished();
void show_unfinished();
// Memory is freed.
void forget_unfinished(const void* data, size_t bytes);

}  // namespace snug::cuda_emulator
