// Sums of ranks as they must be, for tests of every implementation: what a rank has at an index is
// a function of both, so each rank can make the sum itself, in fp32 by rank.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/random.h"
#include "comm/communicator.h"

namespace snug::comm {

using Bytes = std::vector<std::byte>;

inline float rounded(float value, base::DType type) {
  return type == base::DType::f32 ? value : base::to_float(base::to_bfloat16(value));
}

// Between -4 and 4, with all bits of an fp32, and other for every rank, part and index.
inline float value_of(int rank, int64_t part, int64_t index) {
  const auto words = base::philox(
      {static_cast<uint32_t>(index), static_cast<uint32_t>(part), static_cast<uint32_t>(rank), 7},
      {1, 2});
  return (base::uniform(words[0]) - 0.5F) * 8.0F * (1.0F + base::uniform(words[1]) * 0x1p-12F);
}

inline float get(const Bytes& bytes, base::DType type, int64_t index) {
  if (type == base::DType::f32) {
    float value;
    std::memcpy(&value, bytes.data() + index * 4, 4);
    return value;
  }
  base::BFloat16 value;
  std::memcpy(&value, bytes.data() + index * 2, 2);
  return base::to_float(value);
}

inline void put(Bytes& bytes, base::DType type, int64_t index, float value) {
  const base::BFloat16 narrow = base::to_bfloat16(value);
  if (type == base::DType::f32) std::memcpy(bytes.data() + index * 4, &value, 4);
  if (type == base::DType::bf16) std::memcpy(bytes.data() + index * 2, &narrow, 2);
}

inline Bytes values_of(int rank, int64_t part, int64_t elements, base::DType type) {
  Bytes bytes(elements * base::size_of(type));
  for (int64_t i = 0; i < elements; ++i) put(bytes, type, i, value_of(rank, part, i));
  return bytes;
}

// Of elements that have `type` and travel as `sent`, before the result is rounded.
inline float sum_of(int ranks, int64_t part, int64_t index, base::DType type, base::DType sent) {
  float sum = rounded(rounded(value_of(0, part, index), type), sent);
  for (int rank = 1; rank < ranks; ++rank)
    sum += rounded(rounded(value_of(rank, part, index), type), sent);
  return sum;
}

// The pieces of sums that are sent in f32 or narrower, with the memory of their scratch.
struct Pieces {
  int64_t elements = 0;
  std::vector<std::byte> scratch;
  std::vector<int64_t> done = {};

  Pieces(int ranks, int64_t most)
      : elements(most), scratch(scratch_bytes(ranks, most, base::DType::f32)) {}
  operator SumPieces() { return {.elements = elements, .scratch = scratch, .done = &done}; }
};

// For sums of so many elements in all, in pieces of a million at most.
inline Pieces scratch_for(const Communicator& communicator, int64_t elements) {
  const int ranks = communicator.size();
  return {ranks, std::min((elements + ranks - 1) / ranks, (int64_t{1} << 20) / ranks)};
}

}  // namespace snug::comm
