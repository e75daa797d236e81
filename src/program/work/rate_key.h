// What the speed of an operation depends on: a name that must be equal for two operations to be
// compared (kind, element types, transposes, what it adds to, whether a library does it), and a
// shape in which they may differ. Most kinds are bound by memory and have the bytes that they move
// as their shape; one with another rule states it in its file under kinds/:
//
//   matmul            "matmul n t bf16 bf16 > bf16"        (m, n, k)                  FLOPs
//                     "... by thin"              the same, of another algorithm than the library's
//                     "... copied"               the same, of operands that are copied to be
//                                                without gaps
//   grouped_matmul    that of a matmul: the product of an expert with the mean number of rows
//   attention         "attention bf16 ..."                 (segment tokens, tokens x heads,
//                                                          head_dim, heads / kv_heads) FLOPs
//                     "... by library"           the same, of a library's kernels
//                     "... on tensor cores"      the same, of own kernels there
//                     "... adjusted"             the same, of scores that are capped or biased
//                     "... copied"               the same, of operands that are copied to be
//                                                without gaps
//                     "... few"                  the same, of the segments that are few
//   linear losses     "linear_cross_entropy_train bf16 .." (trained rows, vocab, hidden) FLOPs
//                     "... online"               the same, of sums that follow the vocabulary
//                     "... by wide"              the same, of logits by another algorithm than the
//                                                library's
//   row_norms         "row_norms bf16 bf16 bf16 > f32"     (FLOPs)                    FLOPs
//                     "row_norms bf16 > f32"       of a weight alone       (bytes)    bytes
//   global_norm       "global_norm f32"                    (bytes of a mean tensor)   bytes
//   copy, transfer    "transfer bf16 > bf16"               (bytes)                    link bytes
//   read, write       "storage read", "storage write"      (bytes)                    storage bytes
//   all_gather, ...   "all_gather 8 ranks"                 (bytes sent)               interconnect
//                     "... between hosts"        the same, of memory of the hosts, next to a device
//   bytes on channel host   "adamw bf16 ... on host"             (bytes)                    host
//   bytes all other kinds   "rms_norm bf16 bf16 > bf16"          (bytes)                    bytes
//
// Every decision of an operation is in the name, unless its row in the kind's list says that it
// need not be (kinds/field.h, Priced). The kind's own rule has what is above; a word is added for
// each other decision that differs from what an operation has before a target is asked: " low by
// thin" where a product of low rank has another algorithm than the main one, " products 2".
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "program/kinds/kind.h"

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

// What is asked of a rate table for attention.
struct AttentionRate {
  bool by_library = false;
  bool tensor_cores = false;
  bool is_gradient = false;
  double segment_tokens = 0;
  double head_dim = 0;
  bool adjusts_scores = false;  // which are capped or biased
  // Where they are, or where operands are copied to be without gaps: the name that it has without
  // that.
  std::string plain_name = {};
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
  std::string name;
  // The name without the words of decisions besides the kind's own ones: what is looked up where no
  // sample has the name itself, since calibrations of older builds have only that.
  std::string main_name = {};
  std::vector<double> shape;  // all positive
  Work unit = Work::bytes;
  double work = 0;      // in that unit
  double messages = 0;  // between ranks, one after the other
  // Where operands are copied to be without gaps: the name that it has without that.
  std::string plain_name = {};
  // The name that a collective of the hosts has where the host's memory is the device's, and one
  // transport does both.
  std::string device_name = {};
  bool is_product = false;
  // The type in which factors are multiplied, for work that is counted in FLOPs.
  base::DType multiplies = base::DType::f32;
  std::optional<AttentionRate> attention;
  std::optional<OptimizerRate> optimizer;
};

// How lists of operations call it: products by name and shape, other kinds by name.
std::string line_of(const RateKey& key);

// Shapes count what the batch asks for, not capacities: rows that carry loss, mean segments. Where
// several algorithms share an operation, the name is that of the one that does most of it.
RateKey rate_key(const OperationView& view, const BatchBounds& bounds);

// What one algorithm does of an operation, as it is priced.
struct PricedShare {
  RateKey key;
  Cost cost;
};
// There is at least one; the time of the operation is the sum of theirs.
std::vector<PricedShare> priced_shares(const OperationView& view, const BatchBounds& bounds);

}  // namespace snug::program
