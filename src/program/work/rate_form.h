// What two operations have in common where a sample of one says how long the other takes: the form
// of their rate key (rate_key.h). Its name is what calibration files have; name() alone makes it,
// and nobody takes it apart. What a name is made of, in its order:
//
//   matmul            "matmul n t bf16 bf16 > bf16"
//                     "... stochastic"           rounded by chance
//                     "... by thin"              of another algorithm than the library's
//                     "... copied"               of operands that are copied to be without gaps
//   grouped_matmul    that of a matmul
//   attention         "attention bf16 ..."
//                     "... cached"               of queries that are fewer than their keys
//                     "... by library"           of a library's kernels
//                     "... on tensor cores"      of own kernels there
//                     "... adjusted"             of scores that are capped or biased
//                     "... quantized"            of keys and values in 8 bits
//                     "... copied"               as of a matmul
//                     "... few"                  of the segments that are few
//   linear losses     "linear_cross_entropy_train bf16 .."
//                     "... online"               of sums that follow the vocabulary
//                     "... by wide"              of logits by another algorithm than the library's
//   global_norm       "global_norm f32"
//   read, write       "storage read", "storage write"
//   all_gather, ...   "all_gather 8 ranks"
//                     "... on 2 nodes"           of ranks on several machines
//                     "... between hosts"        of memory of the hosts, next to a device
//   all other kinds   "rms_norm bf16 bf16 > bf16"
//                     "... on host"              of what is done on channel host
//
// Every decision of an operation is in the form, unless its row in the kind's list says that it
// need not be (kinds/field.h, Priced). The kind's own rule has what is above; `decisions` has a
// word for each other one that differs from what an operation has before a target is asked: "low by
// thin" where a product of low rank has another algorithm than the main one, "products 2".
//
// Pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "program/kinds/product/product_algorithm.h"

namespace snug::program {

struct RateForm {
  struct Transposes {
    bool a = false;
    bool b = false;
    auto operator<=>(const Transposes&) const = default;
  };

  // A word that outlives the form: of the kind, or of what several kinds do alike.
  std::string_view kind = {};
  std::optional<Transposes> transposes = {};
  // The types of what it reads, writes and updates tell the forms of a kind apart. Only floats:
  // integers are the same in all.
  std::vector<base::DType> reads = {};
  std::vector<base::DType> writes = {};
  std::vector<base::DType> updates = {};
  int32_t ranks = 0;
  int32_t nodes = 1;
  bool between_hosts = false;
  bool stochastic = false;
  bool cached = false;
  bool by_library = false;
  bool tensor_cores = false;
  bool online = false;
  ProductAlgorithm algorithm = ProductAlgorithm::library;  // rated_as() of it
  bool adjusted = false;
  bool quantized = false;
  bool copied = false;
  std::vector<std::string> decisions = {};
  bool few = false;
  bool on_host = false;

  std::string name() const;
  auto operator<=>(const RateForm&) const = default;
};

// The algorithm whose rates a product has: the library's for what was not lowered, and for what is
// timed, since samples of that are of whichever way was the faster.
ProductAlgorithm rated_as(ProductAlgorithm algorithm);

// Whose samples are looked up where a form has none of its own: without the words of decisions,
// which calibrations of older builds have not,
RateForm without_decisions(RateForm form);
// and also without the copies of operands, with scores as they are and keys in full width;
RateForm plain(RateForm form);
// with the type that has the same bytes, and on a card the same rates;
RateForm with_bf16_for_f16(RateForm form);
// where the host's memory is the device's, so that one transport does both.
RateForm between_devices(RateForm form);

}  // namespace snug::program
