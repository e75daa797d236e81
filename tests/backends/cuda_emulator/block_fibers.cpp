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
#include <vector>

#include "device_memory.h"
#include "device_record.h"
#include "library_calls.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace snug::cuda_emulator {
namespace {

constexpr size_t kStackBytes = size_t{64} << 10;
constexpr size_t kMaxThreads = 1024;
constexpr int64_t kMaxSharedBytes = 227 << 10;
constexpr int64_t kGuardBytes = 256;
constexpr int kPoison = 0xff;
constexpr int kGuard = 0xa5;

// A context is made once a fiber; changing between fibers is a jump, which spares the system calls
// of swapcontext. The compiler's own jump: the library's takes one to another stack for corruption
// where it is fortified, and sanitizers look for its target on the stack that is left.
using Jump = void* [5];

struct Copy {
  void* to;
  const void* from;  // null: zeros
  size_t bytes;
};

struct Fiber {
  std::unique_ptr<std::byte[]> stack;
  ucontext_t entry{};
  Jump state{};
  std::deque<std::vector<Copy>> batches{1};  // the last is being filled
  // While it waits, the counter that it waits for and what that was.
  const uint64_t* awaited = nullptr;
  uint64_t was = 0;
  bool started = false;
  bool done = true;
  bool waited = false;  // for the kernels before
};

// Lanes give values for one generation and take them in the next; two sets, since the first lane to
// take may give again before the last one has taken.
struct Warp {
  std::array<std::array<uint64_t, kWarpLanes>, 2> values{};
  Exchange operation = Exchange::shuffle;
  int arrived = 0;
  uint64_t generation = 0;
};

struct Block {
  std::vector<Fiber> fibers{kMaxThreads};
  std::array<Warp, kMaxThreads / kWarpLanes> warps{};
  std::vector<std::byte> shared =
      std::vector<std::byte>(static_cast<size_t>(kMaxSharedBytes + kGuardBytes));
  const std::function<void()>* thread = nullptr;
  int64_t shared_bytes = 0;  // of `shared`, what the kernel asked for
  unsigned threads = 0;
  unsigned current = 0;
  unsigned waiting = 0;
  uint64_t generation = 0;
  uint64_t number = 0;  // of all blocks so far
  uint64_t launches = 0;
  unsigned ends = 0;  // blocks at either end of an axis that run; 0: all do
  Jump scheduler{};
};

Block& block() {
  static Block only;
  return only;
}

[[gnu::noinline]] void yield() {
  Block& all = block();
  if (__builtin_setjmp(all.fibers[all.current].state) == 0) __builtin_longjmp(all.scheduler, 1);
}

// Returns when the counter is another than it was.
void wait_for(const uint64_t& counter, uint64_t was) {
  if (counter != was) return;
  Fiber& fiber = block().fibers[block().current];
  fiber.awaited = &counter;
  fiber.was = was;
  yield();
}

// A fiber's life: one thread after another.
void fiber_main() {
  for (;;) {
    Block& all = block();
    (*all.thread)();
    block().fibers[block().current].done = true;
    yield();
  }
}

void make_context(Fiber& fiber) {
  fiber.stack = std::make_unique<std::byte[]>(kStackBytes);
  getcontext(&fiber.entry);
  fiber.entry.uc_stack.ss_sp = fiber.stack.get();
  fiber.entry.uc_stack.ss_size = kStackBytes;
  makecontext(&fiber.entry, fiber_main, 0);
}

[[gnu::noinline]] void resume(unsigned index) {
  Block& all = block();
  Fiber& fiber = all.fibers[index];
  all.current = index;
  threadIdx = {index % blockDim.x, index / blockDim.x % blockDim.y,
               index / (blockDim.x * blockDim.y)};
  if (__builtin_setjmp(all.scheduler) != 0) return;
  if (fiber.started) __builtin_longjmp(fiber.state, 1);
  fiber.started = true;
  if (fiber.stack == nullptr) make_context(fiber);
  setcontext(&fiber.entry);
  // Not the last thing in here, or the frame that is jumped back to would be left before the call.
  fail("a fiber could not be started");
}

bool is_ready(const Fiber& fiber) {
  return !fiber.done && (fiber.awaited == nullptr || *fiber.awaited != fiber.was);
}

// Index i of n, from the other end in every second block.
unsigned in_turn(unsigned i, unsigned n) { return block().number % 2 == 1 ? n - 1 - i : i; }

// Resumes the lanes of one warp until each is done or waits for another warp; says whether any ran.
bool run_warp(unsigned warp) {
  Block& all = block();
  const unsigned first = warp * kWarpLanes;
  const unsigned lanes = std::min<unsigned>(kWarpLanes, all.threads - first);
  bool any = false;
  for (bool ran = true; ran;) {
    ran = false;
    for (unsigned i = 0; i < lanes; ++i) {
      const unsigned index = first + in_turn(i, lanes);
      if (!is_ready(all.fibers[index])) continue;
      all.fibers[index].awaited = nullptr;
      resume(index);
      ran = true;
    }
    any = any || ran;
  }
  return any;
}

// A warp runs as far as it can before the next one does: what only their pace keeps in order shows.
void run_block() {
  Block& all = block();
  for (unsigned i = 0; i < all.threads; ++i) all.fibers[i].done = all.fibers[i].waited = false;
  const unsigned warps = (all.threads + kWarpLanes - 1) / kWarpLanes;
  for (bool ran = true; ran;) {
    ran = false;
    for (unsigned i = 0; i < warps; ++i) ran = run_warp(in_turn(i, warps)) || ran;
  }
  for (unsigned i = 0; i < all.threads; ++i)
    if (!all.fibers[i].done)
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
  const Block& all = block();
  for (unsigned i = 0; i < all.threads; ++i)
    for (const std::vector<Copy>& batch : all.fibers[i].batches)
      if (!batch.empty()) fail("a block ended with copies under way");
}

void check_waits() {
  const Block& all = block();
  for (unsigned i = 0; i < all.threads; ++i)
    if (!all.fibers[i].waited) fail("a kernel that begins early did not wait in every thread");
}

void check_guard(int64_t shared_bytes) {
  const std::byte* guard = block().shared.data() + shared_bytes;
  for (int64_t i = 0; i < kGuardBytes; ++i)
    if (guard[i] != std::byte{kGuard}) fail("a write beyond the block's shared memory");
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
  all.threads = grid.threads.x * grid.threads.y * grid.threads.z;
  blockDim = grid.threads;
  gridDim = grid.blocks;
  if (all.threads == 0 || all.threads > kMaxThreads) fail("a block has no or over 1024 threads");
  if (grid.blocks.x > 0x7fffffff) fail("a grid has over 2147483647 blocks in x");
  if (grid.blocks.y > 65535 || grid.blocks.z > 65535)
    fail("a grid has over 65535 blocks in y or z");
  if (grid.shared_bytes > kMaxSharedBytes) fail("a block asks for over 227 KiB of shared memory");
  const DeviceAccess access;
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) fail("a grid without blocks");
  const auto run = [&](unsigned x, unsigned y, unsigned z) {
    blockIdx = {x, y, z};
    std::memset(all.shared.data(), kPoison, static_cast<size_t>(grid.shared_bytes));
    std::memset(all.shared.data() + grid.shared_bytes, kGuard, kGuardBytes);
    run_block();
    check_copies();
    check_guard(grid.shared_bytes);
    if (grid.begins_early) check_waits();
  };
  for (unsigned z = 0; z < grid.blocks.z; z = next_block(z, grid.blocks.z))
    for (unsigned y = 0; y < grid.blocks.y; y = next_block(y, grid.blocks.y))
      for (unsigned x = 0; x < grid.blocks.x; x = next_block(x, grid.blocks.x)) run(x, y, z);
}

const uint64_t* exchange(Exchange operation, uint64_t value,
                         void (*complete)(const uint64_t* values)) {
  Block& all = block();
  if (all.threads % kWarpLanes != 0) fail("a warp exchange in a block with half a warp");
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

void note_wait() { block().fibers[block().current].waited = true; }

int lane() { return static_cast<int>(block().current % kWarpLanes); }

void wait_for_block() {
  Block& all = block();
  const uint64_t generation = all.generation;
  if (++all.waiting == all.threads) {
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
  if (all.number % 2 == 0)
    finish(copy);
  else
    all.fibers[all.current].batches.back().push_back(copy);
}

void end_batch() { block().fibers[block().current].batches.emplace_back(); }

void wait_for_batches(size_t left) {
  auto& batches = block().fibers[block().current].batches;
  for (; batches.size() > left + 1; batches.pop_front())
    for (const Copy& copy : batches.front()) finish(copy);
}

void fail(const char* problem) {
  std::fprintf(stderr, "CUDA emulator: %s, in block (%u, %u, %u), thread (%u, %u, %u)\n", problem,
               blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

}  // namespace snug::cuda_emulator
