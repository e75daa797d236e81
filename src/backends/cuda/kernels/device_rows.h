// A float tensor as kernels see it, filled in by the host: rows of contiguous elements, `stride`
// elements apart, in one of three formats. Plain data, passed to kernels by value.
#pragma once

#include <cstdint>

namespace snug::backends::cuda {

// f16 is IEEE half precision.
enum class ElementFormat : uint8_t { f32, bf16, f16 };
constexpr bool is_narrow(ElementFormat format) { return format != ElementFormat::f32; }
constexpr int64_t element_bytes(ElementFormat format) { return is_narrow(format) ? 2 : 4; }

struct DeviceRows {
  void* data = nullptr;
  int64_t stride = 0;  // elements from one row to the next
  ElementFormat format = ElementFormat::f32;
};

// Elements that a thread reads at once where addresses are aligned for it.
inline constexpr int32_t kVectorElements = 8;

// The elements that a kernel goes through: rows x columns of several operands of one shape.
// `vectors`: every operand can be read kVectorElements at a time.
struct Walk {
  int64_t rows = 0;
  int64_t columns = 0;
  bool vectors = false;
};

}  // namespace snug::backends::cuda
