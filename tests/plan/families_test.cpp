// What the plans of families promise next to llama's: fused projections and norms of heads cost no
// memory that three projections would not, windows cost no time that they save, and longrope's
// factors follow the job's capacity.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/recipe/recipe.h"
#include "models/config/rope.h"
#include "null_target.h"
#include "plan/job/assembly.h"
#include "plan/time/clock.h"

namespace snug::plan {
namespace {

TrainingSpec spec_of(const std::string& model, std::vector<std::string> words) {
  words.push_back("model=" + model);
  const formats::Recipe recipe = formats::load_recipe("", words);
  return training_spec(recipe, models::find_model(model).config, NullTarget());
}

double arena(const TrainingSpec& spec) {
  return static_cast<double>(plan_training(spec, NullTarget()).layout.spaces[0].arena_bytes);
}

const std::vector<std::string> kModes{"none", "gate_up", "attention", "all_but_attention", "layer"};

TEST(FusedProjections, TakeNoMoreMemoryThanApart) {
  const std::vector<std::vector<std::string>> methods{
      {"method=full"}, {"method=lora", "target_modules=o_proj,down_proj"}};
  for (const std::vector<std::string>& method : methods)
    for (const std::string& mode : kModes) {
      std::vector<std::string> words = method;
      words.insert(words.end(), {"recompute=" + mode, "max_length=2048"});
      TrainingSpec spec = spec_of("phi-3-mini-4k", words);
      const double fused = arena(spec);
      spec.model.model_type = "mistral";  // the same without
      EXPECT_LE(fused, 1.001 * arena(spec)) << method.front() << " " << mode;
    }
}

TEST(HeadIn4Bits, SavesItsBytes) {
  const std::vector<std::string> words{"method=qlora", "max_length=2048", "double_quant=false"};
  std::vector<std::string> with_head = words;
  with_head.emplace_back("load_head_in_4bit=true");
  const auto state_bytes = [](const TrainingSpec& spec) {
    const Job job = plan_training(spec, NullTarget());
    int64_t bytes = 0;
    for (const program::Tensor& tensor : job.find(program::ProgramName::micro_first)->tensors)
      if (tensor.role == program::Role::weight || tensor.role == program::Role::quant_state)
        bytes += tensor.bytes();
    return bytes;
  };
  constexpr int64_t kElements = int64_t{128256} * 4096;
  EXPECT_EQ(
      state_bytes(spec_of("llama-3.1-8b", words)) - state_bytes(spec_of("llama-3.1-8b", with_head)),
      2 * kElements - kElements / 2 - 4 * (kElements / 64));
}

TEST(HeadIn4Bits, IsRefusedWhereItIsTheEmbedding) {
  EXPECT_THROW(spec_of("smollm2-135m", {"method=qlora", "load_head_in_4bit=true"}),
               base::UserError);
}

TEST(ExpertsIn4Bits, AreRefusedWhereTheyCannotBe) {
  const auto refusal = [](const std::string& model, const std::string& method) {
    try {
      spec_of(model, {method, "load_experts_in_4bit=true", "max_length=64"});
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("smollm2-135m", "method=qlora").find("the model has no experts"),
            std::string::npos);
  EXPECT_NE(refusal("qwen3-30b-a3b", "method=lora").find("set load_in_4bit=true too"),
            std::string::npos);
  EXPECT_NE(refusal("tests/goldens/qwen3_moe/model", "method=qlora")
                .find("are not whole blocks of 64 elements"),
            std::string::npos);
  EXPECT_EQ(refusal("qwen3-30b-a3b", "method=qlora"), "");
}

// The rotated heads are made again from what went into their norms, so nothing more is kept.
TEST(NormsOfHeads, KeepNothingMore) {
  for (const std::string& mode : kModes) {
    TrainingSpec spec =
        spec_of("qwen3-8b", {"method=lora", "recompute=" + mode, "max_length=2048"});
    const double normed = arena(spec);
    spec.model.model_type = "llama";  // the same without
    EXPECT_LE(normed, 1.01 * arena(spec)) << mode;
  }
}

TEST(Windows, CostWhatTheyShow) {
  const auto attention_flops = [](const TrainingSpec& spec) {
    const Job job = plan_training(spec, NullTarget());
    const program::Program& micro = *job.find(program::ProgramName::micro_first);
    double flops = 0;
    for (const program::Operation& operation : micro.operations)
      if (operation.kind() == program::Kind::attention)
        flops += program::cost({micro, operation}, program::full_rows(spec.row_tokens)).flops;
    return flops;
  };
  TrainingSpec spec = spec_of("mistral-7b-v0.1", {"max_length=16384"});
  const double windowed = attention_flops(spec);
  spec.model.windows.clear();
  // 16384 queries see 4096 keys each except for the first 4096, in place of 8192 on average.
  const double pairs = 4096.0 * 4097 / 2 + 12288.0 * 4096;
  const double all_pairs = 16384.0 * 16385 / 2;
  EXPECT_NEAR(windowed / attention_flops(spec), pairs / all_pairs, 1e-6);
}

TEST(Longrope, FactorsFollowTheCapacityOfTheJob) {
  const models::ModelConfig model = *models::preset("phi-3-mini-128k");
  for (const auto& [length, factors] : {std::pair{4096, "short"}, std::pair{4097, "long"}}) {
    const formats::Recipe recipe = formats::load_recipe(
        "", {"model=phi-3-mini-128k", fmt::format("max_length={}", length), "method=lora"});
    const models::ModelSource source = models::find_model(recipe.model);
    const NullTarget target;
    const PlannedTraining planned = assemble_training({recipe, source, target});
    const bool is_long = std::string(factors) == "long";
    const char* name = is_long ? "inverse_frequencies.long" : "inverse_frequencies";
    const program::Program& micro = *planned.job.find(program::ProgramName::micro_first);
    EXPECT_NE(micro.find(name), program::kNone) << length;
    const PlanDocument& document = planned.document;
    EXPECT_EQ(document.rotary_factors, factors);
    EXPECT_NE(summary(document).find(fmt::format("longrope's {} factors", factors)),
              std::string::npos);
  }
  TrainingSpec spec = spec_of("phi-3-mini-128k", {"max_length=8192", "method=lora"});
  spec.longest_document = 4096;
  EXPECT_NE(plan_training(spec, NullTarget())
                .find(program::ProgramName::micro_first)
                ->find("inverse_frequencies"),
            program::kNone);
  const auto shorter = models::inverse_frequencies(model, 4096);
  const auto longer = models::inverse_frequencies(model, 4097);
  EXPECT_FLOAT_EQ(shorter[0], 1.0F / 1.05F);
  EXPECT_FLOAT_EQ(longer[0], 1.0F / 1.03F);
  EXPECT_NEAR(model.rope.attention_factor, 1.1902380714238083, 1e-12);
}

TEST(Longrope, InferenceCountsPromptAndNewTokens) {
  for (const int64_t capacity : {4096, 4097}) {
    const InferenceSpec spec{.model = *models::preset("phi-3-mini-128k"),
                             .lora = {},
                             .shape = {.capacity = capacity, .prefill_tokens = 64}};
    const Job job = plan_inference(spec, NullTarget());
    for (const auto name : {program::ProgramName::prefill, program::ProgramName::decode})
      EXPECT_EQ(job.find(name)->find("inverse_frequencies.long") != program::kNone,
                capacity > 4096);
  }
}

}  // namespace
}  // namespace snug::plan
