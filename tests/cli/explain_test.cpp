// `snug explain` of one program: of training and of inference, as it runs and as a pass left it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "binary_run.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

BinaryRun explained(const std::string& more) {
  return run_snug(
      joined({"explain", "model=smollm2-135m", "device=h100"}, words_of("max_length=64 " + more)));
}

json explained_json(const std::string& more) {
  const BinaryRun run = explained(more + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

void expect_refusal(const std::string& more, const std::vector<std::string>& parts) {
  const BinaryRun run = explained(more);
  EXPECT_EQ(run.exit_code, 2) << more;
  EXPECT_EQ(run.out, "") << more;
  for (const std::string& part : parts)
    EXPECT_TRUE(contains(run.err, part)) << part << ": " << run.err;
}

// The text of a program in the document of a whole job.
std::string text_in(const json& job, const std::string& name) {
  for (const json& program : job["programs"])
    if (program["name"] == name) return program["text"];
  return "(absent)";
}

std::vector<std::string> names_in(const json& job) {
  std::vector<std::string> names;
  for (const json& program : job["programs"]) names.push_back(program["name"]);
  return names;
}

TEST(Explain, OneProgramIsPrintedAloneAsItRuns) {
  const json job = explained_json("method=lora");
  for (const char* name : {"micro_first", "update", "load", "save_state"}) {
    const BinaryRun run = explained("method=lora program=" + std::string(name));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, text_in(job, name));
  }
}

// Each pass leaves what the table says of it, and the last one what runs.
TEST(Explain, AProgramIsPrintedAsEachPassLeftIt) {
  const std::string words = "method=full devices=8 strategy=full_shard recompute=layer ";
  const json job = explained_json(words);
  std::vector<std::string> texts;
  for (const json& record : job["passes"]) {
    if (record["program"] != "micro_first") continue;
    const std::string pass = record["pass"];
    const BinaryRun run = explained(words + "program=micro_first after=" + pass);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.out.starts_with("program micro_first\n")) << pass;
    EXPECT_TRUE(texts.empty() || contains(run.out, "part of") == (texts.size() >= 4)) << pass;
    texts.push_back(run.out);
  }
  ASSERT_GE(texts.size(), 6U);
  EXPECT_EQ(texts.back(), text_in(job, "micro_first"));
  EXPECT_NE(texts.front(), texts[1]) << "layers are computed again";
}

TEST(Explain, ProgramsOfInference) {
  const json job = explained_json("job=inference per_device_train_batch_size=2");
  EXPECT_EQ(names_in(job), (std::vector<std::string>{"prefill", "decode", "load"}));
  EXPECT_GT(job["peak"]["bytes"].get<int64_t>(), 0);
  EXPECT_FALSE(job.contains("step"));
  const BinaryRun decode = explained("program=decode per_device_train_batch_size=2");
  ASSERT_EQ(decode.exit_code, 0) << decode.err;
  EXPECT_EQ(decode.out, text_in(job, "decode"));
  EXPECT_TRUE(contains(decode.out, "cache_write")) << decode.out;
  const BinaryRun small = explained("program=decode.2 per_device_train_batch_size=8");
  EXPECT_TRUE(small.out.starts_with("program decode.2\n")) << small.err;
  const json lowered =
      explained_json("program=decode per_device_train_batch_size=2 after=lower load_in_4bit=true");
  EXPECT_EQ(lowered["after"], "lower");
  EXPECT_TRUE(lowered["text"].get<std::string>().starts_with("program decode\n"));
  EXPECT_TRUE(contains(lowered["text"].get<std::string>(), "nf4"));
  EXPECT_FALSE(contains(lowered["text"].get<std::string>(), "host.")) << "copies come later";
}

TEST(Explain, InferenceOfAnEncoderDecoder) {
  const BinaryRun run = run_snug(
      {"explain", "model=t5-small", "device=h100", "job=inference", "max_length=64", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(names_in(json::parse(run.out)),
            (std::vector<std::string>{"prefill", "decode", "load"}));
}

TEST(Explain, NamesThatAreNotThereAreRefusedWithThoseThatAre) {
  expect_refusal("program=micro", {"'program' is 'micro'", "micro_first", "decode", "save_state"});
  expect_refusal("program=micro_next",
                 {"'program' is 'micro_next'", "training does not have", "micro_first, update"});
  expect_refusal("program=decode job=training",
                 {"'program' is 'decode'", "training does not have", "micro_first"});
  expect_refusal("program=decode.8 per_device_train_batch_size=8",
                 {"'program' is 'decode.8'",
                  "it has decode.1, decode.2, decode.4, decode (the largest, for 8 side by side)"});
  expect_refusal("mode=serve",
                 {"'mode=serve' means nothing to snug explain; it is a key of: plan"});
  expect_refusal("program=load.2", {"'program' is 'load.2'", "it is one of"});
  expect_refusal("program=update job=inference", {"prefill, decode, load"});
  expect_refusal("program=micro_first after=lowered",
                 {"no pass of micro_first", "differentiate, recompute, schedule, lower"});
  expect_refusal("program=load after=lower", {"load goes through no pass"});
  expect_refusal("after=lower", {"'after' is 'lower'", "program=micro_first"});
  expect_refusal("job=generation", {"'job' is 'generation'", "training, inference"});
  expect_refusal("job=inference devices=2", {"'devices'", "inference runs on one"});
  expect_refusal("job=inference max_length=9000000", {"'max_length'", "positions"});
}

}  // namespace
}  // namespace snug::cli
