// embedding: rows of a table by id; also used to gather rows of any matrix.
#pragma once

#include "program/kinds/field.h"

namespace snug::program {

// reads: table (vocab, d), ids (tokens) i32. writes: y (tokens, d). Ids must lie in the table.
struct Embedding {
  bool operator==(const Embedding&) const = default;
  static constexpr std::tuple<> kFields{};
};

// reads: dy (tokens, d), ids (tokens). writes: dtable (vocab, d), zero where no id points; with
// `accumulate` updates dtable. Sums run in token order: bits do not depend on threads.
struct EmbeddingGrad {
  bool accumulate = false;
  bool operator==(const EmbeddingGrad&) const = default;
  static constexpr auto kFields = std::tuple{Field{"accumulate", &EmbeddingGrad::accumulate}};
};

}  // namespace snug::program
