// That each backend obeys each decision of each operation, its channel, whether it shares a launch,
// how many launches it states and whether the host does it: given another one than is planned, it
// refuses it in prepare(), or does it and its trace shows that. What it would ignore is found here.
#include <gtest/gtest.h>

#include "changed_decisions.h"

namespace snug::runtime {
namespace {

using program::DType;

#ifdef SNUG_TEST_CPU_BACKEND
constexpr const char* kNarrowOn = "cpu";
#else
constexpr const char* kNarrowOn = SNUG_TEST_BACKEND;
#endif

DType narrow_type() { return testing::lacks_bf16(kNarrowOn) ? DType::f32 : DType::bf16; }

models::ModelConfig one_layer() {
  models::ModelConfig model = testing::tiny_model();
  model.num_layers = 1;
  model.hidden_size = 64;
  model.head_dim = 32;
  model.num_heads = 2;
  model.intermediate_size = 96;
  return model;
}

plan::TrainingSpec spec_of_one_layer(bool narrow) {
  testing::TinyOptions options{.model = one_layer()};
  if (narrow) options.compute = narrow_type();
  plan::TrainingSpec spec = testing::spec_of(options);
  testing::pack_rows(spec);
  return spec;
}

plan::InferenceSpec inference_of_one_layer(bool quantized) {
  plan::InferenceSpec spec;
  spec.model = one_layer();
  spec.shape.sequences = 2;
  spec.shape.capacity = 300;
  spec.shape.prefill_tokens = 32;
  spec.compute = narrow_type();
  if (quantized) spec.quantization = passes::QuantizeOptions{};
  return spec;
}

template <typename Tested>
class MutatedDecisions : public ::testing::Test {
 protected:
  using Job = testing::ChangedJob<Tested>;

  static void expect_obeyed(const plan::TrainingSpec& spec) {
    expect_counts(Job([&](const program::Target& target) {
                    return plan::plan_training(spec, target);
                  }).expect_obeyed());
  }
  static void expect_obeyed(const plan::InferenceSpec& spec) {
    expect_counts(Job([&](const program::Target& target) {
                    return plan::plan_inference(spec, target);
                  }).expect_obeyed());
  }

  // Where operations are done, and in how many launches.
  static void expect_placement_obeyed(const plan::TrainingSpec& spec, bool shares_launches) {
    expect_counts(Job([&](const program::Target& target) {
                    return plan::plan_training(spec, target);
                  }).expect_placement_obeyed(),
                  Tested::kHasRecord && shares_launches);
  }
  static void expect_placement_obeyed(const plan::InferenceSpec& spec) {
    expect_counts(Job([&](const program::Target& target) {
                    return plan::plan_inference(spec, target);
                  }).expect_placement_obeyed(),
                  Tested::kHasRecord);
  }

 private:
  static void expect_counts(const typename Job::Counts& counts,
                            bool obeys_others = Tested::kObeysOthers) {
    EXPECT_GT(counts.refused, 0);
    if (obeys_others)
      EXPECT_GT(counts.seen, 0);
    else
      EXPECT_EQ(counts.seen, 0);
  }
};

TYPED_TEST_SUITE(MutatedDecisions, testing::TestedBackends);

TYPED_TEST(MutatedDecisions, AreRefusedOrSeenInTraining) {
  TestFixture::expect_obeyed(spec_of_one_layer(false));
  TestFixture::expect_obeyed(spec_of_one_layer(true));
}

TYPED_TEST(MutatedDecisions, AreRefusedOrSeenOfExperts) {
  for (const bool narrow : {false, true}) {
    plan::TrainingSpec spec = spec_of_one_layer(narrow);
    spec.model.model_type = "mixtral";
    spec.model.num_experts = 4;
    spec.model.chosen_experts = 2;
    spec.model.expert_size = spec.model.intermediate_size;
    TestFixture::expect_obeyed(spec);
  }
}

// Gradients that add up in bf16, with rounding that is drawn.
TYPED_TEST(MutatedDecisions, AreRefusedOrSeenOfDrawnRounding) {
  if (narrow_type() != DType::bf16) GTEST_SKIP() << "no bf16 here";
  plan::TrainingSpec spec = spec_of_one_layer(true);
  spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
  spec.update.gradient = DType::bf16;
  spec.accumulation = 2;
  spec.evaluate = true;
  TestFixture::expect_obeyed(spec);
}

TYPED_TEST(MutatedDecisions, AreRefusedOrSeenOfCodedWeights) {
  plan::TrainingSpec spec = spec_of_one_layer(true);
  spec.method = formats::Method::lora;
  spec.lora.r = 8;
  spec.lora.target_modules = {"all-linear"};
  spec.quantization.emplace();
  TestFixture::expect_obeyed(spec);
}

TYPED_TEST(MutatedDecisions, AreRefusedOrSeenInInference) {
  for (const bool quantized : {false, true})
    TestFixture::expect_obeyed(inference_of_one_layer(quantized));
}

// What streams, what the host updates, and what shares a launch.
TYPED_TEST(MutatedDecisions, OfPlacesAreRefusedOrSeen) {
  plan::TrainingSpec spec = spec_of_one_layer(true);
  TestFixture::expect_placement_obeyed(spec, true);
  spec.streaming = {.params = true,
                    .optimizer = true,
                    .update_on_host = true,
                    .threshold_bytes = 0,
                    .window_bytes = 100'000};
  // A copy comes between what would share one.
  TestFixture::expect_placement_obeyed(spec, false);
  TestFixture::expect_placement_obeyed(inference_of_one_layer(true));
}

#ifndef SNUG_TEST_CPU_BACKEND
// Of an attention whose gradient a library makes too, in any order.
TYPED_TEST(MutatedDecisions, AreRefusedOrSeenOfALibrarysAttention) {
  plan::TrainingSpec spec = spec_of_one_layer(true);
  spec.model.head_dim = 64;
  spec.deterministic = false;
  TestFixture::expect_obeyed(spec);
}
#endif

}  // namespace
}  // namespace snug::runtime
