// Shares of a card's peak by its class, where no card of it was measured.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/hardware_table.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::HardwareRow;

program::DataSheetRates find_hardware_rates(std::string_view name) {
  return backends::cuda::rates_of(*find_hardware(name));
}

// What own attention reaches of a card's peak, by its class: where products take longer, what lies
// between them weighs less; where one block fits, nothing lies next to it. The shares of an H100
// are measured, the others are worked out of them by hand: products of 16 x 8 x 16 a warp makes,
// times their cycles, against 3,000 cycles of other things in the forward pass and 5,600 in the
// gradient. On an A100 two blocks of the gradient fit, and one of the forward pass.
TEST(CardClasses, PricesOwnAttentionByTheClassOfCard) {
  struct Share {
    std::vector<const char*> names;
    double forward, gradient;
  };
  const auto rate = [](const char* name, const std::string& text) {
    const Rates rates = Rates::of_data_sheet(find_hardware_rates(name));
    return key_of(text).work / (seconds_of(rates, text) - rates.roofline().launch_seconds);
  };
  const std::vector<Share> shares{
      {{"rtx-3090", "rtx-4090", "rtx-5090"}, 0.58, 0.40},
      {{"l40s", "l4", "rtx-6000-ada", "rtx-a6000", "rtx-a5000", "rtx-pro-6000"}, 0.41, 0.28},
      {{"a100", "a100-40gb"}, 0.25, 0.28},
      {{"h100", "h200", "h100-pcie"}, 0.215, 0.148},
      {{"b200"}, 0.11, 0.074}};
  size_t cards = 0;
  for (const Share& share : shares)
    for (const char* name : share.names) {
      const double peak = find_hardware(name)->rates.bf16_flops_per_second;
      EXPECT_NEAR(rate(name, attention(128, ", kernel tensor_cores")) / (share.forward * peak), 1,
                  0.05)
          << name;
      EXPECT_NEAR(
          rate(name, attention_grad(128, ", kernel tensor_cores")) / (share.gradient * peak), 1,
          0.05)
          << name;
      ++cards;
    }
  EXPECT_EQ(cards, backends::cuda::hardware_table().size()) << "each card has a class";
}

// What a product takes follows from the data sheet's peak and a clock, which is that of a card.
TEST(CardClasses, HasCyclesThatFitItsPeakAndItsClock) {
  for (const HardwareRow& row : backends::cuda::hardware_table()) {
    const double of_a_cycle = 4096 / find_hardware_rates(row.name).tensor_cores.peak_cycles;
    const double clock = row.rates.bf16_flops_per_second / (4 * row.multiprocessors * of_a_cycle);
    EXPECT_GT(clock, 1.4e9) << row.name;
    EXPECT_LT(clock, 2.7e9) << row.name;
  }
}

// Products of cards whose sums in f32 are halved come nearer to their peak than a Hopper card's.
TEST(CardClasses, PricesProductsByTheClassOfCard) {
  for (const HardwareRow& row : backends::cuda::hardware_table()) {
    const bool is_geforce = row.driver_name.find("GeForce") != std::string::npos;
    const double share = is_geforce ? 0.85 : 0.74;
    EXPECT_NEAR(Rates::of_data_sheet(find_hardware_rates(row.name)).roofline().flops_per_second,
                share * row.rates.bf16_flops_per_second, 1e6)
        << row.name;
  }
}

}  // namespace
}  // namespace snug::plan
