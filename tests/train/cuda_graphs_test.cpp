// Training in bf16 with attention by cuDNN, its programs recorded as CUDA graphs and not: on a card
// where this binary has one, else on the emulated device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "backends/open_cuda.h"
#include "base/file.h"
#include "formats/recipe/recipe.h"
#include "train/train.h"

namespace snug::train {
namespace {

constexpr int64_t kGraphRowTokens = 32;
constexpr int64_t kSteps = 4;

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Heads of 64, two of which share keys; two rows of one document each, that fills them, in every
// step.
class CudaGraphs : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!backends::has_cuda_device()) GTEST_SKIP() << "skipped: no CUDA device";
    folder_.write("shape/config.json", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128,
      "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 258, "max_position_embeddings": 256,
      "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "initializer_range": 0.02,
      "tie_word_embeddings": false, "hidden_act": "silu"})");
    std::string rows;
    for (int64_t row = 1; row <= 2; ++row) {
      nlohmann::json ids = nlohmann::json::array();
      for (int64_t i = 0; i < kGraphRowTokens; ++i) ids.push_back((7 * row * i + i) % 251);
      rows += nlohmann::json{{"input_ids", ids}}.dump() + "\n";
    }
    folder_.write("rows.jsonl", rows);
  }

  // Of each step.
  std::vector<double> losses(const std::string& words, const char* graphs) {
    const Variable recorded("SNUG_CUDA_GRAPHS", graphs);
    const auto output = folder_ / ("run" + std::to_string(runs_++));
    const formats::Recipe recipe = formats::parse_recipe(
        "model: " + (folder_ / "shape").string() + "\ndata: " + (folder_ / "rows.jsonl").string() +
            "\nbackend: cuda\ninit: random\nmethod: full\ncompute_dtype: bf16\n"
            "learning_rate: 0.01\nlr_scheduler_type: constant\nmax_length: "
            "32\nper_device_train_batch_size: 2\n"
            "max_segments: 1\nshuffle: false\nmax_steps: 4\nsave_steps: 0\n" +
            words,
        "recipe.yaml", {"output_dir=" + output.string()});
    EXPECT_EQ(train(recipe), 0);
    std::istringstream lines(base::read_text_file(output / "metrics.jsonl"));
    std::vector<double> found;
    for (std::string line; std::getline(lines, line);)
      if (const auto record = nlohmann::json::parse(line); record.contains("step_seconds"))
        found.push_back(record["loss"]);
    EXPECT_EQ(found.size(), size_t{kSteps});
    return found;
  }

 private:
  testing::TemporaryFolder folder_;
  int runs_ = 0;
};

TEST_F(CudaGraphs, ComputeTheBitsOfOperationsOneByOne) {
  const std::string words = "deterministic: true\n";
  EXPECT_EQ(losses(words, "on"), losses(words, "off"));
}

// The library's gradient adds in any order, so losses differ in last bits from the second step on;
// a replay that ran with stale tables or addresses would be far off. Nothing is left to own
// kernels in silence.
TEST_F(CudaGraphs, HoldTheLibrarysGradient) {
  const testing::CapturedStream said(stderr);
  const std::vector<double> recorded = losses("", "on");
  const std::vector<double> one_by_one = losses("", "off");
  EXPECT_EQ(said.text().find(": own kernels"), std::string::npos) << said.text();
  for (const char* after : {"after tuning: ", "after two steps: "})
    EXPECT_NE(said.text().find(after), std::string::npos) << said.text();
  const Variable own("SNUG_CUDNN", "off");
  const std::vector<double> by_own_kernels = losses("", "on");
  ASSERT_EQ(recorded.size(), size_t{kSteps});
  EXPECT_LT(recorded.back(), 0.98 * recorded.front());
  for (size_t step = 0; step < recorded.size(); ++step) {
    EXPECT_NEAR(recorded[step], one_by_one[step], 2e-3 * one_by_one[step]) << "step " << step;
    EXPECT_NEAR(recorded[step], by_own_kernels[step], 1e-2 * by_own_kernels[step])
        << "step " << step;
  }
}

}  // namespace
}  // namespace snug::train
