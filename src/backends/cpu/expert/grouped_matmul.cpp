// The number of an expert's rows is known only when the product runs (expert_products.h). A
// gradient sums over rows. If it is f32, wide products add to it directly; otherwise pieces add to
// f32 sums for some rows of the matrix at a time, which are rounded once.
#include <algorithm>
#include <optional>

#include "backends/cpu/expert/expert_products.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product/nf4_weight.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"
#include "base/error.h"
#include "program/kinds/product/grouped_matmul.h"

namespace snug::backends::cpu {
namespace {

using program::GroupedMatmul;
using program::GroupedMatmulGrad;

// The size of a gradient's sums, which should stay in a second-level cache or two while they are
// added to.
constexpr int64_t kSumBytes = int64_t{4} << 20;

// Bounds that would reach beyond the rows are no router's.
void check_bounds(const int32_t* bounds, int64_t experts, int64_t rows) {
  int64_t end = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    SNUG_CHECK(bounds[2 * expert] == end && bounds[2 * expert + 1] >= end,
               "expert {} has rows {} to {}, after {}", expert, bounds[2 * expert],
               bounds[2 * expert + 1], end);
    end = bounds[2 * expert + 1];
  }
  SNUG_CHECK_EQ(end, rows);
}

// The forward product. Matrices that are stored as NF4 are dequantised one expert at a time, those
// of experts without rows never.

base::DType type_of_b(const GroupedMatmul& grouped, const program::OperationView& view) {
  return grouped.stored ? view[GroupedMatmul::kA].dtype : view[GroupedMatmul::kB].dtype;
}

MatmulSpec grouped_spec(const GroupedMatmul& grouped, const program::OperationView& view) {
  const MatrixLayout a = matrix_layout(view[GroupedMatmul::kA]);
  const MatrixLayout c = matrix_layout(view[GroupedMatmul::kC]);
  const int64_t b_columns = grouped.transpose_b ? a.columns : c.columns;
  MatmulSpec spec{.n = c.columns, .k = a.columns};
  spec.a_type = a.dtype;
  spec.b_type = type_of_b(grouped, view);
  spec.c_type = c.dtype;
  spec.a_strides[0] = a.row_stride;
  spec.a_strides[1] = 1;
  spec.b_strides[0] = grouped.transpose_b ? 1 : b_columns;
  spec.b_strides[1] = grouped.transpose_b ? b_columns : 1;
  spec.c_stride = c.row_stride;
  return spec;
}

// Bytes of the values of one expert's matrix, which come before the products' scratch; 0 where they
// are read in place.
int64_t values_bytes(const GroupedMatmul& grouped, const program::OperationView& view) {
  if (!grouped.stored) return 0;
  return whole_lines(view[GroupedMatmul::kA].shape[1] * view[GroupedMatmul::kC].shape[1] *
                     base::size_of(type_of_b(grouped, view)));
}

class PreparedGrouped : public Prepared {
 public:
  PreparedGrouped(const GroupedMatmul& grouped, const program::OperationView& view,
                  const CpuContext& context)
      : value_bytes(values_bytes(grouped, view)),
        pieces(grouped.choice, grouped_spec(grouped, view), &MatmulSpec::m, context) {
    SNUG_CHECK(grouped.choice.sum_rows == 0,
               "a grouped product with sums of {} rows, which only its gradient makes",
               grouped.choice.sum_rows);
    pieces.check_algorithm(grouped.choice);
    pieces.check_copies(grouped.dense);
  }
  int64_t scratch_bytes() const { return value_bytes + pieces.scratch_bytes(); }

