#include "program/kinds/nf4.h"

#include <fmt/format.h>

#include "program/builder.h"
#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// The operands of a weight of so many elements, from `first` in the operation's reads.
void stored_weight(ShapeRule& rule, const OperationView& view, size_t first, bool nested,
                   int64_t elements) {
  const Tensor& codes = view.read(first);
  const Tensor& absmax = view.read(first + 1);
  rule.type({"codes", codes}, DType::u8);
  rule.shape({"codes", codes}, Shape{nf4_code_bytes(elements), 1});
  if (!nested) return rule.measure({"absmax", absmax}, Shape{nf4_blocks(elements)});
  rule.type({"absmax", absmax}, DType::u8);
  rule.shape({"absmax", absmax}, Shape{nf4_blocks(elements)});
  rule.measure({"nested_absmax", view.read(first + 2)}, Shape{nf4_nested_blocks(elements)});
  rule.measure({"nested_map", view.read(first + 3)}, Shape{kNf4MapSize});
  rule.measure({"nested_offset", view.read(first + 4)}, Shape{1});
}

}  // namespace

std::string shape_error(const DequantizeNf4& dequantize, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(nf4_operands(dequantize.nested), 1)) return rule.error();
  const Tensor& w = view.write(0);
  rule.rank({"w", w}, 2);
  rule.mixed_types({{"w", w}});
  stored_weight(rule, view, 0, dequantize.nested, w.shape.elements());
  return rule.error();
}

std::string shape_error(const MatmulNf4& matmul, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(1 + nf4_operands(matmul.nested), 1)) return rule.error();
  const Tensor& x = view.read(0);
  const Tensor& y = view.write(0);
  rule.rank({"x", x}, 2);
  rule.rank({"y", y}, 2);
  rule.shape({"y", y}, Shape{x.shape[0], y.shape.columns()});
  rule.mixed_types({{"x", x}, {"y", y}});
  stored_weight(rule, view, 1, matmul.nested, x.shape.columns() * y.shape.columns());
  return rule.error();
}

// One product an element; what scales a block is counted in the bytes.
Cost cost(const DequantizeNf4&, const OperationView& view, const Load&) {
  return streaming_cost(view, view.write(0).shape.elements(), 1);
}

Cost cost(const MatmulNf4&, const OperationView& view, const Load&) {
  const auto k = static_cast<double>(view.read(0).shape.columns());
  return {2.0 * static_cast<double>(view.write(0).shape.elements()) * k, operand_bytes(view)};
}

void expand(const MatmulNf4& matmul, const OperationView& view, Builder& builder) {
  const Tensor& x = view.read(0);
  const Tensor& codes = view.read(1);
  const TensorId w =
      builder.activation(fmt::format("{}.values.{}", codes.name, builder.program().tensors.size()),
                         {view.write(0).shape.columns(), x.shape.columns()}, x.dtype);
  const std::vector<TensorId>& reads = view.operation.reads;
  builder.emit(DequantizeNf4{matmul.nested}, {reads.begin() + 1, reads.end()}, {w});
  builder.emit(Matmul{.transpose_b = true}, {reads[0], w}, {view.operation.writes[0]});
}

}  // namespace snug::program
