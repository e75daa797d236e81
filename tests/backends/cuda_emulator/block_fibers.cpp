#include "block_fibers.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device_memory.h"
#include "device_record.h"
#include "library_calls.h"
#include "refusals.h"
#include "unfinished_writes.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace snug::cuda_emulator {
namespace {

constexpr size_t kStackBytes = size_t{64} << 10;
constexpr size_t kMaxThreads = 1024;
constexpr int64_t kGuardBytes = 256;
constexpr int kPoison = 0xff;
constexpr int kGuard = 0xa5;

// A context is made once a fiber; changing between fibers is a jump, which spares the system calls
// of swapcontext. The compiler's own jump: the library's takes one to another stack for corruption
// where it is fortified, and sanitizers look for its target on the stack that is left.
using Jump = void* [5];

// Stacks that all began at the same place of a page would share a few lines of the nearest cache.
constexpr size_t kStackShift = 128;
constexpr size_t kStackShifts = 32;

struct Copy {
  void* to;
  const void* from;  // null: zeros
  size_t bytes;
};

// A stack, and the place in it to go on from. Threads that do not wait run on one fiber, one after
// the other; one that waits keeps its fiber.
struct Fiber {
  std::unique_ptr<std::byte[]> stack;
  ucontext_t entry{};
  Jump state{};
  bool started = false;
};

struct Thread {
  // While it waits, the counter that it waits for and what that was.
  const uint64_t* awaited = nullptr;
  uint64_t was = 0;
  Fiber* fiber = nullptr;  // from its beginning to its end
  bool done = true;
  bool waited = false;  // for the kernels before
};

using Batches = std::deque<std::vector<Copy>>;  // the last is being filled

// Lanes give values for one generation and take them in the next; two sets, since the first lane to
// take may give again before the last one has taken.
struct Warp {
  std::array<std::array<uint64_t, kWarpLanes>, 2> values{};
  Exchange operation = Exchange::shuffle;
  int arrived = 0;
  uint64_t generation = 0;
};

struct Block {
  Block() {
    for (Fiber& fiber : fibers) free_fibers.push_back(&fiber);
  }

