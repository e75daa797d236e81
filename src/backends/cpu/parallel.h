// The threads of the CPU backend. Work is cut into blocks whose number and bounds depend only on
// the sizes, so which thread runs a block does not change a bit of the result. The caller keeps one
// partial sum per block and adds them in block order.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace snug::backends::cpu {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t value, int64_t unit) { return ceil_div(value, unit) * unit; }
// Rounds up to whole cache lines, so that what follows begins on a line of its own.
constexpr int64_t whole_lines(int64_t bytes) { return round_up(bytes, 64); }

// Calls f(block) for every block in [0, blocks), in any order, on all threads. f must not throw.
// Blocks are handed out one at a time, so uneven ones balance.
template <typename F>
void parallel_for(int64_t blocks, F&& f) {
  if (blocks <= 1) {
    if (blocks == 1) f(int64_t{0});
    return;
  }
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t block = 0; block < blocks; ++block) f(block);
}

// Calls f(begin, end) for consecutive ranges of at most block_size items in [0, total).
template <typename F>
void parallel_ranges(int64_t total, int64_t block_size, F&& f) {
  parallel_for(ceil_div(total, block_size), [&](int64_t block) {
    f(block * block_size, std::min(total, (block + 1) * block_size));
  });
}

// The index of the calling thread inside f, below CpuContext::threads. Use it for per-thread
// scratch, never for values.
inline int current_thread() { return omp_get_thread_num(); }

}  // namespace snug::backends::cpu
