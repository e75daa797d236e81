// `snug bench compare`: two backends next to each other on the first step of a job.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "binary_run.h"

namespace snug::cli {
namespace {

using testing::contains;

BinaryRun compared(const std::string& more) {
  return run_snug(
      words_of("bench compare model=tests/goldens/basic/model init=random max_length=24 "
               "per_device_train_batch_size=1 " +
               more));
}

TEST(Compare, BackendsAgreeInFp32) {
  const BinaryRun run = compared("method=full --json");
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto document = nlohmann::json::parse(run.out);
  EXPECT_EQ(document["a"], "cpu");
  EXPECT_EQ(document["b"], "reference");
  EXPECT_TRUE(document["first_difference"].is_null());
  EXPECT_GT(document["compared"], 60);
  EXPECT_LT(document["zeros"], 10);
  for (const char* kind : {"rms_norm", "matmul", "attention", "attention_grad", "adamw"}) {
    ASSERT_TRUE(document["largest"].contains(kind)) << kind;
    EXPECT_LT(document["largest"][kind]["relative"], 1e-4) << kind;
  }
}

// Weights in 4 bits have values, and an adapter that is made has them in all of its matrices.
TEST(Compare, AdaptersOnWeightsIn4BitsHaveSomethingToCompare) {
  const BinaryRun run = compared("method=qlora --json");
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto document = nlohmann::json::parse(run.out);
  EXPECT_GT(document["compared"], 60);
  EXPECT_LT(document["zeros"], 10);
}

TEST(Compare, ABackendDoesNotDifferFromItself) {
  const BinaryRun run = compared("method=full a=reference b=reference");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "none differs")) << run.out;
}

TEST(Compare, RefusesWhatIsNoBackend) {
  const BinaryRun run = compared("a=gpu");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "'gpu' is no backend; it is one of")) << run.err;
}

}  // namespace
}  // namespace snug::cli
