// What the speed of an operation depends on: a name that must be equal for two operations to be
// compared (kind, element types, transposes, what it adds to, of attention whether a library does
// it), and a shape in which they may differ.
//
//   matmul            "matmul n t bf16 bf16 > bf16"        (m, n, k)                  FLOPs
//   attention         "attention bf16 ..."                 (segment tokens, tokens x heads,
//                                                          head_dim, heads / kv_heads) FLOPs
//                     "... by library"           the same, of a library's kernels
//   linear losses     "linear_cross_entropy_train bf16 .." (trained rows, vocab, hidden) FLOPs
//   global_norm       "global_norm f32"                    (bytes of a mean tensor)   bytes
//   all other kinds   "rms_norm bf16 bf16 > bf16"          (bytes)                    bytes
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "program/kind.h"

namespace snug::plan {

// Which resource an operation's work counts.
enum class Work : uint8_t { flops, bytes };

// Ends the name of an attention that the target gives to a library.
inline constexpr std::string_view kByLibrary = " by library";

struct RateKey {
  std::string name;
  std::vector<double> shape;  // all positive
  Work unit = Work::bytes;
  double work = 0;  // in that unit
};

// How lists of operations call it: products by name and shape, other kinds by name.
std::string line_of(const RateKey& key);

// Shapes count what the load says is done, not capacities: rows that carry loss, mean segments.
RateKey rate_key(const program::OperationView& view, const program::Load& load);

}  // namespace snug::plan
