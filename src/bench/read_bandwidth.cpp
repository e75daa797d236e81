#include "bench/read_bandwidth.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "backends/backend.h"
#include "base/console.h"
#include "base/seconds_since.h"
#include "base/threads.h"

namespace snug::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kBufferBytes = int64_t{4} << 30;
constexpr int kSweeps = 7;
// Independent sums, so that loads do not wait for additions: 128 bytes, which fit in half the
// registers of the smallest instruction set.
constexpr int64_t kSums = 16;
// Words are prefetched 4 KiB ahead, since the hardware prefetcher does not cross a page. The
// constant counts words.
constexpr int64_t kAhead = 512;
constexpr int64_t kWordsPerLine = 8;

// Returns the sum, so that the compiler does not remove the loads.
uint64_t read_all(const uint64_t* words, int64_t count) {
  uint64_t sums[kSums] = {};
  for (int64_t i = 0; i + kSums <= count; i += kSums) {
    for (int64_t word = 0; word < kSums; word += kWordsPerLine)
      __builtin_prefetch(words + i + kAhead + word);
    for (int64_t lane = 0; lane < kSums; ++lane) sums[lane] ^= words[i + lane];
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) all ^= sum;
  return all;
}

}  // namespace

double read_bandwidth(int64_t bytes, int threads, int sweeps) {
  const auto backend = backends::open_backend(formats::BackendName::cpu, {.threads = threads});
  const auto arena = backend->allocate(program::Space::device, bytes);
  const auto* words = reinterpret_cast<const uint64_t*>(arena->data());
  const int64_t part = bytes / static_cast<int64_t>(sizeof(uint64_t)) / threads;
  double best = 0;
  uint64_t sink = 0;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    const auto start = Clock::now();
#pragma omp parallel num_threads(threads) reduction(^ : sink)
    sink ^= read_all(words + omp_get_thread_num() * part, part);
    const double seconds = base::seconds_since(start);
    best = std::max(best, static_cast<double>(part * threads * 8) / seconds);
  }
  // The arena's pages are zero, so the sum is zero.
  return sink == 0 ? best : 0;
}

int memory(const formats::Recipe& recipe, bool json) {
  const int threads = base::thread_count(recipe.threads);
  const auto backend = backends::open_backend(
      formats::BackendName::cpu, {.threads = threads, .device_memory_bytes = recipe.device_memory});
  const int64_t free = backend->capacity_bytes(program::Space::device);
  const int64_t bytes = std::min(kBufferBytes, free / 2);
  const double rate = read_bandwidth(bytes, threads, kSweeps);
  if (json)
    base::print(
        "{}\n",
        nlohmann::json{{"bytes_per_second", rate}, {"buffer_bytes", bytes}, {"threads", threads}}
            .dump());
  else
    base::print("{:.1f} GB/s, {} threads reading {:.1f} GiB\n", rate * 1e-9, threads,
                static_cast<double>(bytes) / (1 << 30));
  return 0;
}

}  // namespace snug::bench
