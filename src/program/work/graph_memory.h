// The memory that recordings of programs (CUDA graphs) take on a device, next to the arenas: an
// upper bound: with kernels that loaded late, those of 8B LoRA took 8 of 22 MiB on an H100.
#pragma once

#include <cstdint>

namespace snug::program {

// The bytes of each launch: a node with up to 4 KiB of arguments, and as much again for what starts
// it.
inline constexpr int64_t kGraphBytesPerLaunch = int64_t{8} << 10;
constexpr int64_t graph_bytes(int64_t launches) { return launches * kGraphBytesPerLaunch; }

}  // namespace snug::program
