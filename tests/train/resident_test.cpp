// The memory a user sees: the resident peak of the process is never above planned device + host +
// outside + 50 MiB and never below 97 % of it; plan.json and measured.json carry the same keys and
// equal device bytes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST_P(Resident, PeakIsWhatWasPlanned) {
  const testing::TemporaryFolder folder;
  const auto output = folder.path() / "run";
  const auto words = joined({"train", "model=examples/wordnet", "data=examples/wordnet/train.jsonl",
                             "eval_data=examples/wordnet/heldout.jsonl", "max_length=512",
                             "max_steps=3", "save_steps=2", "output_dir=" + output.string()},
                            GetParam().words);
  const BinaryRun outcome = run_snug(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output();
  const Json plan = Json::parse(contents_of(output / "plan.json"));
  const Json measured = Json::parse(contents_of(output / "measured.json"));
  EXPECT_EQ(keys_of(plan), keys_of(measured));
  EXPECT_EQ(plan["device"], measured["device"]);
  const auto planned = plan["resident"]["peak_bytes"].get<double>();
  const auto peak = measured["resident"]["peak_bytes"].get<double>();
  RecordProperty("planned_bytes", std::to_string(static_cast<int64_t>(planned)));
  RecordProperty("peak_bytes", std::to_string(static_cast<int64_t>(peak)));
  EXPECT_LE(peak, planned + (50 << 20));
  EXPECT_GE(peak, 0.97 * planned);
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
        MemoryRecipe{"lora", {"method=lora", "per_device_train_batch_size=24"}},
        MemoryRecipe{"lora_gate_up_accumulated",
                     {"method=lora", "per_device_train_batch_size=24", "recompute=gate_up",
                      "gradient_accumulation_steps=2", "max_steps=2"}},
        MemoryRecipe{"lora_layer",
                     {"method=lora", "per_device_train_batch_size=40", "recompute=layer"}},
        MemoryRecipe{"qlora", {"method=qlora", "per_device_train_batch_size=24"}},
        MemoryRecipe{"qlora_layer",
                     {"method=qlora", "per_device_train_batch_size=40", "recompute=layer"}},
        MemoryRecipe{"qlora_offloaded",
                     {"method=qlora", "per_device_train_batch_size=40",
                      "recompute=all_but_attention", "activation_offloading=true"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace snug::cli
