// Training in fp16 on a card where this binary has one, else on the emulated device, next to the
// reference: losses, norms, which steps are skipped, and the scale that they leave.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "backends/open_cuda.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "train/train.h"

namespace snug::train {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFp16RowTokens = 48;
constexpr int64_t kFp16Steps = 8;

// With a first scale that some steps find too large.
struct Fp16Job {
  const char* method;
  int scale_power;
};

// Heads of 64, two of which share keys, so that attention is a library's, or of tensor cores.
class CudaFp16 : public ::testing::TestWithParam<Fp16Job> {
 protected:
  void SetUp() override {
    if (!backends::has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
    folder_.write("shape/config.json", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128,
      "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 258, "max_position_embeddings": 256,
      "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "initializer_range": 0.05,
      "tie_word_embeddings": false, "hidden_act": "silu"})");
    std::string rows;
    for (int64_t row = 1; row <= 2; ++row) {
      Json ids = Json::array();
      for (int64_t i = 0; i < kFp16RowTokens; ++i) ids.push_back((7 * row * i + i) % 251);
      rows += Json{{"input_ids", ids}}.dump() + "\n";
    }
    folder_.write("rows.jsonl", rows);
  }

  std::vector<Json> steps(const std::string& backend, const Fp16Job& job) {
    const auto output = folder_ / fmt::format("run{}", runs_++);
    const formats::Recipe recipe = formats::parse_recipe(
        "model: " + (folder_ / "shape").string() + "\ndata: " + (folder_ / "rows.jsonl").string() +
            "\ninit: random\ncompute_dtype: fp16\nlearning_rate: 0.003\n"
            "lr_scheduler_type: constant\nmax_length: 48\nper_device_train_batch_size: 2\n"
            "max_segments: 1\nshuffle: false\nmax_steps: 8\nsave_steps: 0\n",
        "recipe.yaml",
        {"output_dir=" + output.string(), "backend=" + backend, std::string("method=") + job.method,
         fmt::format("initial_scale_power={}", job.scale_power)});
    EXPECT_EQ(train(recipe), 0);
    std::istringstream lines(base::read_text_file(output / "metrics.jsonl"));
    std::vector<Json> found;
    for (std::string line; std::getline(lines, line);)
      if (Json record = Json::parse(line); record.contains("step_seconds"))
        found.push_back(std::move(record));
    EXPECT_EQ(found.size(), size_t{kFp16Steps});
    return found;
  }

 private:
  testing::TemporaryFolder folder_;
  int runs_ = 0;
};

// The tolerances of curves_test against PyTorch.
TEST_P(CudaFp16, FollowsTheReference) {
  constexpr double kLossTolerance = 2e-3;
  constexpr double kNormTolerance = 3e-2;
  const testing::CapturedStream said(stderr);
  const std::vector<Json> card = steps("cuda", GetParam());
  const std::vector<Json> reference = steps("reference", GetParam());
  ASSERT_EQ(card.size(), reference.size());
  for (size_t i = 0; i < card.size(); ++i) {
    SCOPED_TRACE(fmt::format("step {}: {} for {}", i + 1, card[i].dump(), reference[i].dump()));
    EXPECT_EQ(card[i]["loss_scale"], reference[i]["loss_scale"]);
    EXPECT_EQ(card[i]["skipped_steps"], reference[i]["skipped_steps"]);
    const double loss = reference[i]["loss"];
    EXPECT_NEAR(card[i]["loss"].get<double>(), loss, kLossTolerance * loss);
    ASSERT_EQ(card[i]["grad_norm"].is_null(), reference[i]["grad_norm"].is_null());
    if (reference[i]["grad_norm"].is_null()) continue;
    const double norm = reference[i]["grad_norm"];
    EXPECT_NEAR(card[i]["grad_norm"].get<double>(), norm, kNormTolerance * norm);
  }
  const auto skipped = reference.back()["skipped_steps"].get<int64_t>();
  EXPECT_GE(skipped, 2);
  EXPECT_LE(skipped, kFp16Steps - 3);
  EXPECT_LT(reference.back()["loss"].get<double>(), reference.front()["loss"].get<double>());
}

INSTANTIATE_TEST_SUITE_P(Methods, CudaFp16,
                         ::testing::Values(Fp16Job{"lora", 26}, Fp16Job{"qlora", 26},
                                           Fp16Job{"full", 22}),
                         [](const auto& test) { return std::string(test.param.method); });

}  // namespace
}  // namespace snug::train
