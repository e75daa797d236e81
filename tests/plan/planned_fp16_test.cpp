// Jobs in fp16 on cards that are not here: what is decided for their operations, and what they
// take, is that of the same jobs in bf16.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/cuda/device/planned_card.h"
#include "formats/recipe/recipe.h"
#include "plan/job/assembly.h"
#include "plan/job/job.h"
#include "plan/spec/resolve.h"
#include "program/ir/program_name.h"
#include "program/kinds/attention/attention.h"
#include "program/kinds/loss/cross_entropy.h"
#include "program/kinds/product/matmul.h"

namespace snug::plan {
namespace {

using backends::cuda::find_hardware;
using backends::cuda::PlannedCard;

formats::Recipe recipe_of(const std::string& words, const char* type) {
  std::vector<std::string> all{"model=llama-3.1-8b", "max_length=8192",
                               "per_device_train_batch_size=2", "max_segments=1",
                               std::string("compute_dtype=") + type};
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    all.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return formats::load_recipe("", all);
}

PlanDocument document_of(const std::string& words, const char* type, const PlannedCard& card) {
  const formats::Recipe recipe = recipe_of(words, type);
  return assemble_training({recipe, models::find_model(recipe.model), card}).document;
}

// Of the operations of a micro-batch that a card decides something for, in their order.
std::vector<program::Attributes> decisions_of(const std::string& words, const char* type,
                                              const PlannedCard& card) {
  const formats::Recipe given = recipe_of(words, type);
  models::ModelConfig model = models::find_model(given.model).config;
  model.num_layers = 2;
  const Job job = plan_training(training_spec(resolve(given, model), model, card), card);
  std::vector<program::Attributes> found;
  for (const program::Operation& operation :
       job.find(program::ProgramName::micro_first)->operations) {
    const program::Attributes& attributes = operation.attributes;
    if (attributes.is<program::Matmul>() || attributes.is<program::Attention>() ||
        attributes.is<program::AttentionGrad>() ||
        attributes.is<program::LinearCrossEntropyTrain>())
      found.push_back(attributes);
  }
  return found;
}

class PlannedFp16 : public ::testing::TestWithParam<const char*> {};

TEST_P(PlannedFp16, TakesWhatBf16Takes) {
  for (const char* name : {"h100", "rtx-4090"}) {
    SCOPED_TRACE(name);
    const PlannedCard card(*find_hardware(name), 0);
    const PlanDocument half = document_of(GetParam(), "fp16", card);
    const PlanDocument bf16 = document_of(GetParam(), "bf16", card);
    EXPECT_GT(half.step_seconds, 0);
    EXPECT_NEAR(half.step_seconds, bf16.step_seconds, 0.01 * bf16.step_seconds);
    const auto bytes = [](const PlanDocument& document) {
      return static_cast<double>(document.device.report.peak_bytes);
    };
    EXPECT_NEAR(bytes(half), bytes(bf16), 0.01 * bytes(bf16));
  }
}

TEST_P(PlannedFp16, RunsOnTheSameKernels) {
  for (const char* name : {"h100", "rtx-4090"}) {
    SCOPED_TRACE(name);
    const PlannedCard card(*find_hardware(name), 0);
    const std::vector<program::Attributes> half = decisions_of(GetParam(), "fp16", card);
    EXPECT_GT(half.size(), 20);
    EXPECT_TRUE(half == decisions_of(GetParam(), "bf16", card));
    bool by_library = false;
    bool by_tensor_cores = false;
    for (const program::Attributes& attributes : half)
      if (const auto* attention = attributes.get_if<program::Attention>()) {
        by_library = by_library || is_by_library(*attention);
        by_tensor_cores = by_tensor_cores || is_on_tensor_cores(*attention);
      }
    const bool has_library = std::string(name) == "h100";
    EXPECT_EQ(by_library, has_library);
    EXPECT_EQ(by_tensor_cores, !has_library);
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, PlannedFp16,
                         ::testing::Values("method=lora recompute=layer",
                                           "method=qlora recompute=layer",
                                           "method=full optim=adamw recompute=layer "
                                           "gradient_dtype=fp32"));

// Launches of a layer while decoding, as many and the same ones.
TEST(PlannedFp16Decoding, SharesTheLaunchesOfBf16) {
  const PlannedCard card(*find_hardware("h100"), 0);
  for (const bool quantized : {false, true}) {
    const auto launches_of = [&](program::DType type) {
      InferenceSpec spec;
      spec.model = models::preset("llama-3.1-8b").value();
      spec.model.num_layers = 2;
      spec.compute = type;
      spec.shape.sequences = 1;
      spec.shape.capacity = 1024;
      spec.shape.prefill_tokens = 64;
      if (quantized) spec.quantization = passes::QuantizeOptions{.nested = true, .kept = {}};
      const Job job = plan_inference(spec, card);
      std::vector<std::pair<program::Attributes, bool>> found;
      for (const program::Operation& operation : job.find(program::ProgramName::decode)->operations)
        found.emplace_back(operation.attributes, operation.joined);
      return found;
    };
    EXPECT_TRUE(launches_of(program::DType::f16) == launches_of(program::DType::bf16));
  }
}

}  // namespace
}  // namespace snug::plan
