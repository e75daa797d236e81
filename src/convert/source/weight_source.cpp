#include "convert/source/weight_source.h"

namespace snug::convert {

int64_t SourceTensor::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t SourceTensor::rows() const { return shape.empty() ? 1 : shape.front(); }

int64_t SourceTensor::row_elements() const {
  int64_t count = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

}  // namespace snug::convert
