// LoRA and the update as rewrites: what they add, what they scale, what they refuse.
#include "methods/lora.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "formats/recipe/recipe.h"
#include "methods/lora_experts.h"
#include "methods/update.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "program/ir/operands.h"
#include "program/kinds/optimizer/optimizer.h"
#include "program/kinds/product/matmul.h"
#include "program/verify/verify.h"

namespace snug::methods {
namespace {

using program::Kind;
using program::Program;
using program::Role;

Program forward(const char* model = "smollm2-135m", models::Head head = models::Head::loss) {
  return models::forward(models::stack_of(*models::preset(model)),
                         {.program = program::ProgramName::evaluate,
                          .compute = program::DType::f32,
                          .tokens = 16,
                          .segments = 2,
                          .head = head,
                          .outputs = head == models::Head::logits ? 4 : 0,
                          .cache = {}});
}

int64_t count_role(const Program& program, Role role) {
  return std::count_if(program.tensors.begin(), program.tensors.end(),
                       [&](const auto& tensor) { return tensor.role == role; });
}

int64_t count_kind(const Program& program, Kind kind) {
  return std::count_if(program.operations.begin(), program.operations.end(),
                       [&](const auto& operation) { return operation.kind() == kind; });
}

// PEFT sees no linear in a router. That of gpt_oss has a bias.
TEST(Lora, LeavesRoutersAlone) {
  for (const char* model : {"gpt-oss-20b", "qwen3-30b-a3b"}) {
    LoraOptions options;
    options.target_modules = {"all-linear"};
    const Program adapted = lora(forward(model), options);
    EXPECT_GT(count_role(adapted, Role::adapter), 0);
    for (const program::Tensor& tensor : adapted.tensors) {
      const bool is_adapted =
          tensor.role != Role::adapter || tensor.name.find(".self_attn.") != std::string::npos;
      EXPECT_TRUE(is_adapted) << tensor.name;
    }
  }
}

// The names and sizes of PEFT's tensors (tests/goldens/lora_experts holds such a folder), whatever
// files call the matrices.
TEST(Lora, OfExpertsHasPeftsNames) {
  struct Sizes {
    const char* model;
    int64_t experts, hidden, inner;
  };
  for (const auto& [model, experts, hidden, inner] :
       {Sizes{"gpt-oss-20b", 32, 2880, 2880}, Sizes{"qwen3-30b-a3b", 128, 2048, 768},
        Sizes{"mixtral-8x7b", 8, 4096, 14336}}) {
    SCOPED_TRACE(model);
    LoraOptions options;
    options.r = 3;
    options.target_modules = {"q_proj"};
    options.target_parameters = {"mlp.experts.gate_up_proj", "experts.down_proj"};
    const Program adapted = lora(forward(model), options);
    EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
    const auto stored = [&](const std::string& name) {
      const program::TensorId id = adapted.find("model.layers.3.mlp.experts" + name);
      EXPECT_NE(id, program::kNone) << name;
      if (id == program::kNone) return program::Shape{};
      return stored_lora_shape(adapted.tensor(id).name, adapted.tensor(id).shape);
    };
    EXPECT_EQ(stored(".base_layer.lora_A.weight"), (program::Shape{3 * experts, hidden}));
    EXPECT_EQ(stored(".base_layer.lora_B.weight"), (program::Shape{2 * inner, 3 * experts}));
    EXPECT_EQ(stored(".lora_A.weight"), (program::Shape{3 * experts, inner}));
    EXPECT_EQ(stored(".lora_B.weight"), (program::Shape{hidden, 3 * experts}));
    options.target_parameters = {"gate_up_proj"};
    const Program of_one = lora(forward(model), options);
    EXPECT_NE(of_one.find("model.layers.3.mlp.experts.lora_A.weight"), program::kNone);
    EXPECT_EQ(of_one.find("model.layers.3.mlp.experts.base_layer.lora_A.weight"), program::kNone);
  }
}

TEST(Lora, RefusesParametersThatAreNotThere) {
  const auto error_of = [](const char* model, const char* target = "mlp.experts.up_proj") {
    LoraOptions options;
    options.target_modules = {"q_proj"};
    options.target_parameters = {target};
    try {
      lora(forward(model), options);
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(error_of("qwen3-30b-a3b")
                .find("has model.layers.0.mlp.experts.gate_up_proj, "
                      "model.layers.0.mlp.experts.down_proj"),
            std::string::npos);
  EXPECT_NE(error_of("smollm2-135m").find("has none"), std::string::npos);
  EXPECT_NE(error_of("qwen3-30b-a3b", "mlp.gate.weight").find("is a router, which is not adapted"),
            std::string::npos);
}

TEST(Lora, AdaptsEveryLinearOfEveryLayer) {
  LoraOptions options;
  options.dropout = 0.1;
  const Program adapted = lora(forward(), options);
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  EXPECT_EQ(count_role(adapted, Role::adapter), 30 * 7 * 2);
  EXPECT_EQ(count_kind(adapted, Kind::dropout), 30 * 7);
  EXPECT_EQ(lora_modules(forward(), {"q_proj", "v_proj"}).size(), 60U);
}

TEST(Lora, AnExpressionSelectsWholeNames) {
  const std::vector<std::string> even =
      lora_modules(forward(), {R"(model\.layers\.\d*[02468]\..*\.(q|v)_proj)"});
  EXPECT_EQ(even.size(), 30U);
  EXPECT_EQ(even.front(), "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(lora_modules(forward(), {"k_proj", R"(.*\.29\..*down_proj)"}).size(), 31U);
  const auto error_of = [](const char* target) {
    try {
      lora_modules(forward(), {target});
    } catch (const base::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(error_of("(q|v)_proj").find("matches whole names, such as model.layers.0."),
            std::string::npos);
  EXPECT_NE(error_of("*_proj").find("target_modules: the regular expression '*_proj' is not valid"),
            std::string::npos);
}

std::string refusal_in(const Program& program, const LoraOptions& options) {
  try {
    lora(program, options);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return {};
}

std::string refusal_of(const LoraOptions& options, const char* model = "smollm2-135m") {
  return refusal_in(forward(model), options);
}

// By name alone; the head, which is the same tensor, is left as it is, and so is what is looked up.
TEST(Lora, AnEmbeddingIsATableToo) {
  LoraOptions options;
  options.r = 8;
  options.alpha = 16;
  options.dropout = 0.1;
  options.target_modules = {"embed_tokens", "q_proj"};
  const Program adapted = lora(forward(), options);
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  EXPECT_EQ(count_role(adapted, Role::adapter), 2 + 30 * 2);
  EXPECT_EQ(count_kind(adapted, Kind::dropout), 30);
  const auto shape_of = [&](const char* name) { return adapted.tensor(adapted.find(name)).shape; };
  EXPECT_EQ(shape_of("model.embed_tokens.lora_embedding_A"), (program::Shape{8, 49152}));
  EXPECT_EQ(shape_of("model.embed_tokens.lora_embedding_B"), (program::Shape{576, 8}));
  EXPECT_EQ(count_kind(adapted, Kind::embedding), count_kind(forward(), Kind::embedding) + 1);
  const std::vector<std::string> both{"embed_tokens", "q_proj"};
  EXPECT_EQ(lora_modules(forward(), both).front(), "model.embed_tokens");
  for (const char* others : {"all-linear", ".*"}) {
    const std::vector<std::string> modules = lora_modules(forward(), {others});
    EXPECT_EQ(modules.size(), 30U * 7U) << others;
    EXPECT_NE(modules.front(), "model.embed_tokens");
  }
}

TEST(Lora, AnEmbeddingIsRefusedWhereItCannotHaveAnAdapter) {
  LoraOptions options;
  options.target_modules = {"embed_tokens"};
  options.dora = true;
  EXPECT_NE(refusal_of(options).find("use_dora"), std::string::npos);
  options.dora = false;
  EXPECT_EQ(refusal_of(options), "");
  options.modules_to_save = {"embed_tokens"};
  EXPECT_NE(refusal_of(options, "mistral-7b-v0.3").find("which modules_to_save trains whole"),
            std::string::npos);
  options.modules_to_save.clear();
  options.target_modules = {"lm_head"};
  EXPECT_NE(refusal_of(options).find("embeddings are embed_tokens, by name"), std::string::npos);
}

// By name alone, whose weight may be the embedding's; losses are made without an adapter of it.
TEST(Lora, TheHeadIsALinearWhereItMakesLogits) {
  LoraOptions options;
  options.head = "lm_head";
  options.target_modules = {"q_proj", "lm_head"};
  options.sizes = {{"lm_head", {3, 9}}};
  for (const char* model : {"smollm2-135m", "mistral-7b-v0.3"}) {
    const Program plain = forward(model, models::Head::logits);
    const Program adapted = lora(plain, options);
    EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
    const program::Tensor& b = adapted.tensor(adapted.find("lm_head.lora_B.weight"));
    EXPECT_EQ(b.role, Role::adapter);
    EXPECT_EQ(b.shape[1], 3);
    EXPECT_EQ(b.shape[0], models::preset(model)->vocab_size);
    EXPECT_EQ(count_kind(adapted, Kind::embedding), count_kind(plain, Kind::embedding));
    EXPECT_NE(refusal_of(options, model)
                  .find("LoRA of the head is not built for training; train "
                        "all of it with modules_to_save=lm_head"),
              std::string::npos);
    LoraOptions all = options;
    all.target_modules = {"all-linear"};
    EXPECT_EQ(lora(plain, all).find("lm_head.lora_B.weight"), program::kNone);
  }
  options.dora = true;
  EXPECT_NE(refusal_in(forward("mistral-7b-v0.3", models::Head::logits), options)
                .find("the adapter is on the head, lm_head, too"),
            std::string::npos);
}

// Ranks are shapes, and each product has its own scale.
TEST(Lora, EachModuleHasItsSize) {
  LoraOptions options;
  options.r = 4;
  options.alpha = 8;
  options.rslora = true;
  options.target_modules = {"q_proj", "v_proj"};
  options.sizes = {{"model.layers.1.self_attn.q_proj", {16, 2}}};
  const Program adapted = lora(forward(), options);
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  const auto rank_of = [&](const std::string& module) {
    return adapted.tensor(adapted.find(module + ".lora_A.weight")).shape[0];
  };
  EXPECT_EQ(rank_of("model.layers.1.self_attn.q_proj"), 16);
  EXPECT_EQ(rank_of("model.layers.1.self_attn.v_proj"), 4);
  int64_t others = 0;
  for (const program::Operation& operation : adapted.operations) {
    const auto* matmul = operation.attributes.get_if<program::Matmul>();
    if (matmul == nullptr || matmul->alpha == 1.0F) continue;
    const std::string& b = adapted.tensor(id_of(operation, program::Matmul::kB)).name;
    const bool is_other = b == "model.layers.1.self_attn.q_proj.lora_B.weight";
    EXPECT_EQ(matmul->alpha, is_other ? 0.5F : 4.0F) << b;
    others += is_other ? 1 : 0;
  }
  EXPECT_EQ(others, 1);
  for (const formats::LoraModule& module : adapted_modules(adapted.tensors))
    EXPECT_EQ(module.r, rank_of(module.module));
}

LoraOptions options_of(const std::string& yaml) {
  return lora_options(formats::parse_recipe("method: lora\nlora_r: 4\n" + yaml, "r.yaml"), 16);
}

// The sizes are those that PEFT 0.21 gives with the same keys.
TEST(Lora, LayersAndPatternsSelectAsPeft) {
  const LoraOptions options = options_of(
      "target_modules: [q_proj, v_proj, down_proj]\nlayers_to_transform: [1, 11]\n"
      "rank_pattern: {layers.1.self_attn.q_proj: 8, 'q_proj|down_proj': 2}\n"
      "alpha_pattern: {v_proj: 3}\n");
  const Program adapted = lora(forward(), options);
  EXPECT_EQ(program::verify(adapted), std::vector<std::string>{});
  std::map<std::string, std::pair<int64_t, double>> sizes;
  for (const formats::LoraModule& module : adapted_modules(adapted.tensors))
    sizes[module.module] = {module.r, lora_size(options, module.module).alpha};
  const std::map<std::string, std::pair<int64_t, double>> expected{
      {"model.layers.1.self_attn.q_proj", {8, 8}},  {"model.layers.1.self_attn.v_proj", {4, 3}},
      {"model.layers.1.mlp.down_proj", {2, 8}},     {"model.layers.11.self_attn.q_proj", {2, 8}},
      {"model.layers.11.self_attn.v_proj", {4, 3}}, {"model.layers.11.mlp.down_proj", {2, 8}}};
  EXPECT_EQ(sizes, expected);
}

TEST(Lora, LayersAndPatternsThatSelectNothingAreRefused) {
  const auto refusal = [](const std::string& yaml) {
    return refusal_in(forward(), options_of(yaml));
  };
  EXPECT_NE(refusal("layers_to_transform: [2, 30]").find("layer 30 has no module"),
            std::string::npos);
  EXPECT_NE(refusal("rank_pattern: {qproj: 2}").find("rank_pattern: 'qproj' matches no module"),
            std::string::npos);
  EXPECT_THROW(options_of("rank_pattern: {q_proj: 2.5}"), base::UserError);
  EXPECT_THROW(options_of("alpha_pattern: {q_proj: 0}"), base::UserError);
  EXPECT_THROW(options_of("rank_pattern: {'q_proj(': 2}"), base::UserError);
}

TEST(Lora, ScalesAsPeft) {
  LoraOptions options;
  options.r = 16;
  options.alpha = 32;
  EXPECT_DOUBLE_EQ(lora_scale(options), 2.0);
  options.rslora = true;
  EXPECT_DOUBLE_EQ(lora_scale(options), 8.0);
}

TEST(Lora, AnUnknownTargetNamesThoseThatExist) {
  LoraOptions options;
  options.target_modules = {"query"};
  try {
    lora(forward(), options);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("q_proj"), std::string::npos) << error.what();
  }
}

// A bias for each expert has two dimensions, sinks have one.
TEST(Update, BiasesOfExpertsDoNotDecayAndSinksDo) {
  UpdateOptions options;
  options.weight_decay = 0.1;
  const auto decay_of = [&](const char* name, const program::Shape& shape) {
    program::Tensor weight;
    weight.name = name;
    weight.shape = shape;
    return weight_decay_of(weight, options);
  };
  EXPECT_EQ(decay_of("model.layers.0.mlp.experts.down_proj_bias", {4, 8}), 0.0F);
  EXPECT_EQ(decay_of("model.layers.0.self_attn.q_proj.bias", {8}), 0.0F);
  EXPECT_EQ(decay_of("model.layers.0.input_layernorm.weight", {8}), 0.0F);
  EXPECT_GT(decay_of("model.layers.0.mlp.experts.down_proj", {4, 8, 8}), 0.0F);
  EXPECT_GT(decay_of("model.layers.0.self_attn.sinks", {4}), 0.0F);
}

// LoRA+: one number for each rate, made from the learning rate of the step.
TEST(Update, LoraPlusHasItsRates) {
  LoraOptions lora_options;
  lora_options.target_modules = {"q_proj", "embed_tokens"};
  const Program adapted = lora(forward(), lora_options);
  std::vector<program::Tensor> trainables;
  const auto ids = trainable_tensors(adapted);
  for (const auto id : ids) trainables.push_back(adapted.tensor(id));
  const Program program = update(trainables, random_sites(adapted, ids),
                                 {.lora_b_rate = 16.0, .lora_embedding_rate = 0.25});
  EXPECT_EQ(program::verify(program), std::vector<std::string>{});
  std::map<std::string, int> counts;
  for (const auto& operation : program.operations) {
    if (operation.kind() != Kind::adamw) continue;
    const std::string& weight = program.tensor(operation.updates[0]).name;
    const std::string& rate = program.tensor(id_of(operation, program::AdamW::kLearningRate)).name;
    const bool is_b = weight.ends_with("lora_B.weight");
    const bool is_embedding = weight.find("lora_embedding") != std::string::npos;
    EXPECT_EQ(rate, is_embedding ? "learning_rate.times_0.25"
                    : is_b       ? "learning_rate.times_16"
                                 : "learning_rate")
        << weight;
    ++counts[rate];
  }
  EXPECT_EQ(counts.size(), 3U);
  EXPECT_EQ(count_kind(program, Kind::scale), 2);
}

TEST(Update, NormsAndBiasesDoNotDecay) {
  const Program plain = forward();
  std::vector<program::Tensor> trainables;
  const auto ids = trainable_tensors(plain);
  for (const auto id : ids) trainables.push_back(plain.tensor(id));
  UpdateOptions options;
  options.weight_decay = 0.1;
  const Program program = update(trainables, random_sites(plain, ids), options);
  int64_t decayed = 0;
  for (const auto& operation : program.operations) {
    const auto* adamw = operation.attributes.get_if<program::AdamW>();
    if (adamw == nullptr) continue;
    const auto& weight = program.tensor(operation.updates[0]);
    EXPECT_EQ(adamw->weight_decay > 0, weight.shape.rank() > 1) << weight.name;
    decayed += adamw->weight_decay > 0 ? 1 : 0;
  }
  EXPECT_EQ(decayed, 30 * 7 + 1);
  EXPECT_TRUE(prepare(trainables, options).operations.empty());  // f32 weights are their own master
}

}  // namespace
}  // namespace snug::methods
