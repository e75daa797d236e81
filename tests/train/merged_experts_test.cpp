// Adapters of experts (target_parameters) that are merged into their model: the folder has the loss
// that PEFT has with the adapter next to it, whether files hold a matrix each or all in one tensor.
#include <gtest/gtest.h>

#include <cmath>

#include "../base/temporary_folder.h"
#include "convert/folder/merge_folder.h"
#include "golden_case.h"

namespace snug::test {
namespace {

class MergedExperts : public ::testing::TestWithParam<std::string> {
 protected:
  // The loss over the golden's targets, by the model in a folder.
  float loss_of(const std::string& model) const {
    plan::TrainingSpec spec;
    spec.compute = program::DType::f32;
    spec.rows = 2;
    spec.row_tokens = 33;
    spec.evaluate = true;
    LoadedCase loaded("cpu", model, "", spec);
    const auto targets = integers(golden_, "targets");
    loaded.put_batch(program::ProgramName::evaluate, integers(golden_, "ids"), targets);
    loaded.executor().set_input("inverse_tokens",
                                1.0F / static_cast<float>(count_trained(targets)));
    loaded.executor().run(program::ProgramName::evaluate);
    return values_of(loaded.executor(), "loss")[0];
  }

  const std::string name_ =
      GetParam() == "qwen3_moe" ? "lora_experts" : "lora_experts_" + GetParam();
  const std::string model_ = golden_folder(GetParam() + "/model");
  const formats::SafetensorsFile golden_{golden_folder(name_ + "/golden.safetensors")};
};

TEST_P(MergedExperts, HaveTheLossOfTheAdapterNextToTheModel) {
  const testing::TemporaryFolder folder;
  convert::FolderMerger({.model = model_, .adapter = golden_folder(name_ + "/adapter")})
      .write(folder / "merged");
  const float expected = floats(golden_, "loss")[0];
  EXPECT_NEAR(loss_of((folder / "merged").string()), expected, 1e-5);
  EXPECT_GT(std::abs(loss_of(model_) - expected), 1e-3) << "the adapter changes something";
}

INSTANTIATE_TEST_SUITE_P(All, MergedExperts,
                         ::testing::Values("qwen3_moe", "gpt_oss", "granitemoe", "qwen3_5_moe"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace snug::test
