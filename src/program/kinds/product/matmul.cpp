#include "program/kinds/product/matmul.h"

#include <cmath>

#include "base/error.h"
#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

int64_t inner_size(const Matmul& matmul, const Tensor& a) {
  return a.shape[matmul.transpose_a ? 0 : 1];
}

void require_low_rank(const Matmul& matmul, const OperationView& view, const Shape& c,
                      ShapeRule& rule) {
  const Tensor& low_a = view[Matmul::kLowA];
  rule.rank(Matmul::kLowA, 2);
  rule.rank(Matmul::kLowB, 2);
  const int64_t rank = low_a.shape.columns();
  rule.shape(Matmul::kLowA, Shape{c[0], rank});
  rule.shape(Matmul::kLowB, matmul.low_transpose_b ? Shape{c[1], rank} : Shape{rank, c[1]});
  rule.mixed_types({Matmul::kA, Matmul::kLowA, Matmul::kLowB});
}

// A product with these attributes, for a derivative: each operand as stored or transposed.
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
  rule.require(matmul.products.count == 1 || (matmul.products.count == 2 && matmul.augmented),
               "is made of more products than it has");
  rule.require(matmul.choice.block_rows >= 0, "has a negative block_rows");
  rule.require(matmul.addend || !matmul.dense.addend, "copies an addend that it has not");
  rule.require(matmul.choice.main.sum_step >= 0 && matmul.choice.rest.sum_step >= 0,
               "has a negative sum_step");
  const Tensor& a = view[Matmul::kA];
  const Tensor& b = view[Matmul::kB];
  const Tensor& c = view[Matmul::kC];
  rule.rank(Matmul::kA, 2);
  rule.rank(Matmul::kB, 2);
  const int64_t m = a.shape[matmul.transpose_a ? 1 : 0];
  const int64_t k = inner_size(matmul, a);
  const int64_t n = b.shape[matmul.transpose_b ? 0 : 1];
  rule.shape(Matmul::kB, matmul.transpose_b ? Shape{n, k} : Shape{k, n});
  rule.shape(Matmul::kC, Shape{m, n});
  rule.mixed_types({Matmul::kA, Matmul::kB, Matmul::kC});
  if (matmul.addend) {
    rule.shape(Matmul::kAddend, Shape{m, n});
    rule.mixed_types({Matmul::kA, Matmul::kAddend});
  }
  if (matmul.stochastic) {
    rule.index(Matmul::kRandom, Shape{2});
    rule.type(Matmul::kC, DType::bf16);
  }
  if (matmul.augmented) require_low_rank(matmul, view, c.shape, rule);
  return rule.error();
}

// The f32 sums that steps of the inner dimension read and write again; the last rows have a step
// size of their own.
double bytes_of_steps(const Matmul& matmul, int64_t inner, const Shape& c) {
  const auto bytes_of = [&](int64_t rows, int64_t step) {
    return 2.0 * sizeof(float) * static_cast<double>(rows * c[1] * later_steps(inner, step));
  };
  const int64_t rest = matmul.choice.block_rows > 0 ? c[0] % matmul.choice.block_rows : 0;
  return bytes_of(c[0] - rest, matmul.choice.main.sum_step) +
         bytes_of(rest, matmul.choice.rest.sum_step);
}

// Bytes of copies that remove or restore gaps between rows: each copy reads and writes a tensor.
// Each block of rows reads b again.
double copied_bytes(const Matmul& matmul, const OperationView& view) {
  const auto bytes = [&](const Operand<Matmul>& operand, bool copied) {
    return copied ? 2.0 * static_cast<double>(view[operand].bytes()) : 0.0;
  };
  if (!copies_operands(matmul)) return 0;
  const bool adds_to_c =
      matmul.accumulate ||
      (matmul.addend && view.program.are_same_place(id_of(view.operation, Matmul::kAddend),
                                                    id_of(view.operation, Matmul::kC)));
  const int64_t blocks = 1 + later_steps(view[Matmul::kC].shape[0], matmul.choice.block_rows);
  return bytes(Matmul::kA, matmul.dense.a) +
         static_cast<double>(blocks) * bytes(Matmul::kB, matmul.dense.b) +
         (matmul.addend ? bytes(Matmul::kAddend, matmul.dense.addend) : 0.0) +
         (adds_to_c ? 2 : 1) * bytes(Matmul::kC, matmul.dense.c);
}

Cost cost(const Matmul& matmul, const OperationView& view, const Extent&) {
  const Tensor& c = view[Matmul::kC];
  int64_t k = inner_size(matmul, view[Matmul::kA]);
  if (matmul.augmented) k += view[Matmul::kLowA].shape.columns();
  Cost cost{
      2.0 * static_cast<double>(c.shape.elements()) * static_cast<double>(k),
      operand_bytes(view) + bytes_of_steps(matmul, inner_size(matmul, view[Matmul::kA]), c.shape)};
  if (matmul.products.count > 1) {
    // The low product reads its factors and what is added, and writes c; the other reads c again.
    const double between = static_cast<double>(c.bytes());
    double added = matmul.accumulate ? between : 0;
    if (matmul.addend) added = static_cast<double>(view[Matmul::kAddend].bytes());
    cost.bytes += 2 * between;
    cost.serial_bytes = between + added + static_cast<double>(view[Matmul::kLowA].bytes()) +
                        static_cast<double>(view[Matmul::kLowB].bytes());
    cost.launches = matmul.products.count;
  }
  const double copied = copied_bytes(matmul, view);
  cost.bytes += copied;
  cost.serial_bytes += copied;
  return cost;
}

void differentiate(const Matmul& matmul, const Operation& operation, Tape& tape) {
  SNUG_CHECK(!matmul.accumulate, "a matmul that updates its output has no derivative");
  const TensorId dc = tape.gradient(id_of(operation, Matmul::kC));
  if (dc == kNone) return;
  const auto id = [&](const Operand<Matmul>& operand) { return id_of(operation, operand); };
  // Copied, since the tape grows the program to which the operation may belong.
  const TensorId addend = id(Matmul::kAddend);
  const TensorId low_a = id(Matmul::kLowA);
  const TensorId low_b = id(Matmul::kLowB);
  differentiate_product(matmul, id(Matmul::kA), id(Matmul::kB), dc, tape);
  if (matmul.augmented)
    differentiate_product(product(false, matmul.low_transpose_b, matmul.low_alpha), low_a, low_b,
                          dc, tape);
  if (matmul.addend && tape.wants(addend)) tape.pass_through(addend, dc);
}

RateKey rate_key(const Matmul& matmul, const OperationView& view, const Extent&) {
  const Shape& c = view[Matmul::kC].shape;
  RateKey key{.form = typed_form(view)};
  key.form.transposes = {matmul.transpose_a, matmul.transpose_b};
  key.form.stochastic = matmul.stochastic;
  key.form.algorithm = rated_as(matmul.choice.main.algorithm);
  key.form.copied = copies_operands(matmul);
  key.shape = {rate_size(c[0]), rate_size(c[1]), rate_size(inner_size(matmul, view[Matmul::kA]))};
  key.unit = Work::flops;
  key.multiplies = view[Matmul::kA].dtype;
  return key;
}

}  // namespace

SNUG_DEFINE_KIND(Matmul, .differentiate = differentiate, .rate_key = rate_key);

}  // namespace snug::program
