#include "runtime/storage/file_shape.h"

namespace snug::runtime {

std::vector<int64_t> dims_of(const program::Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(program::Shape::kMaxRank);
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return dims;
}

}  // namespace snug::runtime
