#include "program/kinds/embedding.h"

#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

std::string shape_error(const Embedding&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& table = view[Embedding::kTable];
  const Tensor& ids = view[Embedding::kIds];
  rule.rank({"table", table}, 2);
  rule.rank({"ids", ids}, 1);
  rule.index({"ids", ids}, Shape{ids.shape[0]});
  rule.shape({"y", view[Embedding::kY]}, Shape{ids.shape[0], table.shape[1]});
  rule.mixed_types({{"table", table}, {"y", view[Embedding::kY]}});
  return rule.error();
}

std::string shape_error(const EmbeddingGrad&, const OperationView& view) {
  ShapeRule rule;
  const Tensor& dy = view[EmbeddingGrad::kDY];
  const Tensor& dtable = view[EmbeddingGrad::kDTable];
  rule.rank({"dy", dy}, 2);
  rule.index({"ids", view[EmbeddingGrad::kIds]}, Shape{dy.shape[0]});
  rule.rank({"dtable", dtable}, 2);
  rule.shape({"dtable", dtable}, Shape{dtable.shape[0], dy.shape[1]});
  rule.mixed_types({{"dy", dy}, {"dtable", dtable}});
  return rule.error();
}

// Of the table only the rows that ids point to are read: at most one a token.
Cost cost(const Embedding&, const OperationView& view, const Extent&) {
  const Tensor& table = view[Embedding::kTable];
  const Tensor& ids = view[Embedding::kIds];
  const double touched = row_bytes(table, static_cast<double>(ids.shape[0]));
  return {0, touched + static_cast<double>(ids.bytes() + view[Embedding::kY].bytes())};
}

// A fresh table is zeroed whole; one that is added to is read and written only where ids point.
Cost cost(const EmbeddingGrad& grad, const OperationView& view, const Extent&) {
  const Tensor& dy = view[EmbeddingGrad::kDY];
  const auto flops = static_cast<double>(dy.shape.elements());
  if (!grad.accumulate) return {flops, operand_bytes(view)};
  const double touched = row_bytes(view[EmbeddingGrad::kDTable], static_cast<double>(dy.shape[0]));
  return {flops,
          2.0 * touched + static_cast<double>(dy.bytes() + view[EmbeddingGrad::kIds].bytes())};
}

void differentiate(const Embedding&, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Embedding::kY));
  const TensorId table = id_of(operation, Embedding::kTable);
  if (dy == kNone || !tape.wants(table)) return;
  tape.emit(EmbeddingGrad{}, {dy, id_of(operation, Embedding::kIds)}, {tape.contribute(table)});
}

}  // namespace

SNUG_DEFINE_KIND(Embedding, .differentiate = differentiate);
SNUG_DEFINE_KIND(EmbeddingGrad);

}  // namespace snug::program
