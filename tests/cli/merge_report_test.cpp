// What a merge says of its drift, and that the drift can be measured without rounding activations.
#include "cli/merge_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../train/tiny_job.h"

namespace snug::cli {
namespace {

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The values of experts' codes are no folder, so a model that was trained on them has one place to
// be merged into.
TEST(MergeJobs, OfExpertsIn4BitsGoInto16Bits) {
  const auto job_with = [](const char* more) {
    return merge_job(formats::load_recipe(
        "", {"model=tests/goldens/qwen3_moe/model", "adapter=tests/goldens/lora_experts/adapter",
             "output_dir=never-made", "load_in_4bit=true", more}));
  };
  const MergeJob job = job_with("load_experts_in_4bit=true");
  ASSERT_EQ(job.variants.size(), 1U);
  EXPECT_EQ(job.variants[0].base, MergedInto::sixteen_bit);
  EXPECT_TRUE(testing::contains(job.single_because, "experts in 4 bits"));
  EXPECT_TRUE(job.trained.load_experts_in_4bit);
  EXPECT_EQ(job_with("load_experts_in_4bit=false").variants.size(), 2U);
}

TEST(MergeJobs, OfExpertsIn4BitsRefuseTheValuesOfNf4) {
  EXPECT_TRUE(testing::contains(
      testing::user_error_of([] {
        merge_job(formats::load_recipe(
            "", {"model=tests/goldens/qwen3_moe/model",
                 "adapter=tests/goldens/lora_experts/adapter", "output_dir=never-made",
                 "load_in_4bit=true", "load_experts_in_4bit=true", "merge_into=nf4"}));
      }),
      "'merge_into' is nf4, and the experts were trained in 4 bits too"));
}

TEST(MergeReport, SaysHowToTellRoundingFromTheMerge) {
  MergeJob job;
  job.inputs.model = "models/smol";
  job.inputs.adapter = "runs/shop/adapter";
  MergeOutcome outcome;
  outcome.max_drift = 1e-3;
  outcome.compute_dtype = "bf16";
  outcome.variants = {{.base = MergedInto::model, .drift = generate::Drift{.mean_kl = 1.05e-2}}};
  EXPECT_TRUE(says(drift_warning(job, outcome),
                   "'snug merge model=models/smol adapter=runs/shop/adapter drift_dtype=fp32 "
                   "output_dir=FOLDER'"));
  outcome.compute_dtype = "fp32";
  const std::string computed_in_fp32 = drift_warning(job, outcome);
  EXPECT_FALSE(says(computed_in_fp32, "drift_dtype"));
  EXPECT_TRUE(says(computed_in_fp32, "dtype=fp32 rounds no weight; "));
  job.inputs.options.dtype = base::DType::f32;
  EXPECT_FALSE(says(drift_warning(job, outcome), "dtype=fp32"));
}

// The folder is the same; what it is compared in is another type.
TEST(MergeReport, ComparesInTheTypeThatIsAskedFor) {
  const train::TinyJob job;
  ASSERT_EQ(job.run("base", "method=full max_steps=1 dtype=bf16").exit_code, 0);
  const std::string model = "model=" + job.path("base/model").string();
  const BinaryRun trained =
      job.run("run", model + " init=files max_steps=3 learning_rate=0.05 dtype=bf16");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto measured = [&](const std::string& name, const std::string& more) {
    const BinaryRun run =
        run_snug(joined({"merge", model, "adapter=" + job.path("run/adapter").string(),
                         "max_drift=9", "eval_data=" + job.path("data.jsonl").string(),
                         "output_dir=" + job.path(name).string(), "--json"},
                        words_of(more)));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return nlohmann::json::parse(run.out);
  };
  const auto as_trained = measured("one", "");
  const auto in_fp32 = measured("two", "drift_dtype=float32");
  EXPECT_EQ(as_trained["drift_measured"]["compute_dtype"], "bf16");
  EXPECT_EQ(in_fp32["drift_measured"]["compute_dtype"], "fp32");
  EXPECT_NE(as_trained["variants"][0]["mean_kl"], in_fp32["variants"][0]["mean_kl"]);
  EXPECT_TRUE(contents_of(job.path("one/model.safetensors")) ==
              contents_of(job.path("two/model.safetensors")));
}

}  // namespace
}  // namespace snug::cli
