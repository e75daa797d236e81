#include "runtime/storage/check_finite.h"

#include "base/error.h"
#include "base/finite.h"
#include "formats/quantization/nf4.h"
#include "runtime/loading/read_transposed.h"

namespace snug::runtime {
namespace {

using formats::IndexedTensor;
using formats::TensorIndex;

// The position in the file of an element of the tensor or of its transpose.
std::string position_in(const IndexedTensor& source, int64_t element, bool transposed) {
  return position_text(source.info->shape,
                       transposed ? element_in_file(*source.info, element) : element);
}

[[noreturn]] void fail_rounded(const TensorIndex& index, const IndexedTensor& source,
                               int64_t element, bool transposed) {
  base::throw_user_error(
      "{}: tensor '{}' holds a number at {} which is infinite when it is rounded to what this job "
      "computes with. Use compute_dtype=fp32, or weights as the model was trained with them",
      index.path_of(source).string(), source.info->name, position_in(source, element, transposed));
}

}  // namespace

std::string position_text(const std::vector<int64_t>& shape, int64_t element) {
  std::vector<int64_t> position(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return formats::shape_text(position);
}

void check_finite(const TensorIndex& index, const IndexedTensor& source, const Values& values) {
  const auto found = base::first_not_finite(values.dtype, values.data, values.elements);
  if (!found) return;
  base::throw_user_error(
      "{}: tensor '{}' holds an infinity or NaN at {}, with which nothing can be computed. Is the "
      "file whole (download or copy it again), and was the model trained to the end? Else take an "
      "earlier state of it",
      index.path_of(source).string(), source.info->name,
      position_in(source, values.first + *found, values.transposed));
}

void check_rounded(const TensorIndex& index, const IndexedTensor& source, const Values& values) {
  const auto found = base::first_not_finite(values.dtype, values.data, values.elements);
  if (found) fail_rounded(index, source, values.first + *found, values.transposed);
}

void check_rounded_blocks(const TensorIndex& index, const IndexedTensor& source,
                          int64_t first_block, std::span<const float> absmax, bool transposed) {
  const auto found = base::first_not_finite(base::DType::f32, absmax.data(), std::ssize(absmax));
  if (found)
    fail_rounded(index, source, (first_block + *found) * formats::kNf4BlockSize, transposed);
}

}  // namespace snug::runtime
