// How kinds of the CUDA backend see the float tensors of an operation: rows of contiguous elements,
// and what of them kernels may walk as one row and in vectors. Host code, no device needed.
#pragma once

#include <initializer_list>

#include "backends/cuda/kernels/device_rows.h"
#include "backends/invocation.h"

namespace snug::backends::cuda {

// Whether kernels may read it so many bytes at a time.
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

// Requires such a type, elements of a row side by side and rows at one distance, as prepare() has
// found them (check_strides in operation_checks.h).
Matrix matrix_of(const Buffer& buffer);
// The first element of an i32, u8 or f32 tensor whose elements lie side by side.
const int32_t* integers_of(const Buffer& buffer);
uint8_t* bytes_of(const Buffer& buffer);
float* floats_of(const Buffer& buffer);

// The walk over matrices of one shape, row by row: matrix 0 says which. Operands that only have
// columns (a bias, a norm's weight) may stand among them.
Walk walk_rows(std::initializer_list<const Matrix*> matrices);
// A walk over matrices that are seen as one row each where all can be.
Walk walk_flat(std::initializer_list<Matrix*> matrices);

}  // namespace snug::backends::cuda
