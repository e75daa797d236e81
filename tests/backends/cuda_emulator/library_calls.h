// What emulated devices were asked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace snug::cuda_emulator {

// How many calls of cuBLASLt and cuDNN ran on streams.
inline std::atomic<uint64_t> library_calls = 0;
// Kernels that may begin while the one before them ends.
inline std::atomic<uint64_t> early_launches = 0;
// Fetches to a cache that kernels asked for, of what they read later.
inline std::atomic<uint64_t> cache_fetches = 0;
// Graphs made of programs or of partitions of them.
inline std::atomic<uint64_t> graphs = 0;

}  // namespace snug::cuda_emulator
