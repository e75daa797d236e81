#include <span>
#include <vector>

#include "backends/reference/elements.h"
#include "backends/reference/kinds.h"
#include "program/kinds/expert/balance_loss.h"

namespace snug::backends::reference {
namespace {

using program::BalanceLoss;
using program::BalanceLossTrain;

// Counts and sums over all layers, and the factor that turns their products into the loss.
template <typename T>
struct Balance {
  std::vector<T> counts, sums;
  T scale = 0;
};

template <typename T, typename Struct>
Balance<T> balance_of(const Struct& loss, const Invocation& invocation) {
  const auto experts = static_cast<size_t>(invocation[Struct::kLayers].elements());
  const std::span<const Buffer> reads = invocation.all(program::Access::read);
  const int64_t layers = program::balanced_layers(reads.size());
  Balance<T> balance{std::vector<T>(experts, 0), std::vector<T>(experts, 0), 0};
  T choices = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const Integers counts(reads[program::counts_read(layer)]);
    const Floats<T> sums(reads[program::sums_read(layer)]);
    for (size_t expert = 0; expert < experts; ++expert) {
      balance.counts[expert] += static_cast<T>(counts[static_cast<int64_t>(expert)]);
      balance.sums[expert] += sums[static_cast<int64_t>(expert)];
      choices += static_cast<T>(counts[static_cast<int64_t>(expert)]);
    }
  }
  if (choices == 0) return balance;
  const T tokens = choices / static_cast<T>(loss.k);
  const T inverse = Floats<T>(invocation[Struct::kInverseTokens])[0];
  balance.scale = static_cast<T>(loss.factor) * static_cast<T>(experts) * inverse /
                  (static_cast<T>(layers) * tokens);
  return balance;
}

template <typename T, typename Struct>
void write_loss(const Balance<T>& balance, const Invocation& invocation) {
  T products = 0;
  for (size_t expert = 0; expert < balance.counts.size(); ++expert)
    products += balance.counts[expert] * balance.sums[expert];
  Floats<T>(invocation[Struct::kLoss]).set(0, balance.scale * products);
}

template <typename T>
void run(const BalanceLoss& loss, const Invocation& invocation) {
  write_loss<T, BalanceLoss>(balance_of<T>(loss, invocation), invocation);
}

template <typename T>
void run(const BalanceLossTrain& loss, const Invocation& invocation) {
  const Balance<T> balance = balance_of<T>(loss, invocation);
  write_loss<T, BalanceLossTrain>(balance, invocation);
  const Floats<T> dsums(invocation[BalanceLossTrain::kDSums]);
  for (size_t expert = 0; expert < balance.counts.size(); ++expert)
    dsums.set(static_cast<int64_t>(expert), balance.scale * balance.counts[expert]);
}

}  // namespace

SNUG_REFERENCE_KIND(BalanceLoss);
SNUG_REFERENCE_KIND(BalanceLossTrain);

}  // namespace snug::backends::reference
