// A step's products are those that its matrices ask for, and measuring them gives times.
#include "bench/product_rates.h"

#include <gtest/gtest.h>

#include "backends/backend.h"
#include "bench/read_bandwidth.h"
#include "formats/recipe/choices.h"
#include "small_model.h"

namespace snug::bench {
namespace {

constexpr int64_t kTokens = 256;

plan::TrainingSpec small_spec(formats::Method method) {
  plan::TrainingSpec spec;
  spec.model = small_model(
      {.hidden = 128, .layers = 3, .heads = 2, .kv_heads = 1, .mlp = 192, .vocab = 512});
  spec.method = method;
  spec.compute = program::DType::f32;
  spec.lora.r = 8;
  spec.row_tokens = spec.lora.row_tokens = kTokens;
  return spec;
}

// Weights of the linears of all layers, and those of layer 0 whose input needs no gradient.
constexpr double kQkv = 128 * (128 + 64 + 64);
constexpr double kLinears = 3 * (kQkv + 128 * 128 + 3 * 128 * 192);
constexpr double kHead = 512 * 128;

double flops_of(const std::vector<JobProduct>& products, bool narrow) {
  double flops = 0;
  for (const JobProduct& product : products)
    if (product.is_narrow == narrow) flops += static_cast<double>(product.count) * product.flops();
  return flops;
}

TEST(JobProducts, FullTrainingMultipliesEveryWeightThreeTimes) {
  const auto backend = backends::open_backend("cpu", {.threads = 1});
  const plan::TrainingSpec spec = small_spec(formats::Method::full);
  const auto products = job_products(plan::plan_training(spec, *backend), spec);
  EXPECT_EQ(flops_of(products, false) + flops_of(products, true),
            2 * kTokens * 3 * (kLinears + kHead));
}

TEST(JobProducts, LoraMultipliesFrozenWeightsTwiceAndItsOwnThreeTimes) {
  const auto backend = backends::open_backend("cpu", {.threads = 1});
  plan::TrainingSpec spec = small_spec(formats::Method::lora);
  const auto products = job_products(plan::plan_training(spec, *backend), spec);
  // Nothing below the first layer's adapters asks for a gradient of its input.
  EXPECT_EQ(flops_of(products, false), 2 * kTokens * (2 * (kLinears + kHead) - kQkv));
  const double ranks = 3 * (256 + 192 + 192 + 256 + 320 + 320 + 320);
  EXPECT_NEAR(flops_of(products, true) / (2 * kTokens * 3 * 8 * ranks), 1.0, 0.05);
  spec.accumulation = 3;
  const auto thrice = job_products(plan::plan_training(spec, *backend), spec);
  EXPECT_EQ(flops_of(thrice, false), 3 * flops_of(products, false));
}

TEST(ProductRates, TimesEveryProduct) {
  backends::cpu::MatmulSpec spec{.m = 64, .n = 1100, .k = 128};
  spec.a_strides[0] = spec.k;
  spec.b_strides[0] = spec.n;
  spec.c_stride = spec.n;
  backends::cpu::MatmulSpec transposed = spec;
  transposed.b_strides[0] = 1;
  transposed.b_strides[1] = spec.k;
  const auto rates = measure_products({{spec, 2, false}, {transposed, 1, false}}, 0.001);
  ASSERT_EQ(rates.size(), 2U);
  for (const ProductRate& rate : rates) {
    EXPECT_GT(rate.seconds, 0);
    EXPECT_GT(rate.own_seconds, 0);
    EXPECT_EQ(rate.piece.m, 64);
    EXPECT_TRUE(rate.piece.n == 1100 || rate.piece.n == 512) << rate.piece.n;
  }
}

TEST(ReadBandwidth, IsPositive) { EXPECT_GT(read_bandwidth(int64_t{64} << 20, 2, 2), 1e8); }

}  // namespace
}  // namespace snug::bench
