// How many rows an expert has is known when the product is run. Its rows are cut into pieces of the
// size that the operation states and, for what is left, halves of it down to one row: each size has
// a product of its own that was made ready before, so that no number of rows makes anything new,
// and no row is computed that is not there. A gradient sums over rows: pieces add to sums in f32 of
// some rows of the matrix at a time, which are rounded once.
#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using program::GroupedMatmul;
using program::GroupedMatmulGrad;

// Rows of a piece: few enough that eight experts with some hundred rows each leave little to small
// pieces, many enough that products of them run at the rate of larger ones.
constexpr int64_t kPieceRows = 256;
// Sums of a gradient that stay in a second-level cache or two on their way.
constexpr int64_t kSumBytes = int64_t{4} << 20;

int64_t piece_rows(int64_t rows) {
  int64_t piece = 1;
  while (piece < kPieceRows && 2 * piece <= rows) piece *= 2;
  return piece;
}

// What computed the pieces of a product. Where none needed an algorithm, that is as decided.
class Ran {
 public:
  void add(bool is_rest, ProductAlgorithm algorithm) {
    (is_rest ? rest_algorithm_ : algorithm_) = algorithm;
  }
  template <typename Struct>
  void note(const Struct& grouped, int64_t block_rows, const Invocation& invocation) const {
    invocation.note_decision("block_rows", block_rows);
    invocation.note_decision("algorithm", algorithm_.value_or(grouped.algorithm));
    invocation.note_decision("rest_algorithm", rest_algorithm_.value_or(grouped.rest_algorithm));
  }

 private:
  std::optional<ProductAlgorithm> algorithm_;
  std::optional<ProductAlgorithm> rest_algorithm_;
};

// A product of pieces of each size, from the largest to a single row.
class Pieces {
 public:
  template <typename Struct>
  Pieces(const Struct& grouped, const CpuContext& context, const auto& spec_of_rows) {
    SNUG_CHECK(grouped.block_rows > 0,
               "a grouped product in pieces of {} rows, which the cpu "
               "backend does not run",
               grouped.block_rows);
    for (int64_t rows = grouped.block_rows; rows > 0; rows /= 2) {
      const MatmulSpec spec = spec_of_rows(rows);
      const bool runs = runs_product(spec, grouped.algorithm, context);
      sizes_.push_back(rows);
      is_rest_.push_back(!runs);
      products_.emplace_back(spec, runs ? grouped.algorithm : grouped.rest_algorithm, context);
    }
  }

  void create() const {
    for (const Product& product : products_) product.create();
  }
  int64_t scratch_bytes() const {
    int64_t bytes = 0;
    for (const Product& product : products_) bytes = std::max(bytes, product.scratch_bytes());
    return bytes;
  }
  int64_t largest() const { return sizes_.front(); }
  // Calls f(product, first row), which multiplies, for pieces that cover the rows.
  template <typename F>
  void for_each(int64_t begin, int64_t end, Ran& ran, F&& f) const {
    for (size_t i = 0; i < sizes_.size(); ++i)
      for (; end - begin >= sizes_[i]; begin += sizes_[i])
        ran.add(is_rest_[i], f(products_[i], begin));
  }

 private:
  std::vector<int64_t> sizes_;
  std::vector<bool> is_rest_;
  std::vector<Product> products_;
};

template <typename Struct>
Struct decided(Struct grouped, const MatmulSpec& spec, int64_t rows, const CpuContext& context) {
  grouped.block_rows = rows;
  grouped.algorithm = algorithm_of(spec, context);
  grouped.rest_algorithm = algorithm_of_any(context);
  return grouped;
}

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

// Forward.

MatmulSpec grouped_spec(const GroupedMatmul& grouped, const program::OperationView& view,
                        int64_t rows) {
  const MatrixLayout a = matrix_layout(view[GroupedMatmul::kA]);
  const MatrixLayout c = matrix_layout(view[GroupedMatmul::kC]);
  const program::Tensor& b = view[GroupedMatmul::kB];
  MatmulSpec spec{.m = rows, .n = c.columns, .k = a.columns};
  spec.a_type = a.dtype;
  spec.b_type = b.dtype;
  spec.c_type = c.dtype;
  spec.a_strides[0] = a.row_stride;
  spec.a_strides[1] = 1;
  spec.b_strides[0] = grouped.transpose_b ? 1 : b.shape.columns();
  spec.b_strides[1] = grouped.transpose_b ? b.shape.columns() : 1;
  spec.c_stride = c.row_stride;
  return spec;
}

