// route: which experts each token goes to, with what weights, and in which order the rows of all
// tokens lie for the experts (Shazeer et al. 2017; Jiang et al. 2024).
//
// A token is given to k experts, so there are always rows = tokens * k rows to compute, whatever
// the router decides. They lie in the order of experts, and of tokens within one: row
// places[token, i] is the token's copy for its i-th expert, and expert e has the rows
// [bounds[e, 0], bounds[e, 1]). No expert has a capacity, and no token is dropped.
//
// With `balance` it also gives what the loss that balances experts needs of the layer
// (program/kinds/expert/balance_loss.h), in the same pass: of the tokens in segments, how many
// chose each expert, and the sum of their probabilities of it. Padding, which lies outside all
// segments, counts for nothing there.
#pragma once

#include <array>
#include <cstdint>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"

namespace snug::program {

// reads: logits (tokens, experts); with `balance` segments (any number, 2) i32, [begin, end) in
// tokens, of which none overlap. writes: weights (tokens, k), the k largest probabilities of the
// softmax over all experts, divided by their sum with `normalize`; ids (tokens, k) i32, their
// experts, the likeliest first and of equal ones the smaller first; places (tokens, k) i32; bounds
// (experts, 2) i32; with `balance` counts (experts) i32 and sums (experts), of the tokens in
// segments. Probabilities are made in f32 of whatever logits are, in f64 of f64.
struct Route {
  int64_t k = 1;
  bool normalize = true;
  bool balance = false;
  bool operator==(const Route&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"k", &Route::k}, Field{"normalize", &Route::normalize},
                 Field{"balance", &Route::balance}};
  static constexpr auto kLogits = read<Route>(0, "logits");
  static constexpr auto kSegments = read<Route>(1, "segments", &Route::balance);
  static constexpr auto kWeights = write<Route>(2, "weights");
  static constexpr auto kIds = write<Route>(3, "ids");
  static constexpr auto kPlaces = write<Route>(4, "places");
  static constexpr auto kBounds = write<Route>(5, "bounds");
  static constexpr auto kCounts = write<Route>(6, "counts", &Route::balance);
  static constexpr auto kSums = write<Route>(7, "sums", &Route::balance);
  static constexpr std::array kOperands{kLogits, kSegments, kWeights, kIds,
                                        kPlaces, kBounds,   kCounts,  kSums};
};

// reads: dweights (tokens, k), logits (tokens, experts), ids (tokens, k); with `balance` dsums
// (experts), the gradient of the sums, and segments as above. writes: dlogits (tokens, experts),
// where the choice of experts counts as constant.
struct RouteGrad {
  bool normalize = true;
  bool balance = false;
  bool operator==(const RouteGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"normalize", &RouteGrad::normalize}, Field{"balance", &RouteGrad::balance}};
  static constexpr auto kDWeights = read<RouteGrad>(0, "dweights");
  static constexpr auto kLogits = read<RouteGrad>(1, "logits");
  static constexpr auto kIds = read<RouteGrad>(2, "ids");
  static constexpr auto kDSums = read<RouteGrad>(3, "dsums", &RouteGrad::balance);
  static constexpr auto kSegments = read<RouteGrad>(4, "segments", &RouteGrad::balance);
  static constexpr auto kDLogits = write<RouteGrad>(5, "dlogits");
  static constexpr std::array kOperands{kDWeights, kLogits, kIds, kDSums, kSegments, kDLogits};
};

}  // namespace snug::program