  const int64_t value_bytes;  // of one expert's matrix, if it is dequantised
  const ExpertPieces pieces;
};

// Calls multiply(expert, matrix) for each expert that has rows.
template <typename F>
void for_each_matrix(const GroupedMatmul& grouped, const Invocation& invocation,
                     const int32_t* bounds, const CpuContext& context, const F& multiply) {
  const int64_t experts = invocation[GroupedMatmul::kBounds].shape[0];
  const auto has_rows = [&](int64_t expert) { return bounds[2 * expert] < bounds[2 * expert + 1]; };
  if (!grouped.stored) {
    const Buffer& b = invocation[GroupedMatmul::kB];
    for (int64_t expert = 0; expert < experts; ++expert)
      if (has_rows(expert)) multiply(expert, b.data + expert * (b.bytes() / experts));
    return;
  }
  const Nf4Weight b = weight_of(grouped, invocation);
  const base::DType dtype = invocation[GroupedMatmul::kA].dtype;
  const int64_t elements =
      invocation[GroupedMatmul::kA].shape[1] * invocation[GroupedMatmul::kC].shape[1];
  std::byte* const values = invocation.workspace.data;
  for (int64_t expert = 0; expert < experts; ++expert) {
    if (!has_rows(expert)) continue;
    dequantize_elements(b, expert * elements, elements, dtype, values, context);
    multiply(expert, values);
  }
}

void run(const GroupedMatmul& grouped, const Invocation& invocation, CpuContext& context) {
  SNUG_CHECK(invocation.prepared != nullptr, "a grouped product that was not prepared");
  const auto& prepared = static_cast<const PreparedGrouped&>(*invocation.prepared);
  const Rows a = rows_of(invocation[GroupedMatmul::kA]);
  const Rows c = rows_of(invocation[GroupedMatmul::kC]);
  const int32_t* bounds = integers_of(invocation[GroupedMatmul::kBounds]);
  check_bounds(bounds, invocation[GroupedMatmul::kBounds].shape[0], a.rows);
  std::byte* const scratch = invocation.workspace.data + prepared.value_bytes;
  RanProducts ran;
  for_each_matrix(grouped, invocation, bounds, context, [&](int64_t expert, std::byte* matrix) {
    const auto operands_of = [&](int64_t row) {
      return MatmulOperands{.a = a.at(row), .b = matrix, .c = c.at(row)};
    };
    prepared.pieces.multiply(bounds[2 * expert], bounds[2 * expert + 1], operands_of, scratch,
                             context, ran);
  });
  ran.note<GroupedMatmul>(invocation);
}

bool supports(const GroupedMatmul& grouped, const program::OperationView& view,
              const CpuContext& context) {
  return supports_product(view[GroupedMatmul::kA].dtype, type_of_b(grouped, view),
                          view[GroupedMatmul::kC].dtype, context);
}

GroupedMatmul decide(const GroupedMatmul& grouped, const program::OperationView& view,
                     const CpuContext& context) {
  const MatmulSpec spec = grouped_spec(grouped, view);
  GroupedMatmul decided = grouped;
  const int64_t rows = view[GroupedMatmul::kA].shape[0];
  decided.choice = decide_products(spec, &MatmulSpec::m, rows, context);
  decided.dense = copies_of_pieces(decided.choice, spec, &MatmulSpec::m, context);
  return decided;
}

int64_t workspace_bytes(const GroupedMatmul& grouped, const program::OperationView& view,
                        const CpuContext& context) {
  return PreparedGrouped(grouped, view, context).scratch_bytes();
}

std::unique_ptr<Prepared> prepare(const GroupedMatmul& grouped, const program::OperationView& view,
                                  CpuContext& context) {
  auto prepared = std::make_unique<PreparedGrouped>(grouped, view, context);
  prepared->pieces.create();
  return prepared;
}

// The gradient.

// Whether products may be added up directly in the gradient.
bool adds_in_place(const GroupedMatmulGrad& grad, const program::OperationView& view) {
  return grad.choice.algorithm == ProductAlgorithm::wide &&
         view[GroupedMatmulGrad::kC].dtype == base::DType::f32;
}

// The rows of the matrix whose sums are computed at once; 0 if they are added up in the gradient.
int64_t sum_rows_of(const GroupedMatmulGrad& grad, const program::OperationView& view) {
  if (adds_in_place(grad, view)) return 0;
  const int64_t m = view[GroupedMatmulGrad::kA].shape[1];
  const int64_t row_bytes = view[GroupedMatmulGrad::kB].shape[1] * int64_t{sizeof(float)};
  return std::min(m, std::max<int64_t>(16, kSumBytes / row_bytes / 16 * 16));
}

MatmulSpec grad_spec(const program::OperationView& view, int64_t sums) {
  const MatrixLayout a = matrix_layout(view[GroupedMatmulGrad::kA]);
  const MatrixLayout b = matrix_layout(view[GroupedMatmulGrad::kB]);
  MatmulSpec spec{.m = sums, .n = b.columns};
  spec.a_type = a.dtype;
  spec.b_type = b.dtype;
  spec.c_type = base::DType::f32;
  spec.a_strides[0] = 1;
  spec.a_strides[1] = a.row_stride;
  spec.b_strides[0] = b.row_stride;
  spec.b_strides[1] = 1;
  spec.c_stride = b.columns;
  spec.add = MatmulSpec::Add::destination;
  return spec;
}

class PreparedGroupedGrad : public Prepared {
 public:
  PreparedGroupedGrad(const GroupedMatmulGrad& grad, const program::OperationView& view,
                      const CpuContext& context)
      : in_place_(grad.choice.sum_rows == 0),
        block_(in_place_ ? view[GroupedMatmulGrad::kA].shape[1] : grad.choice.sum_rows),
        columns_(view[GroupedMatmulGrad::kB].shape[1]) {
    SNUG_CHECK(!in_place_ || adds_in_place(grad, view),
               "a grouped product by {} with sums in its result, which the cpu backend does not "
               "run",
               base::word_of(grad.choice.algorithm));
    const auto pieces_of = [&](int64_t sums) {
      return ExpertPieces(grad.choice, grad_spec(view, sums), &MatmulSpec::k, context);
    };
    whole_.emplace(pieces_of(block_));
    whole_->check_algorithm(grad.choice);
    whole_->check_copies(grad.dense);
    const int64_t rest = view[GroupedMatmulGrad::kA].shape[1] % block_;
    if (rest == 0) return;
    rest_.emplace(pieces_of(rest));
    rest_->check_copies(grad.dense);
  }