  std::vector<Thread> threads{kMaxThreads};
  std::vector<uint3> places{kMaxThreads};  // threadIdx of each
  std::vector<Batches> batches = std::vector<Batches>(kMaxThreads, Batches(1));
  std::vector<Fiber> fibers{kMaxThreads};
  std::vector<Fiber*> free_fibers;
  std::array<Warp, kMaxThreads / kWarpLanes> warps{};
  std::vector<std::byte> shared =
      std::vector<std::byte>(static_cast<size_t>(kLargestSharedBytes + kGuardBytes));
  const std::function<void()>* thread = nullptr;
  int64_t shared_bytes = 0;  // of `shared`, what the kernel asked for
  unsigned size = 0;         // in threads
  unsigned current = 0;
  unsigned waiting = 0;
  uint64_t generation = 0;
  uint64_t number = 0;  // of all blocks so far
  uint64_t launches = 0;
  uint64_t copies_under_way = 0;
  // Of the kernel that runs: whether what kernels before it wrote is hidden until the block waits,
  // the threads of the block that wait for them, how often all did, and whether a thread let the
  // next kernel begin before it waited.
  bool hides = false;
  unsigned waiting_for_kernels = 0;
  uint64_t kernel_waits = 0;
  bool lets_next_begin_first = false;
  unsigned ends = 0;  // blocks at either end of an axis that run; 0: all do
  Jump scheduler{};
  // Of the warp that runs: its threads, whose turn is next in this pass over them, and whether any
  // ran in this pass and since the warp was begun.
  unsigned first = 0;
  unsigned lanes = 0;
  unsigned turn = 0;
  bool ran_in_pass = false;
  bool ran = false;
};

// Looked up by every exchange of every lane, so it is there from the start.
Block only_block;
Block& block() { return only_block; }

bool is_ready(const Thread& thread) {
  return !thread.done && (thread.awaited == nullptr || *thread.awaited != thread.was);
}

// Index i of n, from the other end in every second block.
unsigned in_turn(unsigned i, unsigned n) { return block().number % 2 == 1 ? n - 1 - i : i; }

// Passes over the lanes of the warp, again and again: makes the next one that can go on the current
// thread. False when each is done or waits for another warp.
bool take_turn() {
  Block& all = block();
  for (;;) {
    while (all.turn < all.lanes) {
      const unsigned index = all.first + in_turn(all.turn++, all.lanes);
      Thread& thread = all.threads[index];
      if (!is_ready(thread)) continue;
      thread.awaited = nullptr;
      all.current = index;
      threadIdx = all.places[index];
      all.ran_in_pass = all.ran = true;
      return true;
    }
    if (!all.ran_in_pass) return false;
    all.turn = 0;
    all.ran_in_pass = false;
  }
}

void fiber_main();

void make_context(Fiber& fiber) {
  const auto number = static_cast<size_t>(&fiber - block().fibers.data());
  fiber.stack = std::make_unique<std::byte[]>(kStackBytes + kStackShifts * kStackShift);
  getcontext(&fiber.entry);
  fiber.entry.uc_stack.ss_sp = fiber.stack.get();
  fiber.entry.uc_stack.ss_size = kStackBytes + number % kStackShifts * kStackShift;
  makecontext(&fiber.entry, fiber_main, 0);
}

// Goes on with the current thread: on its fiber, or on a free one where it begins.
[[gnu::noinline]] void enter() {
  Block& all = block();
  Thread& thread = all.threads[all.current];
  if (thread.fiber == nullptr) {
    thread.fiber = all.free_fibers.back();
    all.free_fibers.pop_back();
  }
  Fiber& fiber = *thread.fiber;
  if (fiber.started) __builtin_longjmp(fiber.state, 1);
  fiber.started = true;
  if (fiber.stack == nullptr) make_context(fiber);
  setcontext(&fiber.entry);
  fail("a fiber could not be started");
}

// Leaves a fiber for the thread whose turn is next, or for the scheduler where there is none;
// returns when the fiber is entered again.
[[gnu::noinline]] void leave(Fiber& fiber, bool has_next) {
  if (__builtin_setjmp(fiber.state) != 0) return;
  if (has_next) enter();
  __builtin_longjmp(block().scheduler, 1);
}

// Returns when the counter is another than it was.
void wait_for(const uint64_t& counter, uint64_t was) {
  if (counter != was) return;
  Thread& thread = block().threads[block().current];
  thread.awaited = &counter;
  thread.was = was;
  leave(*thread.fiber, take_turn());
}

// A fiber's life: one thread after another. The next one begins right here, where it has not begun
// on a fiber of its own.
void fiber_main() {
  Block& all = block();
  for (;;) {
    (*all.thread)();
    Thread& ended = all.threads[all.current];
    Fiber* const own = std::exchange(ended.fiber, nullptr);
    ended.done = true;
    const bool has_next = take_turn();
    if (Thread& next = all.threads[all.current]; has_next && next.fiber == nullptr) {
      next.fiber = own;
      continue;
    }
    all.free_fibers.push_back(own);
    leave(*own, has_next);
  }
}

// Returns when no thread of the warp can go on.
[[gnu::noinline]] void run_turns() {
  if (__builtin_setjmp(block().scheduler) != 0) return;
  enter();
  // Not the last thing in here, or the frame that is jumped back to would be left before the call.
  fail("a fiber could not be entered");
}

// Resumes the lanes of one warp until each is done or waits for another warp; says whether any ran.
bool run_warp(unsigned warp) {
  Block& all = block();
  all.first = warp * kWarpLanes;
  all.lanes = std::min<unsigned>(kWarpLanes, all.size - all.first);
  all.turn = 0;
  all.ran_in_pass = all.ran = false;
  if (take_turn()) run_turns();
  return all.ran;
}

// A warp runs as far as it can before the next one does: what only their pace keeps in order shows.
void run_block() {
  Block& all = block();
  for (unsigned i = 0; i < all.size; ++i) all.threads[i].done = all.threads[i].waited = false;
  const unsigned warps = (all.size + kWarpLanes - 1) / kWarpLanes;
  for (bool ran = true; ran;) {
    ran = false;
    for (unsigned i = 0; i < warps; ++i) ran = run_warp(in_turn(i, warps)) || ran;
  }
  for (unsigned i = 0; i < all.size; ++i)
    if (!all.threads[i].done)
      fail("threads wait at a barrier or warp exchange that others never reach");
  ++all.number;
}

void finish(const Copy& copy) {
  if (copy.from == nullptr)
    std::memset(copy.to, 0, copy.bytes);
  else
    std::memcpy(copy.to, copy.from, copy.bytes);
}

void check_copies() {
  if (block().copies_under_way > 0) fail("a block ended with copies under way");
}

void check_waits() {
  const Block& all = block();
  for (unsigned i = 0; i < all.size; ++i)
    if (!all.threads[i].waited) fail("a kernel that begins early did not wait in every thread");
}

void check_guard(int64_t shared_bytes) {
  const std::byte* guard = block().shared.data() + shared_bytes;
  for (int64_t i = 0; i < kGuardBytes; ++i)
    if (guard[i] != std::byte{kGuard}) fail("a write beyond the block's shared memory");
}

void place_threads() {
  uint3 place;
  for (unsigned i = 0; i < block().size; ++i) {
    block().places[i] = place;
    if (++place.x < blockDim.x) continue;
    place.x = 0;
    if (++place.y < blockDim.y) continue;
    place.y = 0;
    ++place.z;
  }
}

// Of `count` blocks along an axis, the next one that runs.
unsigned next_block(unsigned index, unsigned count) {
  const unsigned ends = block().ends;
  const bool skips = ends > 0 && index + 1 == ends && count > 2 * ends;
  return skips ? count - ends : index + 1;
}

}  // namespace

