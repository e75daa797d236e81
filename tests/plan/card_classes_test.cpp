// Shares of a card's peak by its class, where no card of it was measured.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "../source_folder.h"
#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/kernels/sizes.h"
#include "rate_texts.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::HardwareRow;

program::DataSheetRates find_hardware_rates(std::string_view name) {
  return backends::cuda::rates_of(*find_hardware(name));
}

// TFLOP/s of own attention on the tensor cores of a card, without the launch.
double own_rate(const HardwareRow& row, const std::string& text) {
  const Rates rates = Rates::of_data_sheet(backends::cuda::rates_of(row));
  return key_of(text).work / (seconds_of(rates, text) - rates.roofline().launch_seconds) * 1e-12;
}

// What own attention reaches of a card's peak, by its class: where products take longer, what lies
// between them weighs less; where one block fits, nothing lies next to it. The shares of an H100
// are measured, the others are worked out of them by hand: products of 16 x 8 x 16 a warp makes,
// times their cycles, against 3,100 cycles of other things in the forward pass and 5,800 in the
// gradient. On an A100 two blocks of each fit. Of heads of 256 the forward pass makes twice the
// products next to 1.7 times the other instructions, and the gradient 2.3 times the products, of
// which twice as many count, next to 2.5 times; two blocks fit on Hopper and Blackwell cards for
// servers alone, and on an A100 two of the gradient of values.
TEST(CardClasses, PricesOwnAttentionByTheClassOfCard) {
  struct Share {
    std::vector<const char*> names;
    double forward, gradient, wide_forward, wide_gradient;
  };
  const std::vector<Share> shares{
      {{"rtx-3090", "rtx-4090", "rtx-5090"}, 0.58, 0.40, 0.61, 0.33},
      {{"l40s", "l4", "rtx-6000-ada", "rtx-a6000", "rtx-a5000", "rtx-pro-6000"},
       0.41,
       0.28,
       0.44,
       0.23},
      {{"a100", "a100-40gb"}, 0.395, 0.28, 0.28, 0.16},
      {{"h100", "h200", "h100-pcie"}, 0.215, 0.148, 0.24, 0.123},
      {{"b200"}, 0.11, 0.074, 0.12, 0.062}};
  size_t cards = 0;
  for (const Share& share : shares)
    for (const char* name : share.names) {
      const HardwareRow& row = *find_hardware(name);
      const double peak = row.rates.bf16_flops_per_second * 1e-12;
      const char* own = ", kernel tensor_cores";
      EXPECT_NEAR(own_rate(row, attention(128, own)) / (share.forward * peak), 1, 0.05) << name;
      EXPECT_NEAR(own_rate(row, attention_grad(128, own)) / (share.gradient * peak), 1, 0.05)
          << name;
      EXPECT_NEAR(own_rate(row, attention(256, own)) / (share.wide_forward * peak), 1, 0.05)
          << name;
      EXPECT_NEAR(own_rate(row, attention_grad(256, own)) / (share.wide_gradient * peak), 1, 0.05)
          << name;
      ++cards;
    }
  EXPECT_EQ(cards, backends::cuda::hardware_table().size()) << "each card has a class";
}

// A wide head costs as much as the whole lines of 64 columns to which kernels pad it.
TEST(CardClasses, PricesWideHeadsByTheColumnsThatKernelsHave) {
  const HardwareRow& row = *find_hardware("h100");
  const char* own = ", kernel tensor_cores";
  EXPECT_NEAR(own_rate(row, attention(192, own)), own_rate(row, attention(256, own)), 1e-6);
  EXPECT_NEAR(own_rate(row, attention(160, own)),
              own_rate(row, attention(192, own)) * 160 / backends::cuda::matrix_dims(160), 1e-6);
}

// The plan's blocks are as large as the kernels', which all cards have room for.
TEST(CardClasses, HasTheSharedMemoryOfTheKernels) {
  using namespace backends::cuda;
  EXPECT_EQ(attention_matrix_shared_bytes(128), 80 << 10);
  EXPECT_EQ(attention_matrix_shared_bytes(256), 96 << 10);
  EXPECT_EQ(attention_grad_matrix_shared_bytes(128), (64 << 10) + 1024);
  EXPECT_EQ(attention_grad_matrix_shared_bytes(256), (96 << 10) + 512);
  EXPECT_EQ(attention_values_matrix_shared_bytes(256), (64 << 10) + 512);
  for (int64_t head_dim = 8; head_dim <= kMaxMatrixDims; head_dim += 8) {
    EXPECT_LE(attention_matrix_shared_bytes(head_dim), kLeastSharedBytes) << head_dim;
    EXPECT_LE(attention_grad_matrix_shared_bytes(head_dim), kLeastSharedBytes) << head_dim;
  }
}

// The table that is kept of what plans expect.
TEST(CardClasses, ExpectsOfOwnAttentionWhatIsKept) {
  std::string table =
      "| card | peak | forward, 128 | gradient, 128 | forward, 256 | gradient, 256 |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  const char* own = ", kernel tensor_cores";
  for (const HardwareRow& row : backends::cuda::hardware_table())
    table +=
        fmt::format("| {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |\n", row.name,
                    row.rates.bf16_flops_per_second * 1e-12, own_rate(row, attention(128, own)),
                    own_rate(row, attention_grad(128, own)), own_rate(row, attention(256, own)),
                    own_rate(row, attention_grad(256, own)));
  std::ifstream file(test::source_folder() + "/bench/results/kernels.md");
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(kept.find(table), std::string::npos) << "bench/results/kernels.md has not this table:\n"
                                                 << table;
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
