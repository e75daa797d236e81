// Runs the threads of a CUDA block as fibers of one processor thread: a fiber runs until it waits
// at a barrier or a warp exchange for threads that have not come yet, and a warp until all its
// lanes wait for other warps.
//
// Blocks run one after the other, every second one with its warps and lanes in descending order, so
// that a missing barrier shows as a wrong value. Shared memory starts as NaN bytes and lies before
// a guard. A barrier that some threads never reach, a warp exchange of unlike operations and a
// write beyond shared memory abort with the kernel's place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct uint3 {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

struct dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

// Of the fiber that runs; set whenever it is resumed.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace snug::cuda_emulator {

inline constexpr int kWarpLanes = 32;

struct Grid {
  dim3 blocks;
  dim3 threads;
  int64_t shared_bytes = 0;
  int64_t declared_bytes = 0;  // of shared memory, by the kernel itself
  bool begins_early = false;   // aborts where a thread ends without note_wait()
};

// Calls `thread` once for each thread of each block. Not reentrant.
void run_grid(const Grid& grid, const std::function<void()>& thread);
// How often it was called so far.
uint64_t launches();

// While it lives, only so many blocks at either end of each axis of a grid run: a launch over a
// tensor that would not fit into memory makes its first and its last elements.
class OnlyEnds {
 public:
  explicit OnlyEnds(unsigned blocks);
  OnlyEnds(const OnlyEnds&) = delete;
  OnlyEnds& operator=(const OnlyEnds&) = delete;
  ~OnlyEnds();
};

// What a thread may do while it runs.
enum class Exchange : uint8_t { shuffle, vote, reduction, barrier, product, matrices };
// Gives this lane's value and returns those of all 32 lanes, when all have come.
// The last to come calls `complete` with them first.
const uint64_t* exchange(Exchange operation, uint64_t value,
                         void (*complete)(const uint64_t* values) = nullptr);
int lane();
void wait_for_block();
// That this thread waits for the kernels before its own. While their writes are hidden
// (unfinished_writes.h), it returns when the whole block waits.
void note_wait();
// That this thread lets the next kernel begin.
void note_next_may_begin();
std::byte* shared_memory();
// Whether all these bytes are of it.
bool is_shared(const void* address, uint64_t bytes);
// Copies of some bytes (or zeros) of this thread. In every second block they are done when the
// thread waits for their batch, so that what reads too early reads poison; in the others at once,
// so that what still reads the old bytes reads new ones. A block that ends with copies under way
// aborts.
void begin_copy(void* to, const void* from, size_t bytes, bool zeros);
void end_batch();
void wait_for_batches(size_t left);
// Aborts with the block and thread.
[[noreturn]] void fail(const char* problem);

}  // namespace snug::cuda_emulator
