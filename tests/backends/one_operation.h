// Matrices with gaps between rows, and one operation of the CPU backend run on them with a
// workspace of exactly the promised bytes, full of NaN, between guards.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/isa.h"
#include "backends/trace.h"
#include "base/error.h"
#include "program/ir/builder.h"

namespace snug::backends::cpu {

using base::DType;
using program::Shape;
using program::TensorId;

inline constexpr double kTolerance[2] = {1e-5, 1e-2};  // fp32, bf16

// Values of a matrix in fp64, exactly those that its element type holds.
using Values = std::vector<double>;

inline CpuBackend& backend() {
  static CpuBackend instance({.threads = 2, .device_memory_bytes = 0});
  return instance;
}

// A matrix with `gap` unused elements after each row, which nobody may touch.
struct Matrix {
  std::vector<std::byte> bytes;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t gap = 0;
  DType dtype = DType::f32;

  int64_t stride() const { return columns + gap; }
  double at(int64_t row, int64_t column) const {
    const std::byte* from = bytes.data() + (row * stride() + column) * base::size_of(dtype);
    if (dtype == DType::f32) {
      float value = 0;
      std::memcpy(&value, from, sizeof value);
      return value;
    }
    base::BFloat16 value;
    std::memcpy(&value, from, sizeof value);
    return base::to_float(value);
  }
  void set(int64_t row, int64_t column, float value) {
    std::byte* to = bytes.data() + (row * stride() + column) * base::size_of(dtype);
    if (dtype == DType::f32) {
      std::memcpy(to, &value, sizeof value);
      return;
    }
    const base::BFloat16 rounded = base::to_bfloat16(value);
    std::memcpy(to, &rounded, sizeof rounded);
  }
  Buffer buffer() {
    Buffer result;
    result.data = bytes.data();
    result.dtype = dtype;
    result.shape = Shape{rows, columns};
    result.strides = {stride(), 1};
    return result;
  }
};

inline Matrix empty_matrix(int64_t rows, int64_t columns, DType dtype, int64_t gap = 0) {
  Matrix matrix{{}, rows, columns, gap, dtype};
  matrix.bytes.assign(static_cast<size_t>(rows * matrix.stride() * base::size_of(dtype)),
                      std::byte{0xff});  // NaN in every type
  return matrix;
}

// One of many normal values that were drawn once: to draw each anew would take longer than to
// multiply them.
inline float next_normal() {
  static std::mt19937 generator(7);
  static const std::vector<float> drawn = [] {
    std::normal_distribution<float> normal;
    std::vector<float> values(size_t{1} << 14);
    for (float& value : values) value = normal(generator);
    return values;
  }();
  return drawn[generator() % drawn.size()];
}

inline Matrix random_matrix(int64_t rows, int64_t columns, DType dtype, int64_t gap = 0) {
  Matrix matrix = empty_matrix(rows, columns, dtype, gap);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) matrix.set(i, j, next_normal());
  return matrix;
}

inline double error_against(const Values& expected, const Matrix& actual) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < actual.rows; ++i)
    for (int64_t j = 0; j < actual.columns; ++j) {
      const double wanted = expected[static_cast<size_t>(i * actual.columns + j)];
      difference += (actual.at(i, j) - wanted) * (actual.at(i, j) - wanted);
      norm += wanted * wanted;
    }
  return std::sqrt(difference) / std::max(std::sqrt(norm), 1e-30);
}

inline bool gaps_untouched(const Matrix& matrix) {
  for (int64_t i = 0; i < matrix.rows; ++i)
    for (int64_t j = 0; j < matrix.gap; ++j)
      if (!std::isnan(matrix.at(i, matrix.columns + j))) return false;
  return true;
}

// Builds a program of one operation around matrices and runs it with a workspace of exactly the
// promised bytes, full of NaN, between guards.
class OneOperation {
 public:
  OneOperation() : builder_("test") {}

