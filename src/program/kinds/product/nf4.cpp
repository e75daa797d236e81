#include "program/kinds/product/nf4.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/ir/builder.h"
#include "program/kinds/functions.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4_operands.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

std::string shape_error(const DequantizeNf4& dequantize, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& w = view[DequantizeNf4::kW];
  rule.rank(DequantizeNf4::kW, 2);
  rule.mixed_types({DequantizeNf4::kW});
  check_stored_weight(rule, dequantize, w.shape.elements());
  return rule.error();
}

std::string shape_error(const MatmulNf4& matmul, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& x = view[MatmulNf4::kX];
  const Tensor& y = view[MatmulNf4::kY];
  rule.rank(MatmulNf4::kX, 2);
  rule.rank(MatmulNf4::kY, 2);
  rule.shape(MatmulNf4::kY, Shape{x.shape[0], y.shape.columns()});
  rule.mixed_types({MatmulNf4::kX, MatmulNf4::kY});
  if (matmul.addend) {
    rule.shape(MatmulNf4::kAddend, y.shape);
    rule.mixed_types({MatmulNf4::kX, MatmulNf4::kAddend});
  }
  check_stored_weight(rule, matmul, x.shape.columns() * y.shape.columns());
  return rule.error();
}

// One product per element; block scales count only as bytes.
Cost cost(const DequantizeNf4&, const OperationView& view, const Extent&) {
  return streaming_cost(view, view[DequantizeNf4::kW].shape.elements(), 1);
}

Cost cost(const MatmulNf4&, const OperationView& view, const Extent&) {
  const auto k = static_cast<double>(view[MatmulNf4::kX].shape.columns());
  return {2.0 * static_cast<double>(view[MatmulNf4::kY].shape.elements()) * k, operand_bytes(view)};
}

void expand(const MatmulNf4& matmul, const OperationView& view, Builder& builder) {
  const Tensor& x = view[MatmulNf4::kX];
  const Tensor& codes = view[MatmulNf4::kCodes];
  const TensorId w =
      builder.activation(fmt::format("{}.values.{}", codes.name, builder.program().tensors.size()),
                         {view[MatmulNf4::kY].shape.columns(), x.shape.columns()}, x.dtype);
  const TensorId product = id_of(view.operation, MatmulNf4::kY);
  const TensorId factor = id_of(view.operation, MatmulNf4::kX);
  std::vector<TensorId> stored;
  for (const auto& operand : {MatmulNf4::kCodes, MatmulNf4::kAbsmax, MatmulNf4::kNestedAbsmax,
                              MatmulNf4::kNestedMap, MatmulNf4::kNestedOffset})
    if (const TensorId id = find_operand(view.operation, operand.name); id != kNone)
      stored.push_back(id);
  builder.emit(DequantizeNf4{matmul.nested}, std::move(stored), {w});
  std::vector<TensorId> reads{factor, w};
  if (matmul.addend) reads.push_back(id_of(view.operation, MatmulNf4::kAddend));
  builder.emit(Matmul{.transpose_b = true, .addend = matmul.addend}, std::move(reads), {product});
}

// Bound by reading the codes.
RateKey rate_key(const MatmulNf4& matmul, const OperationView& view, const Extent& extent) {
  RateKey key = key_of_bytes(view, cost(matmul, view, extent));
  key.form.algorithm = rated_as(matmul.algorithm);
  return key;
}

}  // namespace

SNUG_DEFINE_KIND(DequantizeNf4);
SNUG_DEFINE_KIND(MatmulNf4, .expand = expand, .rate_key = rate_key);

}  // namespace snug::program
