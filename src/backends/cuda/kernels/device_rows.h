// A float tensor as kernels see it, filled by the host: rows of contiguous elements, `stride`
// elements apart, f32 or bf16. Plain data, passed to kernels by value.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

struct DeviceRows {
  void* data = nullptr;
  int64_t stride = 0;  // elements from one row to the next
  bool is_bf16 = false;
};

// Elements that one thread reads in one go where addresses allow it.
inline constexpr int32_t kVectorElements = 8;

// What a kernel walks: rows x columns elements of several operands of one shape. `vectors`: every
// operand may be read kVectorElements at a time.
struct Walk {
  int64_t rows = 0;
  int64_t columns = 0;
  bool vectors = false;
};

}  // namespace snug::backends::cuda
