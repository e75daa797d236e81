#include "program/ir/tensor.h"

#include <fmt/format.h>

#include "base/error.h"

namespace snug::program {
Shape::Shape(std::initializer_list<int64_t> dims) {
  for (const int64_t dim : dims) append(dim);
}

void Shape::append(int64_t dim) {
  SNUG_CHECK(rank_ < kMaxRank, "a tensor has at most {} dimensions", kMaxRank);
  SNUG_CHECK(dim >= 0, "a dimension of {}", dim);
  dims_[static_cast<size_t>(rank_++)] = dim;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

int64_t Shape::rows() const {
  int64_t product = 1;
  for (int axis = 0; axis + 1 < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::array<int64_t, Shape::kMaxRank> dense_strides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int axis = 0; axis < shape.rank(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  return text + ")";
}

}  // namespace snug::program
