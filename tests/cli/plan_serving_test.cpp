// `snug plan mode=serve`: what the cache of keys and values holds in the memory that is left.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "binary_run.h"

namespace snug::cli {
namespace {

using nlohmann::json;
using testing::contains;

BinaryRun served(const std::string& more) {
  return run_snug(joined({"plan", "model=smollm2-135m", "mode=serve"}, words_of(more)));
}

json served_json(const std::string& more) {
  const BinaryRun run = served(more + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

// 30 layers, each of 3 key heads of 64 numbers in bf16.
TEST(PlanServing, SaysWhatTheCacheHolds) {
  const json plan = served_json("max_length=2048 device_memory=2GB device=h100");
  EXPECT_LE(plan["device_bytes"], 2'000'000'000);
  EXPECT_GT(plan["sequences"], 20);
  EXPECT_EQ(plan["tokens"], plan["sequences"].get<int64_t>() * 2048);
  EXPECT_EQ(plan["running_sequences"], 16);
  ASSERT_EQ(plan["pools"].size(), 1U);
  EXPECT_EQ(plan["pools"][0]["token_bytes"], 2 * 30 * 3 * 64 * 2);
  EXPECT_GT(plan["pools"][0]["bytes"].get<int64_t>() + 2048 * 23040 + 269'000'000, 1'700'000'000);
  const json less =
      served_json("max_length=2048 device_memory=1GB device=h100 per_device_train_batch_size=4");
  EXPECT_LT(less["sequences"], plan["sequences"]);
  EXPECT_EQ(less["running_sequences"], 4);
}

// A sequence that waits has no state, so pages for it would be of no use.
TEST(PlanServing, HoldsAsManySequencesAsHaveStates) {
  const BinaryRun run =
      run_snug(words_of("plan model=qwen3.5-0.8b mode=serve max_length=2048 device=h100 "
                        "per_device_train_batch_size=4 --json"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json plan = json::parse(run.out, nullptr, false);
  EXPECT_EQ(plan["sequences"], 4);
  EXPECT_EQ(plan["states"]["sequences"], 4);
}

// Of each of the seven linears of a layer: zeros and four A of rank 8, and four B, in bf16.
TEST(PlanServing, PricesPlacesForAdapters) {
  const std::string shape = "max_length=2048 device_memory=2GB device=h100";
  const json plan = served_json(shape + " max_adapters=4 max_adapter_rank=8");
  const int64_t in = 4 * 576 + 576 + 576 + 1536;
  const int64_t out = 576 + 192 + 192 + 576 + 1536 + 1536 + 576;
  EXPECT_EQ(plan["adapters"]["slots"], 4);
  EXPECT_EQ(plan["adapters"]["modules"], 210);
  EXPECT_EQ(plan["adapters"]["bytes"], 2 * 30 * 8 * (5 * in + 4 * out));
  EXPECT_LE(plan["sequences"], served_json(shape)["sequences"]);
  const BinaryRun trained = run_snug({"plan", "model=smollm2-135m", "max_adapters=4"});
  EXPECT_EQ(trained.exit_code, 2);
  EXPECT_TRUE(contains(trained.err, "plan it with mode=serve")) << trained.err;
}

// 64 numbers of a head in 8 bits and a scale in place of 64 in bf16: 68 bytes for 128.
TEST(PlanServing, HoldsNearlyTwiceAsManyIn8Bits) {
  const std::string more = "max_length=2048 device_memory=2GB device=h100";
  const json wide = served_json(more);
  const json plan = served_json(more + " kv_cache_dtype=int8");
  EXPECT_LE(plan["device_bytes"], 2'000'000'000);
  EXPECT_EQ(plan["pools"][0]["token_bytes"], 2 * 30 * 3 * (64 + 4));
  EXPECT_GT(plan["sequences"].get<double>(), 1.8 * wide["sequences"].get<double>());
  const BinaryRun eighths = served(more + " kv_cache_dtype=fp8");
  EXPECT_EQ(eighths.exit_code, 2);
  EXPECT_TRUE(contains(eighths.err, "kv_cache_dtype: int8")) << eighths.err;
}

TEST(PlanServing, RefusesWhatDoesNotHoldASequence) {
  const BinaryRun run = served("max_length=2048 device_memory=200MB device=h100");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(contains(run.err, "does not fit")) << run.err;
  const BinaryRun pictured = served("max_length=64 device=h100 picture=page.html");
  EXPECT_EQ(pictured.exit_code, 2);
  EXPECT_TRUE(contains(pictured.err, "'picture' is the page of a training plan")) << pictured.err;
  const BinaryRun unknown = run_snug({"plan", "model=smollm2-135m", "mode=server"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(contains(unknown.err, "'mode' is 'server'; it is one of train, serve"))
      << unknown.err;
}

// What it says is a command that fits.
TEST(PlanServing, AdvisesWithAKeyThatItTakes) {
  const std::string model = "mode=serve max_length=64 device_memory=2MB";
  const auto plan = [&](const std::string& more) {
    return run_snug(joined({"plan", "model=tests/goldens/basic/model"}, words_of(model + more)));
  };
  const BinaryRun refused = plan(" per_device_train_batch_size=1000000");
  EXPECT_EQ(refused.exit_code, 3);
  const std::string key = "per_device_train_batch_size=";
  const size_t at = refused.err.find(key);
  ASSERT_NE(at, std::string::npos) << refused.err;
  const size_t end = refused.err.find_first_not_of("0123456789", at + key.size());
  EXPECT_EQ(plan(" " + refused.err.substr(at, end - at)).exit_code, 0);
}

// Of 24 layers 18 keep for each sequence 16 heads of 128 x 128 in fp32, and 3 tokens of 6,144
// columns in bf16.
TEST(PlanServing, SaysWhatStatesTake) {
  const BinaryRun run =
      run_snug({"plan", "model=qwen3.5-0.8b", "mode=serve", "max_length=512", "device=h100",
                "device_memory=4GB", "per_device_train_batch_size=3", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json states = json::parse(run.out)["states"];
  EXPECT_EQ(states["sequences"], 3);
  EXPECT_EQ(states["bytes"], 3 * 18 * (16 * 128 * 128 * 4 + 3 * 6144 * 2));
}

TEST(PlanServing, CountsPromptsOfAnEncoder) {
  const BinaryRun run = run_snug({"plan", "model=tests/goldens/mt5/model", "mode=serve",
                                  "max_length=64", "device_memory=64MB"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, " of 64 tokens, ")) << run.out;
  EXPECT_TRUE(contains(run.out, "prompts are read whole")) << run.out;
}

}  // namespace
}  // namespace snug::cli
