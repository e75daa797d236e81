#include "runtime/loading/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/quantization/nf4.h"
#include "runtime/loading/stored_weight.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using base::DType;
using testing::TinyRun;

// A model with a matrix of enough values for statistics and for several threads.
models::ModelConfig wide_model() {
  models::ModelConfig config = testing::tiny_model();
  config.vocab_size = 100'003;
  config.num_layers = 1;
  config.attention_bias = true;
  return config;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double kurtosis = 0;
};

Moments moments_of(const std::vector<float>& values) {
  const auto count = static_cast<double>(values.size());
  Moments moments;
  for (const float value : values) moments.mean += value / count;
  double fourth = 0;
  double variance = 0;
  for (const float value : values) {
    const double centred = value - moments.mean;
    variance += centred * centred / count;
    fourth += centred * centred * centred * centred / count;
  }
  moments.deviation = std::sqrt(variance);
  moments.kurtosis = fourth / (variance * variance);
  return moments;
}

TEST(RandomWeights, AreNormalWithTheInitializersRange) {
  const models::ModelConfig config = wide_model();
  TinyRun run({.model = config, .init_seed = 42});
  random_weights(config, run.executor());
  const Moments moments = moments_of(run.floats("model.embed_tokens.weight"));
  // 1.2 million values: five standard errors.
  EXPECT_NEAR(moments.mean, 0.0, 5 * 0.02 / std::sqrt(1.2e6));
  EXPECT_NEAR(moments.deviation, 0.02, 5 * 0.02 / std::sqrt(2.4e6));
  EXPECT_NEAR(moments.kurtosis, 3.0, 5 * std::sqrt(24 / 1.2e6));
}

TEST(RandomWeights, NormsAreOneAndBiasesZero) {
  const models::ModelConfig config = wide_model();
  TinyRun run({.model = config, .init_seed = 42});
  run.scribble({"model.norm.weight", "model.layers.0.self_attn.q_proj.bias"}, 1);
  random_weights(config, run.executor());
  EXPECT_EQ(run.floats("model.norm.weight"), std::vector<float>(12, 1.0F));
  EXPECT_EQ(run.floats("model.layers.0.self_attn.q_proj.bias"), std::vector<float>(12, 0.0F));
  EXPECT_EQ(run.floats("inverse_frequencies"), models::inverse_frequencies(config));
}

// The numbers of transformers' class: softplus of the alphas is 0.8, and 0.8 less beta.
TEST(RandomWeights, NumbersOfActivationsAreThoseOfTransformers) {
  models::ModelConfig tiny = testing::tiny_model();
  tiny.model_type = "apertus";
  TinyRun run({.model = tiny, .init_seed = 42});
  run.scribble({"model.layers.1.mlp.act_fn.alpha_n", "model.layers.1.mlp.act_fn.beta"}, 1);
  random_weights(tiny, run.executor());
  const auto number = [&](const char* name) {
    return run.floats(std::string("model.layers.1.mlp.act_fn.") + name).front();
  };
  EXPECT_NEAR(std::log1p(std::exp(number("alpha_p"))), 0.8F, 1e-2);
  EXPECT_NEAR(std::log1p(std::exp(number("alpha_n"))), 0.3F, 1e-2);
  EXPECT_EQ(number("beta"), 0.5F);
  EXPECT_EQ(number("eps"), -1e-6F);
}

TEST(RandomWeights, DoNotDependOnTheBackendOrItsNumberOfThreads) {
  const models::ModelConfig config = wide_model();
  TinyRun one({.model = config, .init_seed = 42});
  random_weights(config, one.executor());
  for (const int threads : {1, 2, 3, 7, 0}) {
    TinyRun many({.model = config, .backend = "cpu", .threads = threads, .init_seed = 42});
    random_weights(config, many.executor());
    for (const models::Weight& weight : models::weights_of(config))
      EXPECT_TRUE(one.bytes(weight.name) == many.bytes(weight.name))
          << weight.name << " with " << threads;
  }
}

