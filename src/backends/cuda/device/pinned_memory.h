// The pinned memory of this process, whichever code allocated it: the linker redirects every call
// of cudaHostAlloc and cudaFreeHost in the binary to this file (--wrap, CMakeLists.txt), where it
// is counted. A library that is opened at run time with a CUDA runtime of its own is not counted.
// Thread-safe.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

int64_t pinned_bytes();
// The size of the allocation that begins there; 0 where none does.
int64_t pinned_bytes_at(const void* data);

}  // namespace snug::backends::cuda
