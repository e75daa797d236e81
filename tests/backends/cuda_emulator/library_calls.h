// How often emulated streams did what cuBLASLt and cuDNN were called for.
#pragma once

#include <atomic>
#include <cstdint>

namespace snug::cuda_emulator {

inline std::atomic<uint64_t> library_calls = 0;

}  // namespace snug::cuda_emulator
