// What the speed of an operation depends on: a form that must be equal for two operations to be
// compared (rate_form.h), and a shape in which they may differ. Most kinds are bound by memory and
// have the bytes that they move as their shape; one with another rule states it in its file under
// kinds/:
//
//   matmul            (m, n, k)                                                        FLOPs
//   grouped_matmul    the product of an expert with the mean number of rows            FLOPs
//   attention         (segment tokens, tokens x heads, head_dim, heads / kv_heads)     FLOPs
//   gated_delta_rule  (tokens x heads, dk, dv)                                         FLOPs
//   linear losses     (trained rows, vocab, hidden)                                    FLOPs
//   row_norms         (FLOPs)                                                          FLOPs
//                     (bytes), of a weight alone                                       bytes
//   global_norm       (bytes of a mean tensor)                                         bytes
//   copy, transfer    (bytes)                                                          link bytes
//   read, write       (bytes)                                                          storage
//   bytes all_gather, ...   (bytes sent) interconnect on channel host   (bytes) host all other
//   kinds   (bytes)                                                          bytes
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "program/kinds/kind.h"
#include "program/work/rate_form.h"

namespace snug::program {

// Which resource an operation's work counts: arithmetic, the memory's bandwidth, that of the link
// between host and device, that of files, that of the host's memory next to a device, or that of
// the links between ranks of a machine or of several.
enum class Work : uint8_t {
  flops,
  bytes,
  link_bytes,
  storage_bytes,
  host_bytes,
  interconnect_bytes,
  network_bytes,
};
// What it is counted in.
constexpr auto words_of(Work /*type*/) {
  return base::words<Work>({{Work::flops, "flops"},
                            {Work::bytes, "bytes"},
                            {Work::link_bytes, "link_bytes"},
                            {Work::storage_bytes, "storage_bytes"},
                            {Work::host_bytes, "host_bytes"},
                            {Work::interconnect_bytes, "interconnect_bytes"},
                            {Work::network_bytes, "network_bytes"}});
}

// What else is asked of a rate table for attention.
struct AttentionRate {
  bool is_gradient = false;
  double segment_tokens = 0;
  double head_dim = 0;
  // The numbers of keys and values in 16 bits that decoding in parts reads, and the heads that
  // share each.
  double cache_numbers = 0;
  double shared_heads = 0;
};

// What is asked of a rate table for the step of an optimizer.
enum class OptimizerForm : uint8_t { f32, stochastic, coded };
struct OptimizerRate {
  OptimizerForm form = OptimizerForm::f32;  // coded: with moments in 8 bits
  double weights = 0;
};

struct RateKey {
  RateForm form = {};
  std::vector<double> shape = {};  // all positive
  Work unit = Work::bytes;
  double work = 0;      // in that unit
  double messages = 0;  // between ranks, one after the other
  bool is_product = false;
  // The type in which factors are multiplied, for work that is counted in FLOPs.
  base::DType multiplies = base::DType::f32;
  std::optional<AttentionRate> attention = {};
  std::optional<OptimizerRate> optimizer = {};
};

// How lists of operations call it: products by name and shape, other kinds by name.
std::string line_of(const RateKey& key);

// Shapes count what the batch asks for, not capacities: rows that carry loss, mean segments. Where
// several algorithms share an operation, the form is that of the one that does most of it.
RateKey rate_key(const OperationView& view, const BatchBounds& bounds);

// What one algorithm does of an operation, as it is priced.
struct PricedShare {
  RateKey key;
  Cost cost;
};
// There is at least one; the time of the operation is the sum of theirs.
std::vector<PricedShare> priced_shares(const OperationView& view, const BatchBounds& bounds);

}  // namespace snug::program
