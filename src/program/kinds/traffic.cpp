#include "program/kinds/traffic.h"

#include <algorithm>
#include <vector>

namespace snug::program {

double operand_bytes(const OperationView& view) {
  const Operation& operation = view.operation;
  std::vector<TensorId> ids = operation.reads;
  ids.insert(ids.end(), operation.writes.begin(), operation.writes.end());
  ids.insert(ids.end(), operation.updates.begin(), operation.updates.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  double bytes = 0;
  for (const TensorId id : ids) bytes += static_cast<double>(view.program.tensor(id).bytes());
  return bytes;
}

double row_bytes(const Tensor& matrix, double rows) {
  const double row =
      static_cast<double>(matrix.shape.columns()) * static_cast<double>(size_of(matrix.dtype));
  return std::min(rows, static_cast<double>(matrix.shape.rows())) * row;
}

Cost streaming_cost(const OperationView& view, int64_t elements, double flops_an_element) {
  return {static_cast<double>(elements) * flops_an_element, operand_bytes(view)};
}

}  // namespace snug::program
