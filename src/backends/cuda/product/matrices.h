// Float tensors as the kinds of the CUDA backend see them: rows of contiguous elements, which
// kernels may treat as one row or read as vectors where possible. Host code that needs no device.
#pragma once

#include <initializer_list>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/invocation.h"

namespace snug::backends::cuda {

// Whether the address is aligned for reads of this many bytes.
inline bool is_aligned(const void* address, uintptr_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

struct Matrix {
  DeviceRows operand;
  int64_t rows = 0;
  int64_t columns = 0;

  bool contiguous() const { return operand.stride == columns || rows <= 1; }
  int64_t element_bytes() const { return cuda::element_bytes(operand.format); }
};

// Requires f32, bf16 or f16.
ElementFormat format_of(base::DType dtype);

// Requires one of these types, contiguous elements within a row and a constant distance between
// rows, which prepare() has checked (check_strides in operation_checks.h).
Matrix matrix_of(const Buffer& buffer);
// The first element of a contiguous i32, u8 or f32 tensor.
const int32_t* integers_of(const Buffer& buffer);
uint8_t* bytes_of(const Buffer& buffer);
float* floats_of(const Buffer& buffer);

// A walk over matrices with the shape of the first one, row by row. Operands that only have columns
// (a bias, a norm's weight) may be among them.
Walk walk_rows(std::initializer_list<const Matrix*> matrices);
// A walk over matrices, each treated as one row if that is possible for all of them.
Walk walk_flat(std::initializer_list<Matrix*> matrices);

}  // namespace snug::backends::cuda
