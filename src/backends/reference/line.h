// Sums of products along rows and columns of tensors, as the reference computes them: one product
// after another, with the values that Floats::at() reads (elements.h). The stored type is looked up
// only once per sum, since that lookup would otherwise take most of a product's time.
#pragma once

#include <span>

#include "backends/reference/elements.h"

namespace snug::backends::reference {

// Elements of a float tensor that are `step` stored elements apart.
struct Line {
  const std::byte* first = nullptr;
  int64_t step = 0;
  base::DType dtype = base::DType::f32;
};

// Element (row, column) of a float tensor and those after it in its row.
inline Line line_across(const Buffer& buffer, int64_t row, int64_t column) {
  const int rank = buffer.shape.rank();
  const int64_t step = rank == 0 ? 0 : buffer.strides[static_cast<size_t>(rank - 1)];
  const int64_t offset = offset_of(buffer, row, column);
  return {buffer.data + offset * base::size_of(buffer.dtype), step, buffer.dtype};
}

// Element (row, column) of a float tensor and those below it in its column. Requires a constant
// distance between rows over all leading dimensions.
inline Line line_down(const Buffer& buffer, int64_t row, int64_t column) {
  const int rank = buffer.shape.rank();
  for (int axis = 0; axis + 2 < rank; ++axis)
    SNUG_CHECK_EQ(buffer.strides[static_cast<size_t>(axis)],
                  buffer.shape[axis + 1] * buffer.strides[static_cast<size_t>(axis + 1)]);
  const int64_t step = rank < 2 ? 0 : buffer.strides[static_cast<size_t>(rank - 2)];
  const int64_t offset = offset_of(buffer, row, column);
  return {buffer.data + offset * base::size_of(buffer.dtype), step, buffer.dtype};
}

inline float plain(float value) { return value; }
inline double plain(double value) { return value; }
inline float plain(base::BFloat16 value) { return base::to_float(value); }
inline float plain(base::Float16 value) { return base::to_float(value); }

// Calls `use` with the address of the line's first element, as a pointer to the stored type.
template <typename F>
auto with_stored(const Line& line, F&& use) {
  switch (line.dtype) {
    case base::DType::f64:
      return use(reinterpret_cast<const double*>(line.first));
    case base::DType::f32:
      return use(reinterpret_cast<const float*>(line.first));
    case base::DType::bf16:
      return use(reinterpret_cast<const base::BFloat16*>(line.first));
    default:
      return use(reinterpret_cast<const base::Float16*>(line.first));
  }
}

// `sum` plus the products of the first `count` elements of both lines, added one after another.
template <typename T>
T add_products(T sum, const Line& a, const Line& b, int64_t count) {
  return with_stored(a, [&](const auto* left) {
    return with_stored(b, [&](const auto* right) {
      for (int64_t i = 0; i < count; ++i)
        sum += static_cast<T>(plain(left[i * a.step])) * static_cast<T>(plain(right[i * b.step]));
      return sum;
    });
  });
}

// Adds `factor` times the line's elements to the sums, one element per sum.
template <typename T>
void add_multiple(std::span<T> sums, T factor, const Line& x) {
  with_stored(x, [&](const auto* elements) {
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += factor * static_cast<T>(plain(elements[static_cast<int64_t>(i) * x.step]));
  });
}

}  // namespace snug::backends::reference
