// LLaMA-Adapter's prompts: what they add to the network of each family, and what trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "../base/temporary_folder.h"
#include "methods/method.h"
#include "methods/update.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "models/forward/prompt_names.h"
#include "passes/gradient/differentiate.h"
#include "program/kinds/transfer/storage.h"
#include "program/verify/verify.h"

namespace snug::methods {
namespace {

using formats::AdapterGates;
using program::Kind;
using program::Operation;
using program::Program;
using program::Tensor;
using program::TensorId;

Program forward(const models::ModelConfig& config, const PromptOptions& options) {
  models::Stack stack = models::stack_of(config);
  kAdapter.extend(stack, {.prompt = options});
  return models::forward(stack, {.program = program::ProgramName::micro_first,
                                 .compute = program::DType::bf16,
                                 .tokens = 16,
                                 .segments = 2,
                                 .head = models::Head::loss,
                                 .outputs = 0,
                                 .cache = {}});
}

int64_t trained_elements(const Program& program) {
  int64_t sum = 0;
  for (const TensorId id : trainable_tensors(program)) sum += program.tensor(id).shape.elements();
  return sum;
}

Tensor tensor_of(std::string name, const program::Shape& shape) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = shape;
  return tensor;
}

BaseModel model_of(int64_t layers) {
  BaseModel base;
  base.layers = layers;
  return base;
}

// A = (L - S)(P d + H), with S = 2 and P = 10, of Lit-GPT's configurations.
TEST(Prompts, TrainAsManyNumbersAsLitGpts) {
  struct Count {
    const char* preset;
    int64_t layers, heads;
    int64_t elements;
  };
  for (const Count& count :
       {Count{"llama-2-7b", 30, 32, 1'229'760}, Count{"stablelm-base-alpha-3b", 14, 32, 573'888},
        Count{"falcon-7b", 30, 71, 1'365'330}}) {
    SCOPED_TRACE(count.preset);
    const models::ModelConfig config = *models::preset(count.preset);
    const Program of_heads = forward(config, {.gates = AdapterGates::head});
    EXPECT_EQ(trained_elements(of_heads), count.elements);
    EXPECT_EQ(count.elements, count.layers * (10 * config.hidden_size + count.heads));
    const Program of_layers = forward(config, {.gates = AdapterGates::layer});
    EXPECT_EQ(trained_elements(of_layers), count.layers * (10 * config.hidden_size + 1));
  }
}

// A + 2 (L((H + 2 G) hd + d + m) + V) + w d (n L + 1): m = f + d, of gated mlps 2 f + d; w = 2 of
// layer norms, else 1; n norms a layer.
TEST(Prompts, OfV2TrainAsManyNumbersAsLitGpts) {
  struct Count {
    const char* preset;
    int64_t norm_vectors, norms, mlp_inner;
    int64_t elements;
  };
  for (const Count& count : {Count{"llama-2-7b", 1, 2, 2 * 11008, 4'279'744},
                             Count{"stablelm-base-alpha-3b", 2, 2, 16384, 2'125'248},
                             Count{"falcon-7b", 2, 1, 18176, 3'839'186}}) {
    SCOPED_TRACE(count.preset);
    const models::ModelConfig config = *models::preset(count.preset);
    const PromptOptions options{.gates = AdapterGates::head, .adjusts_linears = true};
    const int64_t d = config.hidden_size;
    const int64_t of_layer =
        (config.num_heads + 2 * config.num_kv_heads) * config.head_dim + d + count.mlp_inner + d;
    const int64_t expected = (config.num_layers - 2) * (10 * d + config.num_heads) +
                             2 * (config.num_layers * of_layer + config.vocab_size) +
                             count.norm_vectors * d * (count.norms * config.num_layers + 1);
    EXPECT_EQ(expected, count.elements);
    EXPECT_EQ(trained_elements(forward(config, options)), expected);
  }
}

models::ModelConfig four_layers(const models::Family& family) {
  models::ModelConfig config = *models::preset(family.presets.front().name);
  config.num_layers = 4;
  if (!config.windows.empty()) config.windows.resize(4);
  std::erase_if(config.recurrent_layers, [](int64_t layer) { return layer >= 4; });
  return config;
}

// Of a model of four layers the last three that attend, or as many as there are.
int64_t up_to_three(const models::ModelConfig& config) {
  return std::min<int64_t>(3, config.num_layers - std::ssize(config.recurrent_layers));
}

TEST(Prompts, OfV2FitEveryFamilyWithoutExperts) {
  for (const models::Family* family : models::families()) {
    SCOPED_TRACE(family->model_type);
    if (family->presets.empty()) continue;
    if (models::preset(family->presets.front().name)->has_encoder()) continue;  // refused
    const models::ModelConfig config = four_layers(*family);
    const PromptOptions options{
        .tokens = 3, .layers = up_to_three(config), .adjusts_linears = true};
    if (config.num_experts > 0) {
      BaseModel base = model_of(4);
      base.has_experts = true;
      const std::string error =
          testing::user_error_of([&] { kAdapterV2.refuse({.prompt = options}, base); });
      EXPECT_NE(error.find("mixture of experts"), std::string::npos) << error;
      continue;
    }
    if (models::stack_of(config).head_bias) continue;  // refused
    const Program program = forward(config, options);
    EXPECT_EQ(program::verify(program), std::vector<std::string>{});
    const std::vector<TensorId> trainable = trainable_tensors(program);
    EXPECT_EQ(program::verify(passes::differentiate(program, trainable, {})),
              std::vector<std::string>{});
    for (const TensorId id : trainable) {
      const Tensor& tensor = program.tensor(id);
      const bool is_of_model = !kAdapterV2.initial_values(tensor, {}).has_value();
      EXPECT_EQ(is_of_model, tensor.name.ends_with(".weight") || tensor.name.ends_with(".bias"));
      EXPECT_TRUE(!is_of_model || tensor.shape.rank() == 1) << tensor.name;
    }
  }
}

TEST(Prompts, FitEveryFamily) {
  for (const models::Family* family : models::families()) {
    SCOPED_TRACE(family->model_type);
    if (family->presets.empty()) continue;
    if (models::preset(family->presets.front().name)->has_encoder()) continue;  // refused
    const models::ModelConfig config = four_layers(*family);
    const Program program = forward(config, {.tokens = 3, .layers = up_to_three(config)});
    EXPECT_EQ(program::verify(program), std::vector<std::string>{});
    const std::vector<TensorId> trainable = trainable_tensors(program);
    EXPECT_EQ(std::ssize(trainable), up_to_three(config) * 2);
    EXPECT_EQ(program::verify(passes::differentiate(program, trainable, {})),
              std::vector<std::string>{});
    for (const TensorId id : trainable) {
      const Tensor& tensor = program.tensor(id);
      const bool is_prompt = models::is_prompt(tensor.name);
      EXPECT_EQ(tensor.shape, is_prompt ? (program::Shape{3, config.hidden_size})
                                        : program::Shape{config.num_heads});
      EXPECT_EQ(tensor.dtype, is_prompt ? program::DType::bf16 : program::DType::f32);
      EXPECT_GE(tensor.layer, 1);
    }
  }
}

// LFM2's other layers have short convolutions in attention's place.
TEST(Prompts, AreInLayersWithAttention) {
  models::ModelConfig config = *models::preset("lfm2-350m");
  const auto prompts = [&](int64_t layers) {
    std::set<int32_t> with_prompts;
    for (const Tensor& tensor : forward(config, {.tokens = 3, .layers = layers}).tensors)
      if (tensor.name.ends_with(models::prompt_name("self_attn")))
        with_prompts.insert(tensor.layer);
    return with_prompts;
  };
  EXPECT_EQ(prompts(0).size(), 4U) << "all but the first two of the six with attention";
  EXPECT_EQ(prompts(2), (std::set<int32_t>{12, 14}));
  EXPECT_TRUE(testing::contains(testing::user_error_of([&] { prompts(7); }),
                                "is 7, but 6 layers of this model have attention"));
  config.recurrent_layers.clear();
  for (int64_t layer = 0; layer < config.num_layers; ++layer)
    config.recurrent_layers.push_back(layer);
  EXPECT_TRUE(testing::contains(testing::user_error_of([&] { prompts(1); }),
                                "no layer of this model has attention"));
}

TEST(Prompts, BeginAsPeftHasThem) {
  const Tensor prompt = tensor_of(models::prompt_name("model.layers.2.self_attn"), {3, 8});
  const Tensor gate = tensor_of(models::gate_name("model.layers.2.self_attn"), {1});
  EXPECT_EQ(kAdapter.initial_values(prompt, {.seed = 7}),
            (program::Fill{program::FillForm::normal, 1.0F, 7}));
  EXPECT_EQ(kAdapter.initial_values(gate, {.seed = 7}), program::Fill{program::FillForm::constant});
}

TEST(Prompts, AreInAllButTheFirstTwoLayersUnlessTheRecipeSays) {
  EXPECT_EQ(prompt_layers({}, 32), 30);
  EXPECT_EQ(prompt_layers({}, 2), 1);
  EXPECT_EQ(prompt_layers({.layers = 5}, 32), 5);
  EXPECT_EQ(prompt_layers({.layers = 5}, 3), 3);
  kAdapter.refuse({.prompt = {.layers = 3}}, model_of(3));
  const std::string error =
      testing::user_error_of([] { kAdapter.refuse({.prompt = {.layers = 4}}, model_of(3)); });
  EXPECT_NE(error.find("adapter_layers: is 4, but the model has 3 layers"), std::string::npos)
      << error;
}

TEST(Prompts, PeftHasThoseOfLlamaAndMistral) {
  EXPECT_TRUE(peft_has_prompts(*models::preset("llama-3.1-8b")));
  EXPECT_TRUE(peft_has_prompts(*models::preset("mistral-7b-v0.3")));
  EXPECT_FALSE(peft_has_prompts(*models::preset("falcon-7b")));
  models::ModelConfig biased = *models::preset("llama-2-7b");
  biased.attention_bias = true;
  EXPECT_FALSE(peft_has_prompts(biased));
  models::ModelConfig wide = *models::preset("llama-2-7b");
  wide.head_dim = 256;
  EXPECT_FALSE(peft_has_prompts(wide));
}

}  // namespace
}  // namespace snug::methods
