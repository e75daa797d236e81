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
#include "program/kinds/product/grouped_matmul.h"

namespace snug::backends::cpu {

using program::ExpertChoice;

// A gradient, which sums over them, is not cut again along so many.
inline constexpr int64_t kWideRows = 1024;

// What is fastest for products `spec`, whose dimension `dimension` (m or k) is the rows of an
// expert; all experts together have `rows`.
ExpertChoice decide_products(MatmulSpec spec, int64_t MatmulSpec::*dimension, int64_t rows,
                             const CpuContext& context);

// Which operands pieces of such products copy to be without gaps.
ProductCopies copies_of_pieces(const ExpertChoice& decided, MatmulSpec spec,
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
    constexpr auto kChoice = &Struct::choice;
    if (block_rows_ > 0) invocation.note_decision<kChoice, &ExpertChoice::block_rows>(block_rows_);
    if (sum_rows_ > 0) invocation.note_decision<kChoice, &ExpertChoice::sum_rows>(sum_rows_);
    if (algorithm_) invocation.note_decision<kChoice, &ExpertChoice::algorithm>(*algorithm_);
    if (rest_algorithm_) invocation.note_decision<kChoice, &ExpertChoice::rest>(*rest_algorithm_);
    note_copy<&Struct::dense, &ProductCopies::a>(invocation);
    note_copy<&Struct::dense, &ProductCopies::b>(invocation);
    note_copy<&Struct::dense, &ProductCopies::c>(invocation);
  }

 private:
  template <auto dense, auto operand>
  void note_copy(const Invocation& invocation) const {
    if (needed_.*operand || copies_.*operand)
      invocation.note_decision<dense, operand>(copies_.*operand);
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
  // Fails a CHECK where the decisions do not compute such products here.
  ExpertPieces(const ExpertChoice& decided, const MatmulSpec& spec, int64_t MatmulSpec::*dimension,
               const CpuContext& context);
  // Fails a CHECK where pieces copy other operands than these.
  void check_copies(const ProductCopies& decided) const;
  // Makes what multiply() needs.
  void create() const;
  // Enough for any number of rows.
  int64_t scratch_bytes() const;
  // Fails a CHECK where not even the largest piece is computed by the algorithm that is stated.
  void check_algorithm(const ExpertChoice& decided) const;
  // Multiplies rows [begin, end); `operands_of` says where those from a row on lie. `first`: what
  // the first wide piece does with what c holds, where that is not what `spec` says. If it is the
  // only one and nothing is added, it writes past the caches: the results of all experts are made
  // before anyone reads one.
  template <typename F>
  void multiply(int64_t begin, int64_t end, const F& operands_of, std::byte* scratch,
                CpuContext& context, RanProducts& ran,
                std::optional<MatmulSpec::Add> first = {}) const {
    for (; is_wide_ && begin < end; begin += block_rows_, first.reset()) {
      const int64_t rows = std::min(block_rows_, end - begin);
      MatmulSpec spec = of_rows(rows);
      spec.add = first.value_or(spec.add);
      multiply_wide(spec, operands_of(begin), scratch, context,
                    first == MatmulSpec::Add::nothing && rows == end - begin);
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