OnlyEnds::OnlyEnds(unsigned blocks) { block().ends = blocks; }
OnlyEnds::~OnlyEnds() { block().ends = 0; }

uint64_t launches() { return block().launches; }

// One kernel at a time, whichever threads do the work of their streams.
void run_grid(const Grid& grid, const std::function<void()>& thread) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Block& all = block();
  ++all.launches;
  if (grid.begins_early) ++early_launches;
  record_device([&] {
    const auto text_of = [](const dim3& of) {
      return std::to_string(of.x) + " x " + std::to_string(of.y) + " x " + std::to_string(of.z);
    };
    return std::string(thread.target_type().name()) + ": " + text_of(grid.blocks) + " blocks of " +
           text_of(grid.threads) + " threads, " + std::to_string(grid.shared_bytes) + " bytes";
  });
  all.thread = &thread;
  all.shared_bytes = grid.shared_bytes;
  all.size = grid.threads.x * grid.threads.y * grid.threads.z;
  blockDim = grid.threads;
  gridDim = grid.blocks;
  if (all.size == 0 || all.size > kMaxThreads) fail("a block has no or over 1024 threads");
  if (grid.blocks.x > 0x7fffffff) fail("a grid has over 2147483647 blocks in x");
  if (grid.blocks.y > 65535 || grid.blocks.z > 65535)
    fail("a grid has over 65535 blocks in y or z");
  if (grid.shared_bytes + grid.declared_bytes > most_shared_bytes) fail("too much shared memory");
  place_threads();
  const DeviceAccess access;
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) fail("a grid without blocks");
  const bool watches = hides_unfinished_writes;
  all.hides = watches && grid.begins_early;
  all.lets_next_begin_first = false;
  if (watches) begin_to_watch_writes();
  const auto run = [&](unsigned x, unsigned y, unsigned z) {
    blockIdx = {x, y, z};
    std::memset(all.shared.data(), kPoison, static_cast<size_t>(grid.shared_bytes));
    std::memset(all.shared.data() + grid.shared_bytes, kGuard, kGuardBytes);
    if (all.hides) hide_unfinished();
    run_block();
    check_copies();
    check_guard(grid.shared_bytes);
    if (grid.begins_early) check_waits();
  };
  for (unsigned z = 0; z < grid.blocks.z; z = next_block(z, grid.blocks.z))
    for (unsigned y = 0; y < grid.blocks.y; y = next_block(y, grid.blocks.y))
      for (unsigned x = 0; x < grid.blocks.x; x = next_block(x, grid.blocks.x)) run(x, y, z);
  if (watches) end_to_watch_writes(grid.begins_early && all.lets_next_begin_first);
}

