// route: which experts each token goes to, with what weights, and in which order the rows of all
// tokens lie for the experts (Shazeer et al. 2017; Jiang et al. 2024).
//
// A token is given to k experts, so there are always rows = tokens * k rows to compute, whatever
// the router decides. They lie in the order of experts, and of tokens within one: row
// places[token, i] is the token's copy for its i-th expert, and expert e has the rows
// [bounds[e, 0], bounds[e, 1]). No expert has a capacity, and no token is dropped.
//
// Scores of experts are a softmax over all logits, or with `sigmoid` each logit's own sigmoid
// (DeepSeek-V3, GLM-4.5). With `corrected` a number of each expert is added to its score while
// experts are chosen, and to nothing else. With several groups, which are neighbouring experts in
// equal numbers, only the experts of `chosen_groups` of them can be chosen: of those whose two best
// (corrected) scores have the largest sums.
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
// tokens, of which none overlap; with `corrected` correction (experts). writes: weights (tokens,
// k), the scores of the chosen experts, divided by their sum with `normalize`, times `scale`; ids
// (tokens, k) i32, the experts with the k largest scores, the largest first and of equal ones the
// smaller expert first; places (tokens, k) i32; bounds
// (experts, 2) i32; with `balance` counts (experts) i32 and sums (experts), of the tokens in
// segments. Scores are made in f32 of whatever logits are, in f64 of f64. `balance` takes a
// softmax.
struct Route {
  int64_t k = 1;
  bool normalize = true;
  bool balance = false;
  bool sigmoid = false;
  bool corrected = false;
  int64_t groups = 1;
  int64_t chosen_groups = 1;
  float scale = 1.0F;
  bool operator==(const Route&) const = default;
  // Whether experts are chosen by their scores; otherwise by their logits, which have the order of
  // a softmax.
  constexpr bool chooses_by_score() const { return sigmoid || corrected || groups > 1; }
  static constexpr auto kFields = std::tuple{Field{"k", &Route::k},
                                             Field{"normalize", &Route::normalize},
                                             Field{"balance", &Route::balance},
                                             Field{"sigmoid", &Route::sigmoid},
                                             Field{"corrected", &Route::corrected},
                                             Field{"groups", &Route::groups},
                                             Field{"chosen_groups", &Route::chosen_groups},
                                             Field{"scale", &Route::scale}};
  static constexpr auto kLogits = read<Route>(0, "logits");
  static constexpr auto kSegments = read<Route>(1, "segments", &Route::balance);
  static constexpr auto kCorrection = read<Route>(2, "correction", &Route::corrected);
  static constexpr auto kWeights = write<Route>(3, "weights");
  static constexpr auto kIds = write<Route>(4, "ids");
  static constexpr auto kPlaces = write<Route>(5, "places");
  static constexpr auto kBounds = write<Route>(6, "bounds");
  static constexpr auto kCounts = write<Route>(7, "counts", &Route::balance);
  static constexpr auto kSums = write<Route>(8, "sums", &Route::balance);
  static constexpr std::array kOperands{kLogits, kSegments, kCorrection, kWeights, kIds,
                                        kPlaces, kBounds,   kCounts,     kSums};
};

// What is added to the sum of sigmoids by which weights are divided, as in transformers.
inline constexpr double kRouteEpsilon = 1e-20;

// reads: dweights (tokens, k), logits (tokens, experts), ids (tokens, k); with `balance` dsums
// (experts), the gradient of the sums, and segments as above. writes: dlogits (tokens, experts),
// where the choice of experts counts as constant.
struct RouteGrad {
  bool normalize = true;
  bool balance = false;
  bool sigmoid = false;
  float scale = 1.0F;
  bool operator==(const RouteGrad&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"normalize", &RouteGrad::normalize}, Field{"balance", &RouteGrad::balance},
                 Field{"sigmoid", &RouteGrad::sigmoid}, Field{"scale", &RouteGrad::scale}};
  static constexpr auto kDWeights = read<RouteGrad>(0, "dweights");
  static constexpr auto kLogits = read<RouteGrad>(1, "logits");
  static constexpr auto kIds = read<RouteGrad>(2, "ids");
  static constexpr auto kDSums = read<RouteGrad>(3, "dsums", &RouteGrad::balance);
  static constexpr auto kSegments = read<RouteGrad>(4, "segments", &RouteGrad::balance);
  static constexpr auto kDLogits = write<RouteGrad>(5, "dlogits");
  static constexpr std::array kOperands{kDWeights, kLogits, kIds, kDSums, kSegments, kDLogits};
};

}  // namespace snug::program
