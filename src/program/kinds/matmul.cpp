#include "program/kinds/matmul.h"

#include <cmath>

#include "base/error.h"
#include "program/kinds/overloads.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"
#include "program/tape.h"

namespace snug::program {
namespace {

int64_t inner_size(const Matmul& matmul, const Tensor& a) {
  return a.shape[matmul.transpose_a ? 0 : 1];
}

void require_low_rank(const Matmul& matmul, const OperationView& view, const Shape& c,
                      ShapeRule& rule) {
  const size_t first = view.operation.reads.size() - 2;
  const Tensor& low_a = view.read(first);
  const Tensor& low_b = view.read(first + 1);
  rule.rank({"low_a", low_a}, 2);
  rule.rank({"low_b", low_b}, 2);
  const int64_t rank = low_a.shape.columns();
  rule.shape({"low_a", low_a}, Shape{c[0], rank});
  rule.shape({"low_b", low_b}, matmul.low_transpose_b ? Shape{c[1], rank} : Shape{rank, c[1]});
  rule.mixed_types({{"a", view.read(0)}, {"low_a", low_a}, {"low_b", low_b}});
}

// The product that has this derivative: operands in their order, each as stored or transposed.
Matmul product(bool transpose_a, bool transpose_b, float alpha) {
  Matmul matmul;
  matmul.transpose_a = transpose_a;
  matmul.transpose_b = transpose_b;
  matmul.alpha = alpha;
  return matmul;
}

// With c = alpha a b: da = alpha dc b^T and db = alpha a^T dc. A transposed operand is stored as
// its transpose, so its gradient is written transposed too, with the factors swapped.
void differentiate_product(const Matmul& matmul, TensorId a, TensorId b, TensorId dc, Tape& tape) {
  const bool ta = matmul.transpose_a;
  const bool tb = matmul.transpose_b;
  if (tape.wants(a)) {
    const TensorId da = tape.contribute(a);
    if (ta)
      tape.emit(product(tb, true, matmul.alpha), {b, dc}, {da});
    else
      tape.emit(product(false, !tb, matmul.alpha), {dc, b}, {da});
  }
  if (tape.wants(b)) {
    const TensorId db = tape.contribute(b);
    if (tb)
      tape.emit(product(true, ta, matmul.alpha), {dc, a}, {db});
    else
      tape.emit(product(!ta, false, matmul.alpha), {a, dc}, {db});
  }
}

}  // namespace

std::string shape_error(const Matmul& matmul, const OperationView& view) {
  ShapeRule rule(view);
  rule.require(!(matmul.addend && matmul.accumulate),
               "has both addend and accumulate; the updated output is the addend");
  rule.require(!matmul.stochastic || matmul.accumulate,
               "is stochastic without accumulate; only updates round stochastically");
  rule.require(std::isfinite(matmul.alpha), "has an alpha that is not finite");
  rule.require(std::isfinite(matmul.low_alpha), "has a low_alpha that is not finite");
  rule.require(!(matmul.augmented && matmul.stochastic),
               "is augmented and stochastic; only gradients of weights round stochastically");
  const size_t reads = size_t{2} + (matmul.addend ? 1 : 0) + (matmul.stochastic ? 1 : 0) +
                       (matmul.augmented ? 2 : 0);
  if (!rule.counts(reads, matmul.accumulate ? 0 : 1, matmul.accumulate ? 1 : 0))
    return rule.error();
  const Tensor& a = view.read(0);
  const Tensor& b = view.read(1);
  const Tensor& c = matmul.accumulate ? view.update(0) : view.write(0);
  rule.rank({"a", a}, 2);
  rule.rank({"b", b}, 2);
  const int64_t m = a.shape[matmul.transpose_a ? 1 : 0];
  const int64_t k = inner_size(matmul, a);
  const int64_t n = b.shape[matmul.transpose_b ? 0 : 1];
  rule.shape({"b", b}, matmul.transpose_b ? Shape{n, k} : Shape{k, n});
  rule.shape({"c", c}, Shape{m, n});
  rule.mixed_types({{"a", a}, {"b", b}, {"c", c}});
  if (matmul.addend) {
    rule.shape({"addend", view.read(2)}, Shape{m, n});
    rule.mixed_types({{"a", a}, {"addend", view.read(2)}});
  }
  if (matmul.stochastic) {
    rule.index({"random", view.read(2)}, Shape{2});
    rule.type({"c", c}, DType::bf16);
  }
  if (matmul.augmented) require_low_rank(matmul, view, c.shape, rule);
  return rule.error();
}

Cost cost(const Matmul& matmul, const OperationView& view, const Load&) {
  const Tensor& c = matmul.accumulate ? view.update(0) : view.write(0);
  int64_t k = inner_size(matmul, view.read(0));
  if (matmul.augmented) k += view.read(view.operation.reads.size() - 2).shape.columns();
  return {2.0 * static_cast<double>(c.shape.elements()) * static_cast<double>(k),
          operand_bytes(view)};
}

void differentiate(const Matmul& matmul, const Operation& operation, Tape& tape) {
  SNUG_CHECK(!matmul.accumulate, "a matmul that updates its output has no derivative");
  const TensorId dc = tape.gradient(operation.writes[0]);
  if (dc == kNone) return;
  const auto& reads = operation.reads;
  differentiate_product(matmul, reads[0], reads[1], dc, tape);
  if (matmul.augmented)
    differentiate_product(product(false, matmul.low_transpose_b, matmul.low_alpha),
                          reads[reads.size() - 2], reads[reads.size() - 1], dc, tape);
  if (matmul.addend && tape.wants(operation.reads[2])) tape.pass_through(operation.reads[2], dc);
}

InPlacePairs in_place_pairs(const Matmul& matmul) {
  if (matmul.addend) return {{0, 2}};
  return {};
}

}  // namespace snug::program