class PreparedGrouped : public Prepared {
 public:
  PreparedGrouped(const GroupedMatmul& grouped, const program::OperationView& view,
                  const CpuContext& context)
      : pieces(grouped, context, [&](int64_t rows) { return grouped_spec(grouped, view, rows); }) {}
  const Pieces pieces;
};

void run(const GroupedMatmul& grouped, const Invocation& invocation, CpuContext& context) {
  SNUG_CHECK(invocation.prepared != nullptr, "a grouped product that was not prepared");
  const Pieces& pieces = static_cast<const PreparedGrouped&>(*invocation.prepared).pieces;
  const Rows a = rows_of(invocation[GroupedMatmul::kA]);
  const Rows c = rows_of(invocation[GroupedMatmul::kC]);
  const Buffer& b = invocation[GroupedMatmul::kB];
  const int32_t* bounds = integers_of(invocation[GroupedMatmul::kBounds]);
  const int64_t experts = b.shape[0];
  check_bounds(bounds, experts, a.rows);
  Ran ran;
  for (int64_t expert = 0; expert < experts; ++expert)
    pieces.for_each(
        bounds[2 * expert], bounds[2 * expert + 1], ran, [&](const Product& product, int64_t row) {
          const MatmulOperands operands{
              .a = a.at(row), .b = b.data + expert * (b.bytes() / experts), .c = c.at(row)};
          return product.multiply(operands, invocation.workspace.data, context);
        });
  ran.note(grouped, pieces.largest(), invocation);
}

bool supports(const GroupedMatmul&, const program::OperationView& view, const CpuContext& context) {
  return supports_product(view[GroupedMatmul::kA].dtype, view[GroupedMatmul::kB].dtype,
                          view[GroupedMatmul::kC].dtype, context);
}

GroupedMatmul decide(const GroupedMatmul& grouped, const program::OperationView& view,
                     const CpuContext& context) {
  const int64_t rows = piece_rows(view[GroupedMatmul::kA].shape[0]);
  return decided(grouped, grouped_spec(grouped, view, rows), rows, context);
}

int64_t workspace_bytes(const GroupedMatmul& grouped, const program::OperationView& view,
                        const CpuContext& context) {
  return PreparedGrouped(grouped, view, context).pieces.scratch_bytes();
}

std::unique_ptr<Prepared> prepare(const GroupedMatmul& grouped, const program::OperationView& view,
                                  CpuContext& context) {
  auto prepared = std::make_unique<PreparedGrouped>(grouped, view, context);
  prepared->pieces.create();
  return prepared;
}

// Gradient.

// Rows of the matrix whose sums are made at once.
int64_t sum_rows(const program::OperationView& view) {
  const int64_t m = view[GroupedMatmulGrad::kA].shape[1];
  const int64_t row_bytes = view[GroupedMatmulGrad::kB].shape[1] * int64_t{sizeof(float)};
  return std::min(m, std::max<int64_t>(16, kSumBytes / row_bytes / 16 * 16));
}

