#include "program/kinds/embedding.h"

#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {

std::string shape_error(const Embedding&, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(2, 1)) return rule.error();
  const Tensor& table = view.read(0);
  const Tensor& ids = view.read(1);
  rule.rank({"table", table}, 2);
  rule.rank({"ids", ids}, 1);
  rule.index({"ids", ids}, Shape{ids.shape[0]});
  rule.shape({"y", view.write(0)}, Shape{ids.shape[0], table.shape[1]});
  rule.mixed_types({{"table", table}, {"y", view.write(0)}});
  return rule.error();
}

std::string shape_error(const EmbeddingGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  if (!rule.counts(2, grad.accumulate ? 0 : 1, grad.accumulate ? 1 : 0)) return rule.error();
  const Tensor& dy = view.read(0);
  const Tensor& dtable = grad.accumulate ? view.update(0) : view.write(0);
  rule.rank({"dy", dy}, 2);
  rule.index({"ids", view.read(1)}, Shape{dy.shape[0]});
  rule.rank({"dtable", dtable}, 2);
  rule.shape({"dtable", dtable}, Shape{dtable.shape[0], dy.shape[1]});
  rule.mixed_types({{"dy", dy}, {"dtable", dtable}});
  return rule.error();
}

// Of the table only the rows that ids point to are read: at most one a token.
Cost cost(const Embedding&, const OperationView& view, const Load&) {
  const Tensor& table = view.read(0);
  const Tensor& ids = view.read(1);
  const double touched = row_bytes(table, static_cast<double>(ids.shape[0]));
  return {0, touched + static_cast<double>(ids.bytes() + view.write(0).bytes())};
}

// A fresh table is zeroed whole; one that is added to is touched only where ids point.
Cost cost(const EmbeddingGrad& grad, const OperationView& view, const Load&) {
  const Tensor& dy = view.read(0);
  const auto flops = static_cast<double>(dy.shape.elements());
  if (!grad.accumulate) return {flops, operand_bytes(view)};
  const double touched = row_bytes(view.update(0), static_cast<double>(dy.shape[0]));
  return {flops, touched + static_cast<double>(dy.bytes() + view.read(1).bytes())};
}

void differentiate(const Embedding&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(operation.writes[0]);
  const TensorId table = operation.reads[0];
  if (dy == kNone || !tape.wants(table)) return;
  tape.emit(EmbeddingGrad{}, {dy, operation.reads[1]}, {tape.contribute(table)});
}

}  // namespace snug::program