  TensorId tensor(const Matrix& matrix) {
    program::Tensor tensor;
    tensor.name = fmt::format("t{}", builder_.program().tensors.size());
    tensor.shape = Shape{matrix.rows, matrix.columns};
    tensor.dtype = matrix.dtype;
    if (matrix.gap == 0) return builder_.add(tensor);
    program::Tensor base = tensor;
    base.name += ".base";
    base.shape = Shape{matrix.rows, matrix.stride()};
    tensor.view = {builder_.add(base), 0, {matrix.stride(), 1}};
    return builder_.add(tensor);
  }
  // The same bytes as that tensor, of two dimensions.
  TensorId same_place(TensorId id) {
    program::Tensor tensor = builder_.program().tensor(id);
    tensor.name += ".again";
    if (!tensor.is_view()) tensor.view = {id, 0, {tensor.shape.columns(), 1}};
    return builder_.add(tensor);
  }
  // Some rows of a tensor that is no view.
  TensorId rows_of(TensorId id, int64_t first, int64_t rows) {
    program::Tensor tensor = builder_.program().tensor(id);
    const int64_t columns = tensor.shape.columns();
    tensor.name = fmt::format("t{}", builder_.program().tensors.size());
    tensor.shape = Shape{rows, columns};
    tensor.view = {id, first * columns, {columns, 1}};
    return builder_.add(tensor);
  }
  TensorId vector(int64_t size, DType dtype) {
    program::Tensor tensor;
    tensor.name = fmt::format("t{}", builder_.program().tensors.size());
    tensor.shape = Shape{size};
    tensor.dtype = dtype;
    return builder_.add(tensor);
  }
  void emit(const program::Attributes& attributes, const std::vector<TensorId>& reads,
            const std::vector<TensorId>& writes, const std::vector<TensorId>& updates) {
    builder_.emit(attributes, reads, writes, updates);
    program_ = builder_.program();
    if (!backend().runs(view())) return;
    program_.operations[0].attributes = backend().decide(view());
    program::Tensor workspace;
    workspace.name = "workspace";
    workspace.role = program::Role::workspace;
    workspace.dtype = DType::u8;
    workspace.shape = Shape{backend().workspace(view()).bytes};
    program_.operations[0].workspace = static_cast<TensorId>(program_.tensors.size());
    program_.tensors.push_back(workspace);
  }
  // One byte less than the backend asked for.
  void shrink_workspace() {
    program::Tensor& workspace = program_.tensors.back();
    workspace.shape = Shape{workspace.shape[0] - 1};
  }
  program::OperationView view() const { return {program_, program_.operations[0]}; }
  program::Attributes& attributes() { return program_.operations[0].attributes; }

  void run(const std::vector<Buffer>& reads, const std::vector<Buffer>& writes,
           const std::vector<Buffer>& updates, Trace* trace = nullptr) {
    ASSERT_TRUE(backend().runs(view()));
    constexpr int64_t kGuard = 256;
    const int64_t bytes = backend().workspace(view()).bytes;
    const auto prepared = backend().prepare(view());
    auto arena = backend().allocate(program::Space::host, bytes + 2 * kGuard);
    std::memset(arena->data(), 0xff, static_cast<size_t>(arena->bytes()));
    Invocation invocation;
    invocation.attributes = &program_.operations[0].attributes;
    invocation.reads = reads;
    invocation.writes = writes;
    invocation.updates = updates;
    invocation.workspace.data = arena->data() + kGuard;
    invocation.workspace.shape = Shape{bytes};
    invocation.workspace.dtype = DType::u8;
    invocation.prepared = prepared.get();
    invocation.trace = trace;
    backend().run(invocation);
    for (int64_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(arena->data()[i], std::byte{0xff}) << "before the workspace";
      ASSERT_EQ(arena->data()[kGuard + bytes + i], std::byte{0xff}) << "after the workspace";
    }
  }

 private:
  program::Builder builder_;
  program::Program program_;
};

// Factor and result types that run on this machine.
inline std::vector<std::pair<DType, DType>> type_pairs() {
  std::vector<std::pair<DType, DType>> pairs{{DType::f32, DType::f32}};
  if (has_bf16_products(detect_isa())) {
    pairs.emplace_back(DType::bf16, DType::bf16);
    pairs.emplace_back(DType::bf16, DType::f32);
  }
  return pairs;
}

}  // namespace snug::backends::cpu
