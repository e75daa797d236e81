// A few bytes to the device without a copy: they travel as the kernel's argument, so that nobody
// waits and the caller keeps nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace snug::backends::cuda {

inline constexpr int32_t kSmallValueBytes = 16;

struct SmallValueRun {
  std::byte* to;
  std::byte value[kSmallValueBytes];
  int32_t bytes;
};
// Whether the kernels were compiled for the device in use.
bool has_kernels();
void write_small_value(const SmallValueRun& run, cudaStream_t stream);

}  // namespace snug::backends::cuda
