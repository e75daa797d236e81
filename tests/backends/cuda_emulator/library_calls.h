// What emulated devices were asked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace snug::cuda_emulator {

// How often streams did what cuBLASLt and cuDNN were called for.
inline std::atomic<uint64_t> library_calls = 0;
// Kernels that may begin while the one before them ends.
inline std::atomic<uint64_t> early_launches = 0;
// Programs, or stretches of them, that were made graphs.
inline std::atomic<uint64_t> graphs = 0;

}  // namespace snug::cuda_emulator
