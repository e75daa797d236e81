#include "program/kinds/product/embedding.h"

#include <algorithm>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// The number of elements that a table has for each id.
template <typename Struct>
int64_t width_of(const Struct& kind, const Tensor& table) {
  return kind.transposed ? table.shape.rows() : table.shape.columns();
}

// The rank that a table must have. A transposed table may be a list (vocab) too, whose rows are one
// element.
template <typename Struct>
int table_rank(const Struct& kind, const Tensor& table) {
  const int rank = table.shape.rank();
  return kind.transposed && (rank == 1 || rank == 3) ? rank : 2;
}

std::string shape_error(const Embedding& embedding, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& table = view[Embedding::kTable];
  const Tensor& ids = view[Embedding::kIds];
  rule.rank(Embedding::kTable, table_rank(embedding, table));
  rule.rank(Embedding::kIds, 1);
  rule.index(Embedding::kIds, Shape{ids.shape[0]});
  rule.shape(Embedding::kY, Shape{ids.shape[0], width_of(embedding, table)});
  rule.mixed_types({Embedding::kTable, Embedding::kY});
  return rule.error();
}

std::string shape_error(const EmbeddingGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& dy = view[EmbeddingGrad::kDY];
  const Tensor& dtable = view[EmbeddingGrad::kDTable];
  rule.rank(EmbeddingGrad::kDY, 2);
  rule.index(EmbeddingGrad::kIds, Shape{dy.shape[0]});
  rule.rank(EmbeddingGrad::kDTable, table_rank(grad, dtable));
  rule.require(dtable.shape.rank() != table_rank(grad, dtable) ||
                   width_of(grad, dtable) == dy.shape.columns(),
               "has a table whose rows are not as wide as dy");
  rule.mixed_types({EmbeddingGrad::kDY, EmbeddingGrad::kDTable});
  return rule.error();
}

// The bytes of a table that are accessed: the elements of one id for each token. In a transposed
// table these elements are not contiguous, so each costs a whole cache line.
template <typename Struct>
double touched_bytes(const Struct& kind, const Tensor& table, int64_t tokens) {
  constexpr double kLine = 64;
  if (!kind.transposed) return row_bytes(table, static_cast<double>(tokens));
  const double lines = static_cast<double>(tokens * width_of(kind, table)) * kLine;
  return std::min(lines, static_cast<double>(table.bytes()));
}

Cost cost(const Embedding& embedding, const OperationView& view, const Extent&) {
  const Tensor& ids = view[Embedding::kIds];
  const double touched = touched_bytes(embedding, view[Embedding::kTable], ids.shape[0]);
  return {0, touched + static_cast<double>(ids.bytes() + view[Embedding::kY].bytes())};
}

// A new gradient is zeroed as a whole; one that accumulates is read and written only at the ids'
// rows.
Cost cost(const EmbeddingGrad& grad, const OperationView& view, const Extent&) {
  const Tensor& dy = view[EmbeddingGrad::kDY];
  const auto flops = static_cast<double>(dy.shape.elements());
  if (!grad.accumulate) return {flops, operand_bytes(view)};
  const double touched = touched_bytes(grad, view[EmbeddingGrad::kDTable], dy.shape[0]);
  return {flops,
          2.0 * touched + static_cast<double>(dy.bytes() + view[EmbeddingGrad::kIds].bytes())};
}

void differentiate(const Embedding& embedding, const Operation& operation, Tape& tape) {
  const TensorId dy = tape.gradient(id_of(operation, Embedding::kY));
  const TensorId table = id_of(operation, Embedding::kTable);
  if (dy == kNone || !tape.wants(table)) return;
  tape.emit(EmbeddingGrad{.transposed = embedding.transposed},
            {dy, id_of(operation, Embedding::kIds)}, {tape.contribute(table)});
}

}  // namespace

SNUG_DEFINE_KIND(Embedding, .differentiate = differentiate);
SNUG_DEFINE_KIND(EmbeddingGrad);

}  // namespace snug::program
