// A merged folder is the model with its adapter applied: the log-probabilities and logits that PEFT
// gives with the adapter, computed from the folder alone.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "convert/folder/merge_folder.h"
#include "convert/folder/quantize_folder.h"
#include "generate/score.h"
#include "golden_recipe.h"
#include "runtime/loading/load_weights.h"

namespace snug::testing {
namespace {

namespace fs = std::filesystem;

const std::string kAdapterForms = kGoldens + "adapter_forms/";

void merge_into(const fs::path& output, const std::string& model, const std::string& adapter) {
  convert::FolderMerger({.model = model, .adapter = adapter}).write(output);
}

struct Scored {
  std::vector<float> logits;
  std::vector<double> logprobs;
};

Scored scored(const fs::path& folder, const engine::Ids& ids) {
  const formats::Recipe recipe = recipe_of({"model=" + folder.string(), "threads=1"});
  engine::Inference inference(recipe, runtime::open_model(recipe),
                              generate::score_shape(std::ssize(ids)));
  Scored result;
  const auto logprobs =
      generate::log_probabilities(inference, ids, [&](std::span<const float> logits) {
        result.logits.insert(result.logits.end(), logits.begin(), logits.end());
      });
  result.logprobs.assign(logprobs.begin(), logprobs.end());
  return result;
}

const nlohmann::json& merged_forms() {
  static const nlohmann::json kForms = base::read_json_file(kAdapterForms + "expected.json");
  return kForms;
}

std::vector<std::string> merged_form_names() {
  std::vector<std::string> names;
  for (const auto& item : merged_forms().items()) names.push_back(item.key());
  return names;
}

class MergedForms : public ::testing::TestWithParam<std::string> {};

TEST_P(MergedForms, GivePeftsLogProbabilities) {
  const nlohmann::json& expected = merged_forms().at(GetParam());
  const TemporaryFolder folder;
  merge_into(folder / "merged", kGoldens + expected.at("model").get<std::string>() + "/model",
             kAdapterForms + GetParam());
  const auto wanted = expected.at("logprobs").get<std::vector<double>>();
  const Scored found = scored(folder / "merged", expected.at("ids").get<engine::Ids>());
  ASSERT_EQ(found.logprobs.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found.logprobs[i], wanted[i], 2e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Peft, MergedForms, ::testing::ValuesIn(merged_form_names()),
                         [](const auto& test) { return test.param; });

struct MergedCase {
  const char* adapter;
  const char* model;
};

class MergedGoldens : public ::testing::TestWithParam<MergedCase> {};

// The first row of the golden, which is PEFT's with the adapter applied.
void expect_first_row(const std::string& golden, const fs::path& merged) {
  const formats::SafetensorsFile file(golden);
  engine::Ids ids = golden_values<int32_t>(file, "ids");
  ids.resize(static_cast<size_t>(file.at("ids").shape[1]));
  std::vector<float> wanted = golden_values<float>(file, "logits");
  const Scored found = scored(merged, ids);
  const auto vocabulary = static_cast<size_t>(file.at("logits").shape[2]);
  wanted.resize(found.logits.size());
  ASSERT_EQ(found.logits.size() % vocabulary, 0U);
  EXPECT_LT(relative_error(found.logits, wanted), 1e-5);
}

TEST_P(MergedGoldens, GivePeftsLogits) {
  const TemporaryFolder folder;
  const std::string golden = kGoldens + GetParam().adapter;
  merge_into(folder / "merged", kGoldens + GetParam().model + "/model", golden + "/adapter");
  expect_first_row(golden + "/golden.safetensors", folder / "merged");
}

INSTANTIATE_TEST_SUITE_P(Peft, MergedGoldens,
                         ::testing::Values(MergedCase{"lora_phi3", "phi3"},
                                           MergedCase{"lora_saved", "stablelm"},
                                           MergedCase{"lora_gpt2", "gpt2"},
                                           MergedCase{"lora_embedding", "stablelm"},
                                           MergedCase{"lora_embedding_tied", "gemma"},
                                           MergedCase{"lora_embedding_gpt2", "gpt2"},
                                           MergedCase{"lora_gpt_neox", "gpt_neox_in_turn"},
                                           MergedCase{"dora_gpt2", "gpt2"},
                                           MergedCase{"lora_all_linear", "grouped_tied"},
                                           MergedCase{"lora_qv_rslora", "grouped_tied"}),
                         [](const auto& test) { return std::string(test.param.adapter); });

convert::MergeInputs in_nf4(const std::string& model, const std::string& adapter,
                            bool double_quant) {
  return {.model = kGoldens + model + "/model",
          .adapter = kGoldens + adapter + "/adapter",
          .base = convert::MergeBase::quantised_values,
          .nf4 = {.double_quant = double_quant, .compute = base::DType::f32}};
}

// The same from a folder that holds the linears in NF4.
void merge_stored(convert::MergeInputs inputs, const TemporaryFolder& folder, const fs::path& to) {
  const fs::path stored = folder / "stored";
  convert::FolderQuantizer(inputs.model,
                           {.double_quant = inputs.nf4.double_quant, .keep_fp32 = true})
      .write(stored);
  inputs.model = stored;
  inputs.base = convert::MergeBase::as_stored;
  convert::FolderMerger(inputs).write(to);
}

// The first tensor whose values differ; empty if none does.
std::string first_difference(const fs::path& a, const fs::path& b) {
  const formats::SafetensorsFile of_a(a / "model.safetensors");
  const formats::SafetensorsFile of_b(b / "model.safetensors");
  EXPECT_EQ(of_a.tensors().size(), of_b.tensors().size());
  for (const formats::TensorInfo& tensor : of_a.tensors())
    if (golden_values<float>(of_a, tensor.name) != golden_values<float>(of_b, tensor.name))
      return tensor.name;
  return "";
}

// PEFT's logits on a base that bitsandbytes decoded.
TEST(MergedIntoNf4, GivesPeftsLogitsOnTheDecodedBase) {
  for (const bool double_quant : {false, true}) {
    const TemporaryFolder folder;
    const auto inputs = in_nf4("grouped_tied", "lora_all_linear", double_quant);
    convert::FolderMerger(inputs).write(folder / "merged");
    const std::string golden = kGoldens + (double_quant ? "qlora_nf4_dq" : "qlora_nf4");
    expect_first_row(golden + "/golden.safetensors", folder / "merged");
    merge_stored(inputs, folder, folder / "of_stored");
    EXPECT_EQ(first_difference(folder / "merged", folder / "of_stored"), "");
  }
}

// Linears stored as (in, out), whose transposes are quantised; and DoRA's norms are those of
// columns.
TEST(MergedIntoNf4, IsTheSameFromAFolderInNf4WhereLinearsAreTransposed) {
  for (const char* adapter : {"lora_gpt2", "dora_gpt2"}) {
    const TemporaryFolder folder;
    const auto inputs = in_nf4("gpt2", adapter, true);
    convert::FolderMerger(inputs).write(folder / "merged");
    merge_stored(inputs, folder, folder / "of_stored");
    EXPECT_EQ(first_difference(folder / "merged", folder / "of_stored"), "");
    merge_into(folder / "in_32_bits", kGoldens + "gpt2/model", kGoldens + adapter + "/adapter");
    EXPECT_NE(first_difference(folder / "merged", folder / "in_32_bits"), "");
  }
}

}  // namespace
}  // namespace snug::testing
