// balance_loss: what it costs that routers give some experts more tokens than others (Fedus et al.
// 2021, equations 4 to 6, over all layers as transformers has it).
//
// With C(e) the choices of an expert and P(e) the sum of its probabilities, both over all layers
// and all tokens in segments, and N = sum(C) / k the tokens, each counted in every layer,
//
//   loss = factor * experts * sum over e of (C(e) / N) * (P(e) / N)
//
// which is `factor` * k where all experts are alike. C is constant to the derivative. A
// micro-batch's loss counts by its share of the step's tokens, N / layers *
// inverse_document_tokens, so that the losses of a step's micro-batches, on any number of ranks,
// add up to their mean. One without tokens has none.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: inverse_document_tokens (1), one over the tokens of the step's documents, then of each
// layer in turn counts (experts) i32 and sums (experts) of a route. writes: loss (1).
struct BalanceLoss {
  int64_t k = 1;
  float factor = 1.0F;
  bool operator==(const BalanceLoss&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"k", &BalanceLoss::k}, Field{"factor", &BalanceLoss::factor}};
  static constexpr auto kInverseTokens = read<BalanceLoss>(0, "inverse_tokens");
  static constexpr auto kLayers = read_all<BalanceLoss>(1, "layers");
  static constexpr auto kLoss = write<BalanceLoss>(2, "loss");
  static constexpr std::array kOperands{kInverseTokens, kLayers, kLoss};
  static constexpr Traits kTraits{.has_training_form = true, .loss_factors = {kInverseTokens.name}};
};

// Training form: the same, and writes dsums (experts), the loss's gradient in the sums of every
// layer, which is one for all. It stands in the forward pass, so that nothing of the layers is
// kept.
struct BalanceLossTrain {
  int64_t k = 1;
  float factor = 1.0F;
  bool operator==(const BalanceLossTrain&) const = default;
  static constexpr auto kFields =
      std::tuple{Field{"k", &BalanceLossTrain::k}, Field{"factor", &BalanceLossTrain::factor}};
  static constexpr auto kInverseTokens = read<BalanceLossTrain>(0, "inverse_tokens");
  static constexpr auto kLayers = read_all<BalanceLossTrain>(1, "layers");
  static constexpr auto kLoss = write<BalanceLossTrain>(2, "loss");
  static constexpr auto kDSums = write<BalanceLossTrain>(3, "dsums");
  static constexpr std::array kOperands{kInverseTokens, kLayers, kLoss, kDSums};
};

template <typename Struct>
concept BalanceKind =
    std::is_same_v<Struct, BalanceLoss> || std::is_same_v<Struct, BalanceLossTrain>;

// How many layers an operation with so many reads has, and where a layer's tensors are among them.
constexpr int64_t balanced_layers(size_t reads) { return (static_cast<int64_t>(reads) - 1) / 2; }
constexpr size_t counts_read(int64_t layer) { return static_cast<size_t>(1 + 2 * layer); }
constexpr size_t sums_read(int64_t layer) { return counts_read(layer) + 1; }

}  // namespace snug::program
