#include "program/kinds/traffic.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace snug::program {

namespace {

double bytes_of_each(const Program& program, std::vector<TensorId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  double bytes = 0;
  for (const TensorId id : ids) bytes += static_cast<double>(program.tensor(id).bytes());
  return bytes;
}

}  // namespace

double operand_bytes(const OperationView& view) {
  const Operation& operation = view.operation;
  std::vector<TensorId> once = operation.reads;
  once.insert(once.end(), operation.writes.begin(), operation.writes.end());
  return bytes_of_each(view.program, std::move(once)) +
         2.0 * bytes_of_each(view.program, operation.updates);
}

double row_bytes(const Tensor& matrix, double rows) {
  const double row =
      static_cast<double>(matrix.shape.columns()) * static_cast<double>(size_of(matrix.dtype));
  return std::min(rows, static_cast<double>(matrix.shape.rows())) * row;
}

Cost streaming_cost(const OperationView& view, int64_t elements, double flops_per_element) {
  return {static_cast<double>(elements) * flops_per_element, operand_bytes(view)};
}

}  // namespace snug::program