MatmulSpec grad_spec(const program::OperationView& view, int64_t sums, int64_t rows) {
  const MatrixLayout a = matrix_layout(view[GroupedMatmulGrad::kA]);
  const MatrixLayout b = matrix_layout(view[GroupedMatmulGrad::kB]);
  MatmulSpec spec{.m = sums, .n = b.columns, .k = rows};
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
      : block_(sum_rows(view)), columns_(view[GroupedMatmulGrad::kB].shape[1]) {
    const auto pieces_of = [&](int64_t sums) {
      return Pieces(grad, context, [&](int64_t rows) { return grad_spec(view, sums, rows); });
    };
    whole_.emplace(pieces_of(block_));
    const int64_t rest = view[GroupedMatmulGrad::kA].shape[1] % block_;
    if (rest > 0) rest_.emplace(pieces_of(rest));
  }

  void create() const {
    whole_->create();
    if (rest_) rest_->create();
  }
  int64_t block() const { return block_; }
  const Pieces& pieces(int64_t sums) const { return sums == block_ ? *whole_ : *rest_; }
  // Of the sums, before the scratch of products.
  int64_t sum_bytes() const {
    return whole_lines(block_ * columns_ * static_cast<int64_t>(sizeof(float)));
  }
  int64_t workspace_bytes() const {
    const int64_t rest = rest_ ? rest_->scratch_bytes() : 0;
    return sum_bytes() + std::max(whole_->scratch_bytes(), rest);
  }

 private:
  int64_t block_;
  int64_t columns_;
  std::optional<Pieces> whole_;
  std::optional<Pieces> rest_;
};

// Rows of c become the sums, or what they were and the sums.
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

void run(const GroupedMatmulGrad& grad, const Invocation& invocation, CpuContext& context) {
  SNUG_CHECK(invocation.prepared != nullptr, "a grouped product that was not prepared");
  const auto& prepared = static_cast<const PreparedGroupedGrad&>(*invocation.prepared);
  const Rows a = rows_of(invocation[GroupedMatmulGrad::kA]);
  const Rows b = rows_of(invocation[GroupedMatmulGrad::kB]);
  const Rows c = rows_of(invocation[GroupedMatmulGrad::kC]);  // (experts * m, n)
  const int32_t* bounds = integers_of(invocation[GroupedMatmulGrad::kBounds]);
  const int64_t experts = c.rows / a.columns;
  check_bounds(bounds, experts, a.rows);
  std::byte* const sums = invocation.workspace.data;
  std::byte* const scratch = sums + prepared.sum_bytes();
  Ran ran;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int64_t begin = bounds[2 * expert];
    const int64_t end = bounds[2 * expert + 1];
    if (begin == end && grad.accumulate) continue;
    for (int64_t first = 0; first < a.columns; first += prepared.block()) {
      const int64_t rows = std::min(prepared.block(), a.columns - first);
      std::fill_n(reinterpret_cast<float*>(sums), rows * c.columns, 0.0F);
      prepared.pieces(rows).for_each(begin, end, ran, [&](const Product& product, int64_t row) {
        return product.multiply({.a = a.at(row, first), .b = b.at(row), .c = sums}, scratch,
                                context);
      });
      store_sums(reinterpret_cast<float*>(sums), c, expert * a.columns + first, rows,
                 grad.accumulate, *context.kernels.elementwise);
    }
  }
  ran.note(grad, prepared.pieces(prepared.block()).largest(), invocation);
}

bool supports(const GroupedMatmulGrad&, const program::OperationView& view,
              const CpuContext& context) {
  return supports_product(view[GroupedMatmulGrad::kA].dtype, view[GroupedMatmulGrad::kB].dtype,
                          base::DType::f32, context) &&
         are_floats<GroupedMatmulGrad>(view, {GroupedMatmulGrad::kC});
}

GroupedMatmulGrad decide(const GroupedMatmulGrad& grad, const program::OperationView& view,
                         const CpuContext& context) {
  const int64_t rows = piece_rows(view[GroupedMatmulGrad::kA].shape[0]);
  return decided(grad, grad_spec(view, sum_rows(view), rows), rows, context);
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
bool asks_library(const Struct& grouped) {
  return grouped.algorithm == ProductAlgorithm::library ||
         grouped.rest_algorithm == ProductAlgorithm::library;
}

}  // namespace

SNUG_CPU_KIND(GroupedMatmul, .supports = supports, .decide = decide,
              .workspace_bytes = workspace_bytes, .asks_library = asks_library<GroupedMatmul>,
              .prepare = prepare);
SNUG_CPU_KIND(GroupedMatmulGrad, .supports = supports, .decide = decide,
              .workspace_bytes = workspace_bytes, .asks_library = asks_library<GroupedMatmulGrad>,
              .prepare = prepare);

}  // namespace snug::backends::cpu
