#include "program/kinds/product/grouped_matmul.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "program/ir/tape.h"
#include "program/kinds/functions.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4_operands.h"
#include "program/kinds/rate_names.h"
#include "program/kinds/shape_rule.h"
#include "program/kinds/traffic.h"

namespace snug::program {
namespace {

// The size of an axis; 0 if the tensor does not have it, which the rule refuses by its rank.
int64_t size_of(const Tensor& tensor, int axis) {
  return axis < tensor.shape.rank() ? tensor.shape[axis] : 0;
}

std::string shape_error(const GroupedMatmul& grouped, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& a = view[GroupedMatmul::kA];
  const Tensor& c = view[GroupedMatmul::kC];
  rule.require(grouped.choice.block_rows >= 0, "has a negative block_rows");
  rule.require(grouped.choice.sum_rows == 0, "makes sums of rows, as only its gradient does");
  rule.require(grouped.stored || !grouped.nested, "has nested scales of a b that is not stored");
  rule.rank(GroupedMatmul::kA, 2);
  rule.rank(GroupedMatmul::kC, 2);
  const int64_t experts = size_of(view[GroupedMatmul::kBounds], 0);
  const int64_t k = size_of(a, 1);
  const int64_t n = size_of(c, 1);
  rule.shape(GroupedMatmul::kC, Shape{size_of(a, 0), n});
  rule.index(GroupedMatmul::kBounds, Shape{experts, 2});
  if (grouped.stored) {
    rule.require(k * n % kNf4BlockSize == 0, "has blocks that cross from one expert to the next");
    check_stored_weight(rule, grouped, experts * k * n);
    rule.mixed_types({GroupedMatmul::kA, GroupedMatmul::kC});
    return rule.error();
  }
  rule.rank(GroupedMatmul::kB, 3);
  rule.shape(GroupedMatmul::kB, grouped.transpose_b ? Shape{experts, n, k} : Shape{experts, k, n});
  rule.mixed_types({GroupedMatmul::kA, GroupedMatmul::kB, GroupedMatmul::kC});
  return rule.error();
}

std::string shape_error(const GroupedMatmulGrad& grad, const OperationView& view) {
  ShapeRule rule(view);
  const Tensor& a = view[GroupedMatmulGrad::kA];
  const Tensor& b = view[GroupedMatmulGrad::kB];
  const Tensor& c = view[GroupedMatmulGrad::kC];
  rule.require(grad.choice.block_rows >= 0, "has a negative block_rows");
  rule.require(grad.choice.sum_rows >= 0, "has a negative sum_rows");
  rule.rank(GroupedMatmulGrad::kA, 2);
  rule.rank(GroupedMatmulGrad::kB, 2);
  rule.rank(GroupedMatmulGrad::kC, 3);
  const int64_t experts = size_of(c, 0);
  rule.shape(GroupedMatmulGrad::kB, Shape{size_of(a, 0), size_of(b, 1)});
  rule.shape(GroupedMatmulGrad::kC, Shape{experts, size_of(a, 1), size_of(b, 1)});
  rule.index(GroupedMatmulGrad::kBounds, Shape{experts, 2});
  rule.mixed_types({GroupedMatmulGrad::kA, GroupedMatmulGrad::kB, GroupedMatmulGrad::kC});
  return rule.error();
}

int64_t experts_of(const GroupedMatmul&, const OperationView& view) {
  return view[GroupedMatmul::kBounds].shape[0];
}
int64_t experts_of(const GroupedMatmulGrad&, const OperationView& view) {
  return view[GroupedMatmulGrad::kC].shape[0];
}

// The mean number of rows of the experts that have any, of which there are at most as many as rows.
double mean_rows(int64_t rows, int64_t experts) {
  return rate_size(rows) / rate_size(std::min(rows, experts));
}

// Bytes of copying a tensor to remove gaps between rows: it is read and written.
double copied_bytes(const Tensor& tensor, bool copied) {
  return copied ? 2.0 * static_cast<double>(tensor.bytes()) : 0.0;
}

// Bytes of the matrices of all experts as they are in memory.
double matrix_bytes(const GroupedMatmul& grouped, const OperationView& view) {
  if (!grouped.stored) return static_cast<double>(view[GroupedMatmul::kB].bytes());
  return static_cast<double>(view[GroupedMatmul::kCodes].bytes() +
                             view[GroupedMatmul::kAbsmax].bytes());
}

// Matrices of experts without rows are not read. Those of the others are written once and read once
// more where they are dequantised.
Cost cost(const GroupedMatmul& grouped, const OperationView& view, const Extent&) {
  const Tensor& a = view[GroupedMatmul::kA];
  const Tensor& c = view[GroupedMatmul::kC];
  const auto rows = static_cast<double>(a.shape[0]);
  const auto experts = static_cast<double>(experts_of(grouped, view));
  const double without_rows = std::max(0.0, 1.0 - rows / std::max(1.0, experts));
  const double unread = matrix_bytes(grouped, view) * without_rows;
  double copied = copied_bytes(a, grouped.dense.a) + copied_bytes(c, grouped.dense.c);
  if (grouped.stored)
    copied += 2.0 * experts * (1.0 - without_rows) *
              static_cast<double>(a.shape[1] * c.shape[1] * base::size_of(a.dtype));
  return {2.0 * rows * static_cast<double>(a.shape[1]) * static_cast<double>(c.shape[1]),
          operand_bytes(view) - unread + copied, copied};
}

// A new gradient is written as a whole, even for experts without rows. Each block of sums reads b
// again.
Cost cost(const GroupedMatmulGrad& grad, const OperationView& view, const Extent&) {
  const Tensor& a = view[GroupedMatmulGrad::kA];
  const Tensor& b = view[GroupedMatmulGrad::kB];
  const int64_t blocks_again = later_steps(a.shape[1], grad.choice.sum_rows);
  const double copied = copied_bytes(a, grad.dense.a) +
                        static_cast<double>(1 + blocks_again) * copied_bytes(b, grad.dense.b);
  return {2.0 * static_cast<double>(a.shape.elements()) * static_cast<double>(b.shape[1]),
          operand_bytes(view) + static_cast<double>(blocks_again * b.bytes()) + copied, copied};
}

void differentiate(const GroupedMatmul& grouped, const Operation& operation, Tape& tape) {
  const TensorId dc = tape.gradient(id_of(operation, GroupedMatmul::kC));
  if (dc == kNone) return;
  SNUG_CHECK(!grouped.stored, "a product by stored matrices, which are made after the gradients");
  const TensorId a = id_of(operation, GroupedMatmul::kA);
  const TensorId b = id_of(operation, GroupedMatmul::kB);
  const TensorId bounds = id_of(operation, GroupedMatmul::kBounds);
  if (tape.wants(a))
    tape.emit(GroupedMatmul{.transpose_b = !grouped.transpose_b}, {dc, b, bounds},
              {tape.contribute(a)});
  if (!tape.wants(b)) return;
  const TensorId db = tape.contribute(b);
  if (grouped.transpose_b)
    tape.emit(GroupedMatmulGrad{}, {dc, a, bounds}, {db});
  else
    tape.emit(GroupedMatmulGrad{}, {a, dc, bounds}, {db});
}

// The rate key of a product with the mean number of rows per expert: experts are multiplied one
// after the other, or in parallel at the rate of such products.
template <typename Struct>
RateKey key_of_products(const Struct& grouped, const OperationView& view,
                        RateForm::Transposes transposes) {
  RateKey key{.form = typed_form(view), .unit = Work::flops};
  key.form.kind = name_of(Kind::matmul);
  key.form.transposes = transposes;
  key.form.algorithm = rated_as(grouped.choice.algorithm);
  key.form.copied = copies_operands(grouped);
  return key;
}

RateKey rate_key(const GroupedMatmul& grouped, const OperationView& view, const Extent&) {
  const Tensor& a = view[GroupedMatmul::kA];
  RateKey key = key_of_products(grouped, view, {.b = grouped.transpose_b});
  key.shape = {mean_rows(a.shape[0], experts_of(grouped, view)),
               rate_size(view[GroupedMatmul::kC].shape[1]), rate_size(a.shape[1])};
  key.multiplies = a.dtype;
  return key;
}

RateKey rate_key(const GroupedMatmulGrad& grad, const OperationView& view, const Extent&) {
  const Tensor& a = view[GroupedMatmulGrad::kA];
  RateKey key = key_of_products(grad, view, {.a = true});
  key.shape = {rate_size(a.shape[1]), rate_size(view[GroupedMatmulGrad::kB].shape[1]),
               mean_rows(a.shape[0], view[GroupedMatmulGrad::kC].shape[0])};
  key.multiplies = a.dtype;
  return key;
}

// How often all rows are multiplied: once for each part of an expert's matrix that is summed
// separately.
int64_t passes_of(const GroupedMatmul&, const OperationView&) { return 1; }
int64_t passes_of(const GroupedMatmulGrad& grad, const OperationView& view) {
  if (grad.choice.sum_rows == 0) return 1;
  return (view[GroupedMatmulGrad::kA].shape[1] + grad.choice.sum_rows - 1) / grad.choice.sum_rows;
}

// There are two pieces of work: the rows of all experts that `algorithm` multiplies, and those that
// `rest_algorithm` multiplies, over all passes. Together they are all rows, however these are
// distributed. An algorithm without rows has no work. The library copies operands with gaps for
// pieces of several rows; in each pass, each expert has at most one piece of a single row.
template <typename Struct>
WorkList routed_work(const Struct& grouped, const OperationView& view,
                     const BatchBounds& /*bounds*/) {
  const int64_t passes = passes_of(grouped, view);
  RoutedPieces routed{
      .rows = view[Struct::kA].shape[0] * passes,
      .decisions = {{decision_name<&Struct::choice, &ExpertChoice::algorithm>(), true, false, 0},
                    {decision_name<&Struct::choice, &ExpertChoice::rest>(), false, true, 0}}};
  for_each_part_of<DenseOperands>([&](const auto& copied) {
    routed.decisions.push_back({copied.name, grouped.choice.algorithm == ProductAlgorithm::library,
                                grouped.choice.rest == ProductAlgorithm::library,
                                experts_of(grouped, view) * passes});
  });
  return {.routed = std::move(routed)};
}

}  // namespace

SNUG_DEFINE_KIND(GroupedMatmul, .differentiate = differentiate, .work = routed_work,
                 .rate_key = rate_key);
SNUG_DEFINE_KIND(GroupedMatmulGrad, .work = routed_work, .rate_key = rate_key);

}  // namespace snug::program
