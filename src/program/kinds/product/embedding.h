// embedding: rows of a table by id, or columns where it lies the other way round; also used to
// gather rows of any matrix.
#pragma once

#include <array>
#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// reads: table (vocab, d), or (d, vocab) if `transposed`, ids (tokens) i32. writes: y (tokens, d).
// Ids must lie in the table. A transposed one may be (d1, d2, vocab), or (vocab), where d is 1.
struct Embedding {
  bool transposed = false;
  bool operator==(const Embedding&) const = default;
  static constexpr auto kFields = std::tuple{Field{"transposed", &Embedding::transposed}};
  static constexpr auto kTable = read<Embedding>(0, "table");
  static constexpr auto kIds = read<Embedding>(1, "ids");
  static constexpr auto kY = write<Embedding>(2, "y");
  static constexpr std::array kOperands{kTable, kIds, kY};
};

// reads: dy (tokens, d), ids (tokens). writes: dtable (vocab, d), or (d, vocab) if `transposed`,
// zero where no id points; with `accumulate` updates dtable. Sums run in token order: bits do not
// depend on threads.
struct EmbeddingGrad {
  bool accumulate = false;
  bool transposed = false;
  bool operator==(const EmbeddingGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"accumulate", &EmbeddingGrad::accumulate},
                                             Field{"transposed", &EmbeddingGrad::transposed}};
  static constexpr auto kDY = read<EmbeddingGrad>(0, "dy");
  static constexpr auto kIds = read<EmbeddingGrad>(1, "ids");
  static constexpr auto kDTable =
      write_or_update<EmbeddingGrad>(2, "dtable", &EmbeddingGrad::accumulate);
  static constexpr std::array kOperands{kDY, kIds, kDTable};
};

}  // namespace snug::program