  void create() const {
    whole_->create();
    if (rest_) rest_->create();
  }
  bool in_place() const { return in_place_; }
  int64_t block() const { return block_; }
  const ExpertPieces& pieces(int64_t sums) const { return sums == block_ ? *whole_ : *rest_; }
  // The size of the sums, which come before the products' scratch.
  int64_t sum_bytes() const {
    if (in_place_) return 0;
    return whole_lines(block_ * columns_ * static_cast<int64_t>(sizeof(float)));
  }
  int64_t workspace_bytes() const {
    const int64_t rest = rest_ ? rest_->scratch_bytes() : 0;
    return sum_bytes() + std::max(whole_->scratch_bytes(), rest);
  }

 private:
  bool in_place_;
  int64_t block_;
  int64_t columns_;
  std::optional<ExpertPieces> whole_;
  std::optional<ExpertPieces> rest_;
};

// Sets rows of c to the sums, or adds the sums to them.
void store_sums(const float* sums, const Rows& c, int64_t first, int64_t rows, bool accumulate,
                const ElementwiseKernels& kernels) {
  parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = sums + row * c.columns;
      std::byte* to = c.at(first + row);
      if (accumulate)
        kernels.add[kF32][c.element][c.element](from, to, to, c.columns);
      else
        kernels.convert[kF32][c.element](from, to, c.columns);
    }
  });
}

// The operands of a gradient, and what was prepared for it.
struct GradRun {
  const GroupedMatmulGrad& grad;
  const PreparedGroupedGrad& prepared;
  Rows a, b, c;  // c: (experts * m, n)
  std::byte* workspace;
  CpuContext& context;
};

void add_in_place(const GradRun& run, int64_t expert, int64_t begin, int64_t end,
                  RanProducts& ran) {
  std::byte* const c = run.c.at(expert * run.a.columns);
  const int64_t elements = run.a.columns * run.c.columns;
  if (begin == end && !run.grad.accumulate)
    parallel_ranges(elements, kElementsPerTask, [&](int64_t first, int64_t last) {
      std::fill_n(reinterpret_cast<float*>(c) + first, last - first, 0.0F);
    });
  using Add = MatmulSpec::Add;
  run.prepared.pieces(run.a.columns)
      .multiply(
          begin, end,
          [&](int64_t row) {
            return MatmulOperands{.a = run.a.at(row), .b = run.b.at(row), .c = c};
          },
          run.workspace, run.context, ran, run.grad.accumulate ? Add::destination : Add::nothing);
}

