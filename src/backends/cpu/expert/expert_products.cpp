#include "backends/cpu/expert/expert_products.h"

#include "base/error.h"

namespace snug::backends::cpu {
namespace {

// Rows in a piece: few enough that eight experts with some hundred rows each leave little to small
// pieces, and enough that products of them are as efficient as larger ones.
constexpr int64_t kPieceRows = 256;

int64_t piece_rows(int64_t rows) {
  int64_t piece = 1;
  while (piece < kPieceRows && 2 * piece <= rows) piece *= 2;
  return piece;
}

// Whether wide products of such factors run here, for any number of rows.
bool has_wide_products(MatmulSpec spec, const CpuContext& context) {
  spec.m = std::max(spec.m, kWidePanel);
  return runs_product(spec, ProductAlgorithm::wide, context);
}

}  // namespace

ExpertChoice decide_products(MatmulSpec spec, int64_t MatmulSpec::*dimension, int64_t rows,
                             const CpuContext& context) {
  spec.*dimension = kWideRows;
  if (rows >= kWidePanel && algorithm_of(spec, context) == ProductAlgorithm::wide)
    return {kWideRows, ProductAlgorithm::wide};
  const ProductAlgorithm any = algorithm_of_any(spec.a_type, context);
  spec.*dimension = piece_rows(rows);
  const ProductAlgorithm best = algorithm_of(spec, context);
  return {spec.*dimension, best == ProductAlgorithm::wide ? any : best, any};
}

ProductCopies copies_of_pieces(const ExpertChoice& decided, MatmulSpec spec,
                               int64_t MatmulSpec::*dimension, const CpuContext& context) {
  ProductCopies copies;
  for (int64_t size = decided.block_rows; size > 0; size /= 2) {
    spec.*dimension = size;
    const bool runs = runs_product(spec, decided.algorithm, context);
    copies |= copies_of(spec, runs ? decided.algorithm : decided.rest);
  }
  return copies;
}

ExpertPieces::ExpertPieces(const ExpertChoice& decided, const MatmulSpec& spec,
                           int64_t MatmulSpec::*dimension, const CpuContext& context)
    : spec_(spec),
      dimension_(dimension),
      is_wide_(decided.algorithm == ProductAlgorithm::wide),
      block_rows_(decided.block_rows) {
  SNUG_CHECK(decided.block_rows > 0,
             "a grouped product in pieces of {} rows, which the cpu "
             "backend does not run",
             decided.block_rows);
  if (is_wide_) {
    SNUG_CHECK(decided.block_rows == kWideRows && has_wide_products(of_rows(kWideRows), context),
               "a wide grouped product in pieces of {} rows, which does not compute it here",
               decided.block_rows);
    SNUG_CHECK(decided.rest == ProductAlgorithm::loops,
               "a wide grouped product with last rows by algorithm {}, of which there are none",
               base::word_of(decided.rest));
    wide_bytes_ = most_wide_bytes(context);
    return;
  }
  for (int64_t size = decided.block_rows; size > 0; size /= 2) {
    const bool runs = runs_product(of_rows(size), decided.algorithm, context);
    sizes_.push_back(size);
    is_rest_.push_back(!runs);
    products_.emplace_back(of_rows(size), runs ? decided.algorithm : decided.rest, context);
  }
}

void ExpertPieces::check_copies(const ProductCopies& decided) const {
  ProductCopies needed;
  for (const Product& product : products_) needed |= product.copies();
  SNUG_CHECK(needed == decided, "a grouped product that copies other operands than have gaps");
}

void ExpertPieces::check_algorithm(const ExpertChoice& decided) const {
  SNUG_CHECK(is_wide_ || !is_rest_.front(),
             "a grouped product in pieces of {} rows by algorithm {}, which does not compute them "
             "here",
             decided.block_rows, base::word_of(decided.algorithm));
}

void ExpertPieces::create() const {
  for (const Product& product : products_) product.create();
}

int64_t ExpertPieces::scratch_bytes() const {
  int64_t bytes = wide_bytes_;
  for (const Product& product : products_) bytes = std::max(bytes, product.scratch_bytes());
  return bytes;
}

// Within a panel the scratch grows with the rows, except for the copy of rows that do not fill a
// panel. So for each number of panels only all its rows and one row less are tried.
int64_t ExpertPieces::most_wide_bytes(const CpuContext& context) const {
  int64_t bytes = 0;
  for (int64_t rows = block_rows_; rows > 0; rows -= kWidePanel)
    for (const int64_t count : {rows, rows - 1})
      bytes = std::max(bytes, wide_scratch_bytes(of_rows(count), context));
  return bytes;
}

}  // namespace snug::backends::cpu
