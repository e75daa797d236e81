// A run's result has a model card, and is with it as Snug wrote it.
#include "cli/run_card.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "../base/captured_stream.h"
#include "../train/tiny_job.h"
#include "base/file.h"
#include "formats/folder/file_list.h"
#include "formats/folder/front_matter.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using train::TinyJob;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RunCard, TellsOfAnAdapterAndOfItsRun) {
  const TinyJob job;
  job.folder().write("shape/LICENSE", "Apache License\n   Version 2.0, January 2004\n");
  const std::string words = "max_steps=2 overwrite_output_dir=true";
  ASSERT_EQ(job.run("run", words).exit_code, 0);
  const std::string card = contents_of(job.path("run/adapter/README.md"));
  const YAML::Node yaml = YAML::Load(formats::front_matter(card));
  EXPECT_EQ(yaml["library_name"].as<std::string>(), "peft");
  EXPECT_EQ(yaml["license"].as<std::string>(), "apache-2.0");
  for (const char* part :
       {"# run\n", "A LoRA adapter of rank ", " for shape, as PEFT loads it", "max_steps: 2",
        "| data.jsonl | training | ", "2 steps, ", "| a step | ", "AutoPeftModelForCausalLM"})
    EXPECT_TRUE(has(card, part)) << part << card;
  EXPECT_FALSE(has(card, job.folder().path().string()));
  EXPECT_TRUE(fs::exists(job.path("run/adapter/LICENSE")));
  EXPECT_EQ(formats::foreign_entry(job.path("run/adapter")), std::nullopt);
  EXPECT_EQ(job.run("run", words).exit_code, 0) << "what Snug wrote it may replace";
  EXPECT_EQ(job.run("run", "max_steps=3 resume_from_checkpoint=auto").exit_code, 0);
  EXPECT_TRUE(has(contents_of(job.path("run/adapter/README.md")), "3 steps, "));
}

TEST(RunCard, TellsOfWeightsThatARunTrained) {
  const TinyJob job;
  ASSERT_EQ(job.run("run", "method=full max_steps=1").exit_code, 0);
  const std::string card = contents_of(job.path("run/model/README.md"));
  EXPECT_TRUE(has(card, "library_name: transformers\n")) << card;
  EXPECT_TRUE(has(card, "shape, fine-tuned")) << card;
}

// Hours of training are not said to have failed because of it.
TEST(RunCard, IsNoReasonToFail) {
  const TinyJob job;
  formats::Recipe recipe;
  recipe.model = job.path("shape").string();
  recipe.output_dir = job.path("gone").string();
  const testing::CapturedStream captured(stderr);
  EXPECT_NO_THROW(write_run_card(recipe));
  EXPECT_TRUE(has(captured.text(), "no model card is written to "));
}

}  // namespace
}  // namespace snug::cli