void add_in_sums(const GradRun& run, int64_t expert, int64_t begin, int64_t end, RanProducts& ran) {
  std::byte* const sums = run.workspace;
  std::byte* const scratch = sums + run.prepared.sum_bytes();
  for (int64_t first = 0; first < run.a.columns; first += run.prepared.block()) {
    const int64_t rows = std::min(run.prepared.block(), run.a.columns - first);
    std::fill_n(reinterpret_cast<float*>(sums), rows * run.c.columns, 0.0F);
    ran.add_sums(rows);
    run.prepared.pieces(rows).multiply(
        begin, end,
        [&](int64_t row) {
          return MatmulOperands{.a = run.a.at(row, first), .b = run.b.at(row), .c = sums};
        },
        scratch, run.context, ran);
    store_sums(reinterpret_cast<float*>(sums), run.c, expert * run.a.columns + first, rows,
               run.grad.accumulate, *run.context.kernels.elementwise);
  }
}

void run(const GroupedMatmulGrad& grad, const Invocation& invocation, CpuContext& context) {
  SNUG_CHECK(invocation.prepared != nullptr, "a grouped product that was not prepared");
  const GradRun run{.grad = grad,
                    .prepared = static_cast<const PreparedGroupedGrad&>(*invocation.prepared),
                    .a = rows_of(invocation[GroupedMatmulGrad::kA]),
                    .b = rows_of(invocation[GroupedMatmulGrad::kB]),
                    .c = rows_of(invocation[GroupedMatmulGrad::kC]),
                    .workspace = invocation.workspace.data,
                    .context = context};
  const int32_t* bounds = integers_of(invocation[GroupedMatmulGrad::kBounds]);
  const int64_t experts = run.c.rows / run.a.columns;
  check_bounds(bounds, experts, run.a.rows);
  RanProducts ran;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int64_t begin = bounds[2 * expert];
    const int64_t end = bounds[2 * expert + 1];
    if (begin == end && grad.accumulate) continue;
    (run.prepared.in_place() ? add_in_place : add_in_sums)(run, expert, begin, end, ran);
  }
  ran.note<GroupedMatmulGrad>(invocation);
}

bool supports(const GroupedMatmulGrad&, const program::OperationView& view,
              const CpuContext& context) {
  return supports_product(view[GroupedMatmulGrad::kA].dtype, view[GroupedMatmulGrad::kB].dtype,
                          base::DType::f32, context) &&
         are_floats<GroupedMatmulGrad>(view, {GroupedMatmulGrad::kC});
}

GroupedMatmulGrad decide(const GroupedMatmulGrad& grad, const program::OperationView& view,
                         const CpuContext& context) {
  // The algorithm is the wide one for a full block of sums, and then also for the remaining rows.
  const program::Shape& a = view[GroupedMatmulGrad::kA].shape;
  GroupedMatmulGrad decided = grad;
  ExpertChoice& choice = decided.choice;
  choice = decide_products(grad_spec(view, a[1]), &MatmulSpec::k, a[0], context);
  choice.sum_rows = sum_rows_of(decided, view);
  if (choice.algorithm == ProductAlgorithm::wide) return decided;
  MatmulSpec block = grad_spec(view, choice.sum_rows);
  block.k = choice.block_rows;
  if (!runs_product(block, choice.algorithm, context)) choice.algorithm = choice.rest;
  const MatmulSpec sums = grad_spec(view, choice.sum_rows > 0 ? choice.sum_rows : a[1]);
  decided.dense = copies_of_pieces(choice, sums, &MatmulSpec::k, context);
  return decided;
}

int64_t workspace_bytes(const GroupedMatmulGrad& grad, const program::OperationView& view,
                        const CpuContext& context) {
  return PreparedGroupedGrad(grad, view, context).workspace_bytes();
}

std::unique_ptr<Prepared> prepare(const GroupedMatmulGrad& grad, const program::OperationView& view,
                                  CpuContext& context) {
  auto prepared = std::make_unique<PreparedGroupedGrad>(grad, view, context);
  prepared->create();
  return prepared;
}

template <typename Struct>
bool group_asks_library(const Struct& grouped) {
  return grouped.choice.algorithm == ProductAlgorithm::library ||
         grouped.choice.rest == ProductAlgorithm::library;
}

}  // namespace

SNUG_CPU_KIND(GroupedMatmul, .supports = supports, .decide = decide,
              .workspace_bytes = workspace_bytes, .asks_library = group_asks_library<GroupedMatmul>,
              .prepare = prepare);
SNUG_CPU_KIND(GroupedMatmulGrad, .supports = supports, .decide = decide,
              .workspace_bytes = workspace_bytes,
              .asks_library = group_asks_library<GroupedMatmulGrad>, .prepare = prepare);

}  // namespace snug::backends::cpu
