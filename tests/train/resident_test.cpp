// The memory a user sees: the resident peak of the process is never above planned device + host +
// outside + 50 MiB and never below 97 % of it; plan.json and measured.json carry the same keys and
// equal device bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "../cli/binary_run.h"

namespace snug::cli {
namespace {

using Json = nlohmann::json;

void keys_of(const Json& json, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    keys.push_back(prefix + key);
    if (value.is_object()) keys_of(value, prefix + key + ".", keys);
  }
}

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  keys_of(json, "", keys);
  return keys;
}

struct MemoryRecipe {
  std::string name;
  std::vector<std::string> words;
};

class Resident : public ::testing::TestWithParam<MemoryRecipe> {};

void check_peak(const std::vector<std::string>& recipe) {
  const testing::TemporaryFolder folder;
  const auto output = folder.path() / "run";
  const auto words = joined({"train", "model=examples/wordnet", "data=examples/wordnet/train.jsonl",
                             "output_dir=" + output.string()},
                            recipe);
  const BinaryRun outcome = run_snug(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output();
  const Json plan = Json::parse(contents_of(output / "plan.json"));
  const Json measured = Json::parse(contents_of(output / "measured.json"));
  // What was measured stands under the key of what was planned; what the data hold is counted.
  const std::vector<std::string> planned_keys = keys_of(plan);
  for (const std::string& key : keys_of(measured)) {
    const bool is_planned = std::ranges::find(planned_keys, key) != planned_keys.end();
    EXPECT_TRUE(is_planned || key == "data") << key;
  }
  EXPECT_EQ(plan["device"]["peak_bytes"], measured["device"]["peak_bytes"]);
  const auto planned = plan["resident"]["peak_bytes"].get<double>();
  const auto peak = measured["resident"]["peak_bytes"].get<double>();
  ::testing::Test::RecordProperty("planned_bytes", std::to_string(static_cast<int64_t>(planned)));
  ::testing::Test::RecordProperty("peak_bytes", std::to_string(static_cast<int64_t>(peak)));
  EXPECT_LE(peak, planned + (50 << 20));
  EXPECT_GE(peak, 0.97 * planned);
}

TEST_P(Resident, PeakIsWhatWasPlanned) {
  check_peak(joined(
      {"eval_data=examples/wordnet/heldout.jsonl", "max_length=512", "max_steps=2", "save_steps=1"},
      GetParam().words));
}

// Nobody chose these; small ones, where what lies outside the arenas is a third of all. More of
// them: scripts/measure_resident.
TEST(ResidentSmall, PeakOfRandomRecipesIsWhatWasPlanned) {
  const char* seed = std::getenv("SNUG_RESIDENT_SEED");
  std::mt19937 generator(seed == nullptr ? 1U : static_cast<uint32_t>(std::atoi(seed)));
  const auto one_of = [&](const std::vector<std::string>& choices) {
    return choices[std::uniform_int_distribution<size_t>(0, choices.size() - 1)(generator)];
  };
  for (int job = 0; job < 4; ++job) {
    std::vector<std::string> words{
        "max_steps=2",
        "method=" + one_of({"full", "lora", "qlora"}),
        "max_length=" + one_of({"64", "128", "256"}),
        "per_device_train_batch_size=" + one_of({"1", "2", "4"}),
        "gradient_accumulation_steps=" + one_of({"1", "2"}),
        "threads=" + one_of({"1", "2"}),
        "recompute=" + one_of({"none", "gate_up", "attention", "all_but_attention", "layer"})};
    if (words[1] == "method=full") {
      words.push_back("optim=" + one_of({"adamw", "adamw_8bit"}));
    } else {
      words.push_back("lora_r=" + one_of({"4", "16", "32"}));
      words.push_back("target_modules=" + one_of({"all-linear", "[q_proj, v_proj]"}));
    }
    std::string text;
    for (const std::string& word : words) text += word + " ";
    SCOPED_TRACE(text);
    check_peak(words);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EightRecipes, Resident,
    ::testing::Values(
        MemoryRecipe{"full", {"method=full", "per_device_train_batch_size=16"}},
        MemoryRecipe{"full_layer_accumulated",
                     {"method=full", "per_device_train_batch_size=32", "recompute=layer",
                      "gradient_accumulation_steps=2", "max_steps=2"}},
        MemoryRecipe{"full_8bit_in_backward",
                     {"method=full", "per_device_train_batch_size=16", "optim=adamw_8bit",
                      "optim_in_backward=true", "max_grad_norm=0"}},
        MemoryRecipe{"full_offloaded",
                     {"method=full", "per_device_train_batch_size=16", "offload_params=true",
                      "offload_optimizer=stream"}},
        MemoryRecipe{"lora", {"method=lora", "per_device_train_batch_size=24"}},
        MemoryRecipe{"lora_gate_up_accumulated",
                     {"method=lora", "per_device_train_batch_size=24", "recompute=gate_up",
                      "gradient_accumulation_steps=2", "max_steps=2"}},
        MemoryRecipe{"lora_layer",
                     {"method=lora", "per_device_train_batch_size=40", "recompute=layer"}},
        MemoryRecipe{"dora", {"method=lora", "use_dora=true", "per_device_train_batch_size=24"}},
        MemoryRecipe{"qlora", {"method=qlora", "per_device_train_batch_size=24"}},
        MemoryRecipe{"qlora_layer",
                     {"method=qlora", "per_device_train_batch_size=40", "recompute=layer"}},
        MemoryRecipe{"qlora_offloaded",
                     {"method=qlora", "per_device_train_batch_size=40",
                      "recompute=all_but_attention", "activation_offloading=true"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace snug::cli
