// There are only a few thousand numbers, so one thread adds them up.
#include <span>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/operation_checks.h"
#include "program/kinds/expert/balance_loss.h"

namespace snug::backends::cpu {
namespace {

using program::BalanceLoss;
using program::BalanceLossTrain;

// Over all layers: how many tokens chose each expert, and the sum of its probabilities.
struct Balance {
  int64_t count(int64_t expert) const {
    int64_t count = 0;
    for (int64_t layer = 0; layer < layers; ++layer)
      count += integers_of(reads[program::counts_read(layer)])[expert];
    return count;
  }
  float sum(int64_t expert) const {
    float sum = 0;
    for (int64_t layer = 0; layer < layers; ++layer)
      sum += reads[program::sums_read(layer)].as<const float>()[expert];
    return sum;
  }

  std::span<const Buffer> reads;
  int64_t experts;
  int64_t layers;
};

template <typename Struct>
Balance balance_of(const Invocation& invocation) {
  const std::span<const Buffer> reads = invocation.all(program::Access::read);
  return {reads, invocation[Struct::kLayers].elements(), program::balanced_layers(reads.size())};
}

// Writes the loss. Returns the factor by which a count is multiplied for the gradient of a
// probability sum.
template <typename Struct>
float write_loss(const Struct& loss, const Invocation& invocation, const Balance& balance) {
  int64_t choices = 0;
  double products = 0;
  for (int64_t expert = 0; expert < balance.experts; ++expert) {
    const int64_t count = balance.count(expert);
    choices += count;
    products += static_cast<double>(count) * balance.sum(expert);
  }
  const double tokens = static_cast<double>(choices) / static_cast<double>(loss.k);
  const double inverse = *invocation[Struct::kInverseTokens].template as<const float>();
  const double scale = choices == 0 ? 0.0
                                    : double{loss.factor} * static_cast<double>(balance.experts) *
                                          inverse / (static_cast<double>(balance.layers) * tokens);
  *invocation[Struct::kLoss].template as<float>() = static_cast<float>(scale * products);
  return static_cast<float>(scale);
}

template <program::BalanceKind Struct>
bool supports(const Struct&, const program::OperationView& view, const CpuContext&) {
  return is_of_f32_and_indices(view);
}

void run(const BalanceLoss& loss, const Invocation& invocation, CpuContext&) {
  write_loss(loss, invocation, balance_of<BalanceLoss>(invocation));
}

void run(const BalanceLossTrain& loss, const Invocation& invocation, CpuContext&) {
  const auto balance = balance_of<BalanceLossTrain>(invocation);
  const float scale = write_loss(loss, invocation, balance);
  auto* const dsums = invocation[BalanceLossTrain::kDSums].as<float>();
  for (int64_t expert = 0; expert < balance.experts; ++expert)
    dsums[expert] = scale * static_cast<float>(balance.count(expert));
}

}  // namespace

SNUG_CPU_KIND(BalanceLoss, .supports = supports);
SNUG_CPU_KIND(BalanceLossTrain, .supports = supports);

}  // namespace snug::backends::cpu
