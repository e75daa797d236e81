// Products of a mixture's experts, each over the rows routed to it, of which there may be any
// number. A wide product takes up to kWideRows rows as they are. Other products are prepared for
// fixed numbers of rows: an expert's rows are cut into pieces of a stated size, and the rest into
// halves of that size down to single rows. So any number of rows can be computed without preparing
// anything new, and no padding rows are computed.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cpu/context.h"
#include "backends/cpu/product/product.h"
#include "backends/cpu/product/wide_product.h"
#include "backends/invocation.h"

namespace snug::backends::cpu {

// The most rows in one wide product: a gradient's sum over at most this many rows is not cut
// further.
inline constexpr int64_t kWideRows = 1024;

// How the rows of experts are multiplied: the decisions for a grouped product.
struct ExpertProducts {
  int64_t block_rows = 0;
  ProductAlgorithm algorithm = ProductAlgorithm::loops;
  ProductAlgorithm rest_algorithm = ProductAlgorithm::loops;
  ProductCopies copies = {};  // the copies of all pieces
};

// The fastest way to compute products `spec`, whose dimension `dimension` (m or k) is the number of
// an expert's rows; `rows` is the number of rows of all experts together.
ExpertProducts decide_products(MatmulSpec spec, int64_t MatmulSpec::*dimension, int64_t rows,
                               const CpuContext& context);

// Which operands the pieces of such products copy to remove gaps. `decided.copies` is ignored.
ProductCopies copies_of_pieces(const ExpertProducts& decided, MatmulSpec spec,
                               int64_t MatmulSpec::*dimension, const CpuContext& context);

// Records what computed the products, if there were any rows.
class RanProducts {
 public:
  // Records the size of a full piece that was cut off.
  void cut(int64_t rows) { block_rows_ = std::max(block_rows_, rows); }
  // Records that a piece of `rows` rows was multiplied.
  void add(bool is_rest, int64_t rows, const ProductCopies& needed, const RanProduct& ran) {
    (is_rest ? rest_algorithm_ : algorithm_) = ran.algorithm;
    (is_rest ? rest_rows_ : rows_) += rows;
    needed_ |= needed;
    copies_ |= ran.copies;
  }
  // Records that sums of `rows` rows of a gradient were computed at once.
  void add_sums(int64_t rows) { sum_rows_ = std::max(sum_rows_, rows); }
  // Writes the record of a grouped product of kind `Struct` to the trace.
  template <typename Struct>
  void note(const Invocation& invocation) const {
    for (const int64_t rows : {rows_, rest_rows_}) invocation.note_piece(rows);
    if (block_rows_ > 0) invocation.note_decision<&Struct::block_rows>(block_rows_);
    if constexpr (requires { &Struct::sum_rows; })
      if (sum_rows_ > 0) invocation.note_decision<&Struct::sum_rows>(sum_rows_);
    if (algorithm_) invocation.note_decision<&Struct::algorithm>(*algorithm_);
    if (rest_algorithm_) invocation.note_decision<&Struct::rest_algorithm>(*rest_algorithm_);
    note_copy<&Struct::dense_a>(needed_.a, copies_.a, invocation);
    if constexpr (requires { &Struct::dense_b; })
      note_copy<&Struct::dense_b>(needed_.b, copies_.b, invocation);
    if constexpr (requires { &Struct::dense_c; })
      note_copy<&Struct::dense_c>(needed_.c, copies_.c, invocation);
  }

 private:
  template <auto decision>
  static void note_copy(bool needed, bool copied, const Invocation& invocation) {
    if (needed || copied) invocation.note_decision<decision>(copied);
  }

  int64_t block_rows_ = 0;
  int64_t sum_rows_ = 0;
  int64_t rows_ = 0;
  int64_t rest_rows_ = 0;
  std::optional<ProductAlgorithm> algorithm_;
  std::optional<ProductAlgorithm> rest_algorithm_;
  ProductCopies needed_;
  ProductCopies copies_;
};

class ExpertPieces {
 public:
  // Fails a CHECK where such products cannot be computed here with these decisions.
  ExpertPieces(const ExpertProducts& decided, const MatmulSpec& spec,
               int64_t MatmulSpec::*dimension, const CpuContext& context);
  // Creates the products that multiply() uses.
  void create() const;
  // Enough for any number of rows.
  int64_t scratch_bytes() const;
  // Fails a CHECK where the stated algorithm computes not even the largest piece.
  void check_algorithm(const ExpertProducts& decided) const;
  // Multiplies rows [begin, end); operands_of(row) gives the operands from a row on. `first` says
  // what the first wide piece does with the contents of c, if that differs from `spec`.
  template <typename F>
  void multiply(int64_t begin, int64_t end, const F& operands_of, std::byte* scratch,
                CpuContext& context, RanProducts& ran,
                std::optional<MatmulSpec::Add> first = {}) const {
    for (; is_wide_ && begin < end; begin += block_rows_, first.reset()) {
      const int64_t rows = std::min(block_rows_, end - begin);
      MatmulSpec spec = of_rows(rows);
      spec.add = first.value_or(spec.add);
      multiply_wide(spec, operands_of(begin), scratch, context);
      ran.cut(block_rows_);
      ran.add(false, rows, {}, {ProductAlgorithm::wide});
    }
    for (size_t i = 0; i < sizes_.size() && begin < end; ++i) {
      for (; end - begin >= sizes_[i]; begin += sizes_[i])
        ran.add(is_rest_[i], sizes_[i], products_[i].copies(),
                products_[i].multiply(operands_of(begin), scratch, context));
      ran.cut(sizes_[i]);
    }
  }

 private:
  MatmulSpec of_rows(int64_t count) const {
    MatmulSpec spec = spec_;
    spec.*dimension_ = count;
    return spec;
  }
  int64_t most_wide_bytes(const CpuContext& context) const;

  MatmulSpec spec_;
  int64_t MatmulSpec::*dimension_;
  bool is_wide_;
  int64_t block_rows_;  // rows of the largest piece
  int64_t wide_bytes_ = 0;
  std::vector<int64_t> sizes_;  // from the largest down to a single row
  std::vector<bool> is_rest_;
  std::vector<Product> products_;
};

}  // namespace snug::backends::cpu