const uint64_t* exchange(Exchange operation, uint64_t value,
                         void (*complete)(const uint64_t* values)) {
  Block& all = block();
  if (all.size % kWarpLanes != 0) fail("a warp exchange in a block with half a warp");
  Warp& warp = all.warps[all.current / kWarpLanes];
  const uint64_t generation = warp.generation;
  if (warp.arrived > 0 && warp.operation != operation)
    fail("lanes of a warp meet in unlike operations");
  warp.operation = operation;
  warp.values[generation % 2][all.current % kWarpLanes] = value;
  if (++warp.arrived == kWarpLanes) {
    if (complete != nullptr) complete(warp.values[generation % 2].data());
    warp.arrived = 0;
    ++warp.generation;
  }
  wait_for(warp.generation, generation);
  return warp.values[generation % 2].data();
}

void note_wait() {
  Block& all = block();
  if (std::exchange(all.threads[all.current].waited, true) || !all.hides) return;
  const uint64_t waits = all.kernel_waits;
  if (++all.waiting_for_kernels == all.size) {
    all.waiting_for_kernels = 0;
    show_unfinished();
    ++all.kernel_waits;
  }
  wait_for(all.kernel_waits, waits);
}

void note_next_may_begin() {
  Block& all = block();
  if (!all.threads[all.current].waited) all.lets_next_begin_first = true;
}

int lane() { return static_cast<int>(block().current % kWarpLanes); }

void wait_for_block() {
  Block& all = block();
  const uint64_t generation = all.generation;
  if (++all.waiting == all.size) {
    all.waiting = 0;
    ++all.generation;
  }
  wait_for(all.generation, generation);
}

std::byte* shared_memory() { return block().shared.data(); }

bool is_shared(const void* address, uint64_t bytes) {
  const auto offset =
      reinterpret_cast<uintptr_t>(address) -
      reinterpret_cast<uintptr_t>(block().shared.data());  // wraps where it is below
  const auto all = static_cast<uint64_t>(block().shared_bytes);
  return offset <= all && bytes <= all - offset;
}

void begin_copy(void* to, const void* from, size_t bytes, bool zeros) {
  Block& all = block();
  const Copy copy{to, zeros ? nullptr : from, bytes};
  if (all.number % 2 == 0) return finish(copy);
  all.batches[all.current].back().push_back(copy);
  ++all.copies_under_way;
}

void end_batch() { block().batches[block().current].emplace_back(); }

void wait_for_batches(size_t left) {
  Block& all = block();
  Batches& batches = all.batches[all.current];
  for (; batches.size() > left + 1; batches.pop_front()) {
    for (const Copy& copy : batches.front()) finish(copy);
    all.copies_under_way -= batches.front().size();
  }
}

void fail(const char* problem) {
  std::fprintf(stderr, "CUDA emulator: %s, in block (%u, %u, %u), thread (%u, %u, %u)\n", problem,
               blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

}  // namespace snug::cuda_emulator
