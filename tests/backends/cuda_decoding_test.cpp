// Attention while decoding on the CUDA backend: when its keys are split over several blocks, what
// scratch that takes, and that it agrees with the prefill, which other kernels compute.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cuda/attention/attention_needs.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/device/hardware_table.h"
#include "comparison.h"
#include "operation_case.h"
#include "program/kinds/attention/attention.h"

namespace snug::backends::test {
namespace {

using cuda::SplitShape;

// Of Llama 3.1 8B; an H100 has 132 multiprocessors, which are to have 528 blocks.
constexpr SplitShape kDecode{
    .heads = 32, .kv_heads = 8, .head_dim = 128, .q_tokens = 1, .k_tokens = 131072, .segments = 1};

TEST(DecodingSplits, fill_the_card_but_no_split_is_tiny) {
  const cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
  const auto splits = [&](SplitShape shape) { return cuda::attention_splits(shape, card); };
  EXPECT_EQ(splits(kDecode), 64) << "66 to fill the card, at most 64";
  SplitShape batch = kDecode;
  batch.q_tokens = batch.segments = 16;
  EXPECT_EQ(splits(batch), 5) << "16 x 8 blocks a split, 8192 keys a query";
  SplitShape brief = kDecode;
  brief.k_tokens = 1000;
  EXPECT_EQ(splits(brief), 8) << "a split has 4 x 32 keys";
  brief.k_tokens = 100;
  EXPECT_EQ(splits(brief), 1);
  SplitShape many_heads = kDecode;
  many_heads.kv_heads = 1;
  EXPECT_EQ(splits(many_heads), 64);
  many_heads.q_tokens = many_heads.segments = 4;
  EXPECT_EQ(splits(many_heads), 33) << "four blocks of eight heads a query";
  EXPECT_EQ(cuda::attention_splits_bytes(kDecode, 64), 32 * 64 * 130 * 4);
}

TEST(DecodingSplits, leave_training_and_prefill_alone) {
  const cuda::Card card = cuda::card_of(*cuda::find_hardware("h100"));
  SplitShape prefill = kDecode;
  prefill.q_tokens = 512;
  EXPECT_EQ(cuda::attention_splits(prefill, card), 0);
  SplitShape training = kDecode;
  training.q_tokens = training.k_tokens = training.segments = 2048;
  EXPECT_EQ(cuda::attention_splits(training, card), 0);
}

struct Cache {
  int64_t tokens = 300;
  program::Attention attention;
  Values q, k, v;  // (tokens, heads * head_dim), ...

  int64_t q_width() const { return attention.heads * attention.head_dim; }
  int64_t k_width() const { return attention.kv_heads * attention.head_dim; }
};

struct Outputs {
  Values o, lse;
};

// Queries [first, end) against the keys before `end`.
Outputs attend(Backend& backend, const Types& types, Random& random, const Cache& cache,
               int64_t first, int64_t end) {
  CaseBuilder builder(types, random);
  const program::Shape q_shape{end - first, cache.q_width()};
  const program::Shape k_shape{cache.tokens, cache.k_width()};
  const auto q = builder.input(
      q_shape, types.activation,
      {cache.q.begin() + first * cache.q_width(), cache.q.begin() + end * cache.q_width()});
  const auto k = builder.input(k_shape, types.activation, cache.k);
  const auto v = builder.input(k_shape, types.activation, cache.v);
  const auto q_bounds = builder.index({1, 2}, {0, static_cast<double>(end - first)});
  const auto k_bounds = builder.index({1, 2}, {0, static_cast<double>(end)});
  const auto o = builder.output_activation(q_shape);
  const auto lse = builder.output_measure({cache.attention.heads, end - first});
  OperationCase made =
      builder.finish("attend", cache.attention, {q, k, v, q_bounds, k_bounds}, {o, lse});
  RunResult result = guarded_run(backend, made.program, made.inputs);
  for (const std::string& violation : result.violations) ADD_FAILURE() << violation;
  return {result.values.at(o), result.values.at(lse)};
}

class Decoding : public ::testing::TestWithParam<int64_t> {};

TEST_P(Decoding, agrees_with_the_prefill) {
  Random random(test_seed());
  cuda::CudaBackend backend({});
  const int64_t head_dim = GetParam();
  Cache cache;
  cache.attention = {.heads = 6,
                     .kv_heads = 2,
                     .head_dim = head_dim,
                     .scale = 1.0F / std::sqrt(static_cast<float>(head_dim)),
                     .causal = true};
  cache.q = normal(random, cache.tokens * cache.q_width());
  cache.k = normal(random, cache.tokens * cache.k_width());
  cache.v = normal(random, cache.tokens * cache.k_width());
  for (const Types& types : {kAllTypes[0], kAllTypes[1], kAllTypes[4]}) {
    SCOPED_TRACE(
        fmt::format("heads of {} in {}, SNUG_TEST_SEED={}", head_dim, types.name, test_seed()));
    const double tolerance = types.activation == program::DType::f32 ? 1e-5 : 1e-2;
    const Outputs prefill = attend(backend, types, random, cache, 0, cache.tokens);
    for (const int64_t token : {0, 1, 63, 64, 65, 255, 299}) {
      const Outputs decode = attend(backend, types, random, cache, token, token + 1);
      const auto row = prefill.o.begin() + token * cache.q_width();
      EXPECT_LE(relative_error(decode.o, Values(row, row + cache.q_width())), tolerance) << token;
      Values lse;
      for (int64_t head = 0; head < cache.attention.heads; ++head)
        lse.push_back(prefill.lse[static_cast<size_t>(head * cache.tokens + token)]);
      EXPECT_LE(relative_error(decode.lse, lse), tolerance) << "lse of " << token;
    }
  }
}

// A model that has diverged is to be seen, not to talk on.
TEST(DecodingSplits, pass_on_what_is_no_number) {
  Random random(test_seed());
  cuda::CudaBackend backend({});
  Cache cache;
  cache.attention = {.heads = 2, .kv_heads = 1, .head_dim = 64, .scale = 0.125F};
  cache.q = normal(random, cache.tokens * cache.q_width());
  cache.k = normal(random, cache.tokens * cache.k_width());
  cache.v = normal(random, cache.tokens * cache.k_width());
  cache.q[static_cast<size_t>((cache.tokens - 1) * cache.q_width())] = std::nan("");
  const Outputs outputs =
      attend(backend, kAllTypes[0], random, cache, cache.tokens - 1, cache.tokens);
  EXPECT_TRUE(std::isnan(outputs.o[0])) << "of the head whose query is none";
  EXPECT_TRUE(std::isnan(outputs.lse[0]));
  EXPECT_FALSE(std::isnan(outputs.o[64]));
  EXPECT_FALSE(std::isnan(outputs.lse[1]));
}

INSTANTIATE_TEST_SUITE_P(HeadDims, Decoding, ::testing::Values(64, 128, 256));

}  // namespace
}  // namespace snug::backends::test
