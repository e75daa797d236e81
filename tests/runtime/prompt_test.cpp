// LLaMA-Adapter's prompts in the executor's arenas: what they begin as, and folders in and out, in
// PEFT's form and in the form of what PEFT does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/temporary_folder.h"
#include "formats/adapter/peft_adapter.h"
#include "models/forward/prompt_names.h"
#include "runtime/saving/adapter.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using base::DType;
using formats::AdapterGates;
using formats::PromptConfig;
using testing::contains;
using testing::golden;
using testing::golden_config;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

TinyOptions prompts(const std::string& model, const methods::PromptOptions& options) {
  TinyOptions tiny;
  tiny.model = golden_config(model);
  tiny.method = options.adjusts_linears ? formats::Method::adapter_v2 : formats::Method::adapter;
  tiny.prompt = options;
  return tiny;
}

TinyOptions read_prompts(const std::string& model, const methods::PromptOptions& options) {
  TinyOptions tiny = prompts(model, options);
  tiny.adapter_in_files = true;
  return tiny;
}

TEST(Prompts, BeginNormalWithGatesOfZero) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    TinyOptions options = prompts("grouped_tied", {.tokens = 64, .layers = 2});
    options.compute = compute;
    options.adapter_seed = 11;
    TinyRun run(options);
    initialise_adapter(run.executor());
    run.executor().run(program::ProgramName::prepare);
    EXPECT_EQ(run.job().trainables.size(), 2U * 2);
    EXPECT_EQ(run.job().trainable_parameters, 2 * (64 * 36 + 6));
    std::vector<std::vector<float>> seen;
    for (const program::Tensor& tensor : run.job().trainables) {
      const std::vector<float> values = run.floats(tensor.name);
      if (models::is_gate(tensor.name)) {
        EXPECT_EQ(values, std::vector<float>(6, 0.0F));
        continue;
      }
      double squares = 0;
      for (const float value : values) squares += std::pow(value, 2);
      EXPECT_NEAR(squares / static_cast<double>(values.size()), 1.0, 0.1);
      EXPECT_EQ(std::ranges::count(seen, values), 0) << "two layers begin alike";
      seen.push_back(values);
    }
  }
}

struct PromptForm {
  const char* golden;
  const char* model;
  methods::PromptOptions options;
};

const PromptForm kForms[]{
    {"prompt_layer", "grouped_tied", {.tokens = 5, .layers = 2, .gates = AdapterGates::layer}},
    {"prompt_head", "qwen3", {.tokens = 4, .layers = 1, .gates = AdapterGates::head}},
    {"prompt_gpt2", "gpt2", {.tokens = 3, .layers = 1, .gates = AdapterGates::head}},
    {"prompt_v2_gpt_neox",
     "gpt_neox_in_turn",
     {.tokens = 3, .layers = 1, .gates = AdapterGates::head, .adjusts_linears = true}}};

TEST(Prompts, AreReadAndWrittenBack) {
  for (const PromptForm& form : kForms) {
    SCOPED_TRACE(form.golden);
    const auto folder = golden(form.golden) / "adapter";
    TinyRun run(read_prompts(form.model, form.options));
    load_adapter(folder, run.spec().method_options(), run.executor());
    const TemporaryFolder copy;
    const auto config = formats::read_adapter_config(folder);
    save_adapter(copy / "adapter", config, {}, run.executor());
    const auto saved = std::get<PromptConfig>(formats::read_adapter_config(copy / "adapter"));
    EXPECT_EQ(saved.tokens, form.options.tokens);
    EXPECT_EQ(saved.layers, form.options.layers);
    EXPECT_EQ(saved.gates, form.options.gates);
    EXPECT_EQ(saved.is_peft, form.options.gates == AdapterGates::layer);
    const formats::SafetensorsFile before = formats::open_adapter_file(folder);
    const formats::SafetensorsFile after = formats::open_adapter_file(copy / "adapter");
    ASSERT_EQ(after.tensors().size(), before.tensors().size());
    for (const formats::TensorInfo& tensor : before.tensors()) {
      const formats::TensorInfo& again = after.at(tensor.name);
      EXPECT_EQ(again.shape, tensor.shape) << tensor.name;
      std::vector<float> values(static_cast<size_t>(tensor.bytes()) / sizeof(float));
      std::vector<float> same = values;
      before.read(tensor, values.data());
      after.read(again, same.data());
      EXPECT_EQ(same, values) << tensor.name;
    }
  }
}

std::string refusal(const std::string& model, const methods::PromptOptions& options,
                    const std::filesystem::path& folder) {
  const TinyRun run(read_prompts(model, options));
  return user_error_of([&] { check_adapter(folder, run.spec().method_options(), run.job()); });
}

TEST(Prompts, OfAnotherFormAreRefused) {
  const auto folder = golden("prompt_layer") / "adapter";
  methods::PromptOptions options = kForms[0].options;
  options.tokens = 6;
  EXPECT_TRUE(contains(refusal("grouped_tied", options, folder),
                       "trained with adapter_len 5, adapter_layers 2, adapter_gates layer, and "
                       "this job has adapter_len 6, adapter_layers 2, adapter_gates layer"));
  options = kForms[0].options;
  options.gates = AdapterGates::head;
  EXPECT_TRUE(contains(refusal("grouped_tied", options, folder), "adapter_gates head"));
  options = kForms[0].options;
  EXPECT_TRUE(contains(refusal("gpt2", options, folder), "is it an adapter of this model?"));
  EXPECT_TRUE(contains(refusal("basic", options, folder), "is it an adapter of this model?"));
}

TEST(Prompts, ConfigsThatSnugCannotHonourAreRefused) {
  const TemporaryFolder folder;
  const auto refusal_of = [&](const std::string& text) {
    folder.write("adapter_config.json", text);
    return user_error_of([&] { formats::read_adapter_config(folder.path()); });
  };
  EXPECT_TRUE(contains(refusal_of(R"({"peft_type": "ADAPTION_PROMPT", "adapter_len": 3,
      "adapter_layers": 2, "target_modules": "attn"})"),
                       "expected 'self_attn'"));
  EXPECT_TRUE(contains(refusal_of(R"({"peft_type": "ADAPTION_PROMPT", "adapter_len": 0,
      "adapter_layers": 2})"),
                       "expected 1 or more"));
  EXPECT_TRUE(contains(refusal_of(R"({"peft_type": "LLAMA_ADAPTER", "adapter_len": 3,
      "adapter_layers": 2, "adapter_gates": "auto"})"),
                       "expected head or layer"));
  EXPECT_TRUE(contains(refusal_of(R"({"peft_type": "LLAMA_ADAPTER", "adapter_len": 3,
      "adapter_layers": 2, "adapter_gates": "head", "tanh": true})"),
                       "tanh"));
  EXPECT_TRUE(contains(refusal_of(R"({"peft_type": "PREFIX_TUNING"})"), "ADAPTION_PROMPT"));
}

}  // namespace
}  // namespace snug::runtime
