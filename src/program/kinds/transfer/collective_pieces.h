// How a sum over ranks is cut into pieces (`piece_elements` of ReduceScatter and AllReduce): what
// plans size and price, and what every backend does. A piece is exchanged by all ranks, then
// summed, before the next. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "program/ir/program.h"
#include "program/kinds/transfer/collective.h"

namespace snug::program {

template <typename Struct>
concept SumOverRanks = requires {
  &Struct::piece_elements;
};

struct SumPiece {
  int64_t elements = 0;     // that a rank sends each other one
  int64_t ranges = 0;       // of tensors, or of parts of them, that it is made of
  bool is_packed = false;   // is rounded or put together in scratch before it is sent
  base::DType sent_type{};  // in which it travels
};

// In their order; none for a rank alone.
std::vector<SumPiece> pieces_of_sum(const ReduceScatter& reduce, const OperationView& view);
std::vector<SumPiece> pieces_of_sum(const AllReduce& reduce, const OperationView& view);

// The `piece_elements` of pieces of up to `bytes` that the ranks send in all, or of 16 KiB a rank
// where that is more; no more than the largest piece needs.
int64_t piece_elements_within(int64_t bytes, const ReduceScatter& reduce,
                              const OperationView& view);
int64_t piece_elements_within(int64_t bytes, const AllReduce& reduce, const OperationView& view);

// Of the largest piece, as decided (comm::scratch_bytes).
int64_t scratch_bytes(const ReduceScatter& reduce, const OperationView& view);
int64_t scratch_bytes(const AllReduce& reduce, const OperationView& view);

}  // namespace snug::program