TEST(RandomWeights, DependOnSeedAndName) {
  const models::ModelConfig config = testing::tiny_model();
  TinyRun one({.model = config, .init_seed = 1});
  TinyRun two({.model = config, .init_seed = 2});
  random_weights(config, one.executor());
  random_weights(config, two.executor());
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  EXPECT_FALSE(one.bytes(name) == two.bytes(name));
  EXPECT_FALSE(one.bytes(name) == one.bytes("model.layers.0.mlp.gate_proj.weight"));
  EXPECT_FALSE(one.bytes(name) == one.bytes("model.layers.1.mlp.up_proj.weight"));
}

TEST(RandomWeights, MasterKeepsWhatTheWeightRounds) {
  const models::ModelConfig config = testing::tiny_model();
  TinyRun plain({.model = config, .init_seed = 5});
  TinyRun mastered({.model = config, .compute = DType::bf16, .init_seed = 5});
  TinyRun frozen(
      {.model = config, .method = formats::Method::lora, .compute = DType::bf16, .init_seed = 5});
  random_weights(config, plain.executor());
  random_weights(config, mastered.executor());
  random_weights(config, frozen.executor());
  mastered.executor().run(program::ProgramName::prepare);
  for (const models::Weight& weight : models::weights_of(config)) {
    EXPECT_TRUE(mastered.bytes("master." + weight.name) == plain.bytes(weight.name));
    EXPECT_TRUE(mastered.bytes(weight.name) == frozen.bytes(weight.name));
  }
}

template <typename T>
std::string text_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// What is quantised are the weights that a job of the same compute type has unquantised.
class RandomNf4 : public ::testing::TestWithParam<DType> {};

TEST_P(RandomNf4, AreTheQuantisedValues) {
  models::ModelConfig config = testing::tiny_model();
  // Weights of several blocks, the last one partial, and of several pieces of a slot.
  config.hidden_size = 24;
  config.intermediate_size = 100'001;
  config.num_layers = 1;
  const DType compute = GetParam();
  TinyRun plain(
      {.model = config, .method = formats::Method::lora, .compute = compute, .init_seed = 5});
  random_weights(config, plain.executor());
  for (const bool nested : {false, true}) {
    TinyRun run({.model = config,
                 .method = formats::Method::lora,
                 .compute = compute,
                 .quantization = {{.nested = nested, .kept = {}}},
                 .init_seed = 5});
    random_weights(config, run.executor());
    for (const models::Weight& weight : models::weights_of(config)) {
      if (!weight.is_linear()) continue;
      SCOPED_TRACE(weight.name);
      const std::string values = plain.bytes(weight.name);
      const int64_t elements = weight.shape.elements();
      ASSERT_EQ(std::ssize(values), elements * base::size_of(compute));
      const int64_t blocks = formats::nf4_blocks(elements);
      std::vector<uint8_t> codes(static_cast<size_t>(formats::nf4_code_bytes(elements)));
      std::vector<float> absmax(static_cast<size_t>(blocks));
      formats::quantize_nf4(compute, values.data(), elements, codes.data(), absmax.data());
      const StoredWeight stored = stored_weight(run.executor(), weight.name);
      ASSERT_EQ(stored.nested(), nested);
      EXPECT_TRUE(run.bytes(stored.codes) == text_of(codes));
      if (!nested) {
        EXPECT_TRUE(run.bytes(stored.absmax) == text_of(absmax));
        continue;
      }
      std::vector<uint8_t> scales(absmax.size());
      std::vector<float> nested_absmax(static_cast<size_t>(formats::nested_blocks(blocks)));
      const float offset =
          formats::quantize_absmax(absmax.data(), blocks, scales.data(), nested_absmax.data());
      EXPECT_TRUE(run.bytes(stored.absmax) == text_of(scales));
      EXPECT_TRUE(run.bytes(stored.nested_absmax) == text_of(nested_absmax));
      EXPECT_EQ(run.floats(stored.nested_offset)[0], offset);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RandomNf4, ::testing::Values(DType::f32, DType::bf16));

}  // namespace
}  // namespace snug::runtime
