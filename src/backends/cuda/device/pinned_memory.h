// Pinned memory that this process has, by whatever code: the linker sends every call of
// cudaHostAlloc and cudaFreeHost in the binary here first (--wrap, CMakeLists.txt), where it is
// counted. A library that is opened at run time and has a CUDA runtime of its own is not seen.
// Thread-safe.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

int64_t pinned_bytes();
// The bytes of one allocation; 0 where none begins there.
int64_t pinned_bytes_at(const void* data);

}  // namespace snug::backends::cuda
