// How the reference reads and writes tensors: element by element, whatever the stored type and
// strides, converted to the type that it computes in (float, or double when a tensor is f64). Slow
// on purpose: everything is too simple to be wrong.
#pragma once

#include <type_traits>

#include "backends/formulas/random_bits.h"
#include "backends/invocation.h"
#include "base/error.h"

namespace snug::backends::reference {

// The offset in elements of row `row` (over all leading dimensions) and column `column`.
inline int64_t offset_of(const Buffer& buffer, int64_t row, int64_t column) {
  const int rank = buffer.shape.rank();
  if (rank == 0) return 0;
  if (rank == 1) return column * buffer.strides[0];
  if (rank == 2) return row * buffer.strides[0] + column * buffer.strides[1];
  int64_t offset = column * buffer.strides[static_cast<size_t>(rank - 1)];
  for (int axis = rank - 2; axis >= 0; --axis) {
    offset += row % buffer.shape[axis] * buffer.strides[static_cast<size_t>(axis)];
    row /= buffer.shape[axis];
  }
  return offset;
}

// A float tensor seen as rows x columns, where columns are its last dimension.
template <typename T>
class Floats {
 public:
  explicit Floats(const Buffer& buffer) : buffer_(buffer) {
    SNUG_CHECK(base::is_float(buffer.dtype), "a float tensor is {}", base::name_of(buffer.dtype));
  }

  int64_t rows() const { return buffer_.shape.rows(); }
  int64_t columns() const { return buffer_.shape.columns(); }
  int64_t count() const { return buffer_.elements(); }
  base::DType dtype() const { return buffer_.dtype; }
  const Buffer& buffer() const { return buffer_; }

  T at(int64_t row, int64_t column) const {
    const int64_t offset = offset_of(buffer_, row, column);
    switch (buffer_.dtype) {
      case base::DType::f64:
        return static_cast<T>(buffer_.as<const double>()[offset]);
      case base::DType::f32:
        return static_cast<T>(buffer_.as<const float>()[offset]);
      case base::DType::bf16:
        return static_cast<T>(base::to_float(buffer_.as<const base::BFloat16>()[offset]));
      default:
        return static_cast<T>(base::to_float(buffer_.as<const base::Float16>()[offset]));
    }
  }

  void set(int64_t row, int64_t column, T value) const {
    const int64_t offset = offset_of(buffer_, row, column);
    switch (buffer_.dtype) {
      case base::DType::f64:
        buffer_.as<double>()[offset] = static_cast<double>(value);
        return;
      case base::DType::f32:
        buffer_.as<float>()[offset] = static_cast<float>(value);
        return;
      case base::DType::bf16:
        buffer_.as<base::BFloat16>()[offset] = base::to_bfloat16(static_cast<float>(value));
        return;
      default:
        buffer_.as<base::Float16>()[offset] = base::to_float16(static_cast<float>(value));
    }
  }

  // The element with this row-major index.
  T operator[](int64_t index) const { return at(index / columns(), index % columns()); }
  void set(int64_t index, T value) const { set(index / columns(), index % columns(), value); }

  // Writes a bf16 that is rounded stochastically with these 16 bits; other types are written like
  // set().
  void set_rounded(int64_t index, T value, uint32_t bits) const {
    if (buffer_.dtype != base::DType::bf16) return set(index, value);
    const int64_t offset = offset_of(buffer_, index / columns(), index % columns());
    buffer_.as<base::BFloat16>()[offset] = round_stochastically(static_cast<float>(value), bits);
  }

 private:
  const Buffer& buffer_;
};

// An i32 tensor with access by row-major index.
class Integers {
 public:
  explicit Integers(const Buffer& buffer) : buffer_(buffer) {
    SNUG_CHECK(buffer.dtype == base::DType::i32, "an integer tensor is {}",
               base::name_of(buffer.dtype));
  }
  int64_t count() const { return buffer_.elements(); }
  int32_t operator[](int64_t index) const {
    const int64_t columns = buffer_.shape.columns();
    return buffer_.as<const int32_t>()[offset_of(buffer_, index / columns, index % columns)];
  }

 private:
  const Buffer& buffer_;
};

// The operation's scratch, in the type that it computes in.
template <typename T>
std::span<T> scratch(const Invocation& invocation) {
  const Buffer& buffer = invocation.workspace;
  SNUG_CHECK(buffer.data != nullptr, "an operation that needs scratch got no workspace");
  return {buffer.as<T>(), static_cast<size_t>(buffer.bytes()) / sizeof(T)};
}

// A contiguous (rows, columns) tensor in scratch memory.
template <typename T>
Buffer scratch_buffer(std::span<T> memory, int64_t rows, int64_t columns) {
  SNUG_CHECK(static_cast<int64_t>(memory.size()) >= rows * columns,
             "scratch of {} elements for {} x {}", memory.size(), rows, columns);
  Buffer buffer;
  buffer.data = reinterpret_cast<std::byte*>(memory.data());
  buffer.dtype = std::is_same_v<T, double> ? base::DType::f64 : base::DType::f32;
  buffer.shape = {rows, columns};
  buffer.strides = {columns, 1, 0, 0};
  return buffer;
}

}  // namespace snug::backends::reference
