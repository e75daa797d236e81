#include "runtime/saving/adapter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "formats/adapter/lora_config.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/folder/safetensors_file.h"
#include "formats/folder/safetensors_writer.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/random_weights.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using base::DType;
using testing::contains;
using testing::golden;
using testing::golden_config;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;
using testing::user_error_of;

TinyOptions lora(const std::string& model = "") {
  TinyOptions options;
  options.adapter_seed = 1;
  if (!model.empty()) options.model = golden_config(model);
  options.method = formats::Method::lora;
  return options;
}

TinyOptions read_from_files(TinyOptions options) {
  options.adapter_in_files = true;
  return options;
}

std::vector<std::string> adapter_names(const TinyRun& run) {
  std::vector<std::string> names;
  for (const program::Tensor& tensor : run.job().trainables) names.push_back(tensor.name);
  return names;
}

formats::LoraConfig config_of(const TinyRun& run) {
  const methods::LoraOptions& options = run.spec().lora;
  return {.r = options.r,
          .alpha = options.alpha,
          .dropout = options.dropout,
          .use_rslora = options.rslora,
          .target_modules = options.target_modules,
          .base_model = "base",
          .modules_to_save = options.modules_to_save};
}

TEST(Adapter, ModulesHaveTheirSizes) {
  const TinyRun run(lora());
  const auto modules = methods::adapted_modules(plan::adapter_tensors(run.job()));
  ASSERT_EQ(modules.size(), 14U);  // seven linears, two layers
  const auto down = std::find_if(modules.begin(), modules.end(), [](const auto& module) {
    return module.module == "model.layers.1.mlp.down_proj";
  });
  ASSERT_NE(down, modules.end());
  EXPECT_EQ(down->in_features, 20);
  EXPECT_EQ(down->out_features, 12);
  EXPECT_TRUE(plan::adapter_tensors(TinyRun().job()).empty());
}

TEST(Adapter, StartsUniformTimesZero) {
  TinyOptions options = lora();
  options.model.intermediate_size = 5000;
  TinyRun run(options);
  run.scribble(adapter_names(run), 3);
  initialise_adapter(run.executor());
  const std::vector<float> b = run.floats("model.layers.0.mlp.up_proj.lora_B.weight");
  EXPECT_EQ(b, std::vector<float>(b.size(), 0.0F));
  // 20,000 values in (-bound, bound): standard deviation bound / sqrt(3), five standard errors.
  const std::vector<float> a = run.floats("model.layers.1.mlp.down_proj.lora_A.weight");
  const double bound = 1.0 / std::sqrt(5000.0);
  double mean = 0;
  double square = 0;
  for (const float value : a) {
    EXPECT_LE(std::abs(value), bound);
    mean += value / static_cast<double>(a.size());
    square += value * value / static_cast<double>(a.size());
  }
  const double error = 5.0 * bound / std::sqrt(3.0 * static_cast<double>(a.size()));
  EXPECT_NEAR(mean, 0.0, error);
  EXPECT_NEAR(std::sqrt(square), bound / std::sqrt(3.0), error);
  EXPECT_GT(*std::max_element(a.begin(), a.end()), 0.99 * bound);
}

// Of an embedding as PEFT: the other way round.
TEST(Adapter, OfAnEmbeddingStartsZeroTimesNormal) {
  TinyOptions options = lora();
  options.model.hidden_size = 1200;
  options.target_modules = {"embed_tokens", "q_proj"};
  TinyRun run(options);
  run.scribble(adapter_names(run), 3);
  initialise_adapter(run.executor());
  const std::vector<float> a = run.floats("model.embed_tokens.lora_embedding_A");
  EXPECT_EQ(a, std::vector<float>(a.size(), 0.0F));
  const std::vector<float> b = run.floats("model.embed_tokens.lora_embedding_B");
  ASSERT_EQ(b.size(), 1200U * static_cast<size_t>(run.spec().lora.r));
  double mean = 0;
  double square = 0;
  for (const float value : b) {
    mean += value / static_cast<double>(b.size());
    square += value * value / static_cast<double>(b.size());
  }
  const double error = 5.0 / std::sqrt(static_cast<double>(b.size()));
  EXPECT_NEAR(mean, 0.0, error);
  EXPECT_NEAR(square, 1.0, 2 * error);
}

// Its tensors have PEFT's names; the base model's own table, which PEFT saves next to them, is left
// where it is, and must be one of this vocabulary.
TEST(Adapter, OfAnEmbeddingIsPefts) {
  const auto folder = golden("lora_embedding") / "adapter";
  TinyOptions options = lora("stablelm");
  options.target_modules = {"embed_tokens", "q_proj"};
  options.lora_r = 3;
  TinyRun run(read_from_files(options));
  methods::LoraOptions scale = run.spec().lora;
  const formats::PeftAdapter adapter(folder);
  scale.alpha = adapter.config().alpha;
  load_adapter(folder, {scale}, run.executor());
  const std::string module = "model.embed_tokens.lora_embedding_";
  for (const char* part : {"A", "B"}) {
    const auto& info = adapter.file().at(formats::adapter_key(module + part));
    std::string expected(static_cast<size_t>(info.bytes()), '\0');
    adapter.file().read(info, expected.data());
    EXPECT_TRUE(run.bytes(module + part) == expected) << part;
  }
  TemporaryFolder saved;
  save_adapter(saved / "adapter", config_of(run), {}, run.executor());
  const formats::PeftAdapter again(saved / "adapter");
  EXPECT_EQ(again.config().target_modules, options.target_modules);
  ASSERT_EQ(again.modules().size(), adapter.modules().size());
  EXPECT_TRUE(again.modules().front().is_embedding);
  EXPECT_EQ(again.modules().front().in_features, 43);
  EXPECT_EQ(again.modules().front().out_features, 20);
  EXPECT_EQ(again.file().find("base_model.model.model.embed_tokens.base_layer.weight"), nullptr);
  EXPECT_NE(again.file().find("base_model.model.model.embed_tokens.lora_embedding_A"), nullptr);
}

TEST(Adapter, StartDependsOnSeedAndNameAlone) {
  TinyRun one(lora());
  TinyRun two(lora());
  initialise_adapter(one.executor());
  initialise_adapter(two.executor());
  const std::string q = "model.layers.0.self_attn.q_proj.lora_A.weight";
  EXPECT_TRUE(one.bytes(q) == two.bytes(q));
  EXPECT_FALSE(one.bytes(q) == one.bytes("model.layers.1.self_attn.q_proj.lora_A.weight"));
  TinyOptions another = lora();
  another.adapter_seed = 2;
  TinyRun three(another);
  initialise_adapter(three.executor());
  EXPECT_FALSE(one.bytes(q) == three.bytes(q));
}

TEST(Adapter, LoadsPeftsFoldersBitForBit) {
  for (const char* name : {"lora_all_linear", "lora_qv_rslora"}) {
    SCOPED_TRACE(name);
    TinyOptions options = lora("grouped_tied");
    if (name == std::string("lora_qv_rslora")) options.target_modules = {"q_proj", "v_proj"};
    TinyRun run(read_from_files(options));
    methods::LoraOptions scale = run.spec().lora;
    scale.alpha = 8;
    scale.rslora = name == std::string("lora_qv_rslora");
    const auto folder = golden(name) / "adapter";
    load_adapter(folder, {scale}, run.executor());
    const formats::PeftAdapter adapter(folder);
    for (const formats::LoraModule& module : adapter.modules())
      for (const bool is_a : {true, false}) {
        const formats::TensorInfo& info = is_a ? adapter.lora_a(module) : adapter.lora_b(module);
        std::string expected(static_cast<size_t>(info.bytes()), '\0');
        adapter.file().read(info, expected.data());
        EXPECT_TRUE(run.bytes(module.module + (is_a ? ".lora_A.weight" : ".lora_B.weight")) ==
                    expected)
            << module.module;
      }
  }
}

TEST(Adapter, SavedFoldersReadBackInEveryType) {
  for (const auto& [compute, optimizer, stored] :
       {std::tuple{DType::f32, methods::OptimizerKind::adamw, "F32"},
        std::tuple{DType::bf16, methods::OptimizerKind::adamw, "F32"},  // the master
        std::tuple{DType::bf16, methods::OptimizerKind::adamw_bf16, "BF16"}}) {
    TinyOptions options = lora();
    options.compute = compute;
    options.optimizer = optimizer;
    TinyRun run(options);
    initialise_adapter(run.executor());
    for (const std::string& name : run.state_names())
      fill_normal({run.executor().tensor(name), name}, 11, 0.02F, run.executor());
    TemporaryFolder folder;
    folder.write("base/tokenizer.json", "{}");
    folder.write("base/config.json", "{}");
    save_adapter(folder / "adapter", config_of(run), {folder / "base"}, run.executor(),
                 {"{{ 'mine' }}", {5}});
    EXPECT_TRUE(std::filesystem::exists(folder / "adapter/tokenizer.json"));
    EXPECT_EQ(base::read_text_file(folder / "adapter/chat_template.jinja"), "{{ 'mine' }}");
    EXPECT_TRUE(std::filesystem::exists(folder / "adapter/generation_config.json"));
    EXPECT_FALSE(std::filesystem::exists(folder / "adapter/config.json"));
    const formats::SafetensorsFile file(folder / "adapter/adapter_model.safetensors");
    EXPECT_EQ(file.tensors().front().stored_dtype, stored);

    TinyOptions from_files = read_from_files(options);
    from_files.adapter_widths = plan::adapter_widths(folder / "adapter");
    TinyRun again(from_files);
    load_adapter(folder / "adapter", run.spec().method_options(), again.executor());
    for (const std::string& name : adapter_names(run)) {
      EXPECT_EQ(from_files.adapter_widths.of(name), stored == std::string("F32") ? 4 : 2);
      const bool master = run.executor().has("master." + name);
      const std::string kept = master ? "master." + name : name;
      EXPECT_TRUE(run.bytes(kept) == again.bytes(kept)) << kept;
    }
  }
}

TEST(Adapter, SavingTwiceReplaces) {
  TemporaryFolder folder;
  TinyRun run(lora());
  initialise_adapter(run.executor());
  save_adapter(folder / "adapter", config_of(run), {}, run.executor());
  for (const std::string& name : adapter_names(run))
    fill_normal({run.executor().tensor(name), name}, 2, 0.02F, run.executor());
  save_adapter(folder / "adapter", config_of(run), {}, run.executor());
  EXPECT_EQ(folder.count(), 1U);
  TinyRun again(read_from_files(lora()));
  load_adapter(folder / "adapter", run.spec().method_options(), again.executor());
  for (const std::string& name : adapter_names(run))
    EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;
}

TEST(Adapter, ModulesThatTrainWholeAreTheModelsUntilAFolderIsRead) {
  TemporaryFolder folder;
  TinyOptions options = lora();
  options.modules_to_save = {"lm_head", "norm"};  // every norm, as PEFT compares names
  TinyRun run(options);
  run.scribble(adapter_names(run), 7);
  const std::string head = run.bytes("lm_head.weight");
  initialise_adapter(run.executor());
  EXPECT_TRUE(run.bytes("lm_head.weight") == head);
  const int64_t saved = 29 * 12 + 5 * 12;
  int64_t elements = 0;
  for (const std::string& name : adapter_names(run)) {
    if (name.find("lora_") == std::string::npos) elements += run.executor().tensor(name).elements();
    fill_normal({run.executor().tensor(name), name}, 2, 0.02F, run.executor());
  }
  EXPECT_EQ(elements, saved);
  EXPECT_EQ(run.job().parameters - models::parameter_count(run.spec().model),
            run.job().trainable_parameters - saved);
  save_adapter(folder / "adapter", config_of(run), {}, run.executor());
  const formats::PeftAdapter adapter(folder / "adapter");
  EXPECT_EQ(adapter.saved().size(), 6U);
  EXPECT_NE(adapter.file().find("base_model.model.lm_head.weight"), nullptr);
  TinyRun again(read_from_files(options));
  load_adapter(folder / "adapter", again.spec().method_options(), again.executor());
  for (const std::string& name : adapter_names(run))
    EXPECT_TRUE(run.bytes(name) == again.bytes(name)) << name;

  TinyOptions fewer = options;
  fewer.modules_to_save = {"norm"};
  const TinyRun without_head(fewer);
  EXPECT_NE(user_error_of([&] {
              check_adapter(folder / "adapter", without_head.spec().method_options(),
                            without_head.job());
            }).find("holds 'lm_head.weight' whole, which this job does not train"),
            std::string::npos);
  TinyOptions more = options;
  more.modules_to_save.emplace_back("embed_tokens");
  const TinyRun with_embedding(more);
  EXPECT_NE(user_error_of([&] {
              check_adapter(folder / "adapter", with_embedding.spec().method_options(),
                            with_embedding.job());
            }).find("has no 'base_model.model.model.embed_tokens.weight'"),
            std::string::npos);
}

class AdapterErrors : public ::testing::Test {
 protected:
  // Saves an adapter for `saved` and loads it into a job planned as `planned`.
  std::string message(const TinyOptions& saved, const TinyOptions& planned) {
    return message(saved, planned, saved.target_modules);
  }
  // The same, where the saved config says these modules.
  std::string message(const TinyOptions& saved, const TinyOptions& planned,
                      const std::vector<std::string>& said) {
    TinyRun writer(saved);
    initialise_adapter(writer.executor());
    formats::LoraConfig config = config_of(writer);
    config.target_modules = said;
    save_adapter(folder_ / "adapter", config, {}, writer.executor());
    TinyRun run(read_from_files(planned));
    run.scribble(adapter_names(run), 5);
    const std::string name = run.job().trainables.front().name;
    const std::string before = run.bytes(name);
    const std::string text = user_error_of(
        [&] { load_adapter(folder_ / "adapter", run.spec().method_options(), run.executor()); });
    EXPECT_TRUE(run.bytes(name) == before) << "data was read";
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(AdapterErrors, MissingModules) {
  TinyOptions saved = lora();
  saved.target_modules = {"q_proj"};
  const std::string text = message(saved, lora());
  EXPECT_TRUE(contains(text, "has no 'model.layers.0.self_attn.k_proj', "));
  EXPECT_TRUE(contains(text, " and others (12 modules are missing)"));
  EXPECT_TRUE(contains(text, "target_modules"));
}

TEST_F(AdapterErrors, SurplusModules) {
  TinyOptions planned = lora();
  planned.target_modules = {"q_proj", "v_proj"};
  const std::string text = message(lora(), planned);
  EXPECT_TRUE(contains(text, "changes 'model.layers.0.self_attn.k_proj' (10 modules"));
}

// Where a job has the modules that the adapter's own config says, as one has that only applies it,
// there is no target_modules to set.
TEST_F(AdapterErrors, AFileThatIsNotAsItsConfigSays) {
  TinyOptions saved = lora();
  saved.target_modules = {"q_proj", "v_proj"};
  TinyOptions planned = lora();
  planned.target_modules = {"v_proj"};
  const std::string surplus = message(saved, planned, {"v_proj"});
  EXPECT_TRUE(contains(surplus,
                       "changes 'model.layers.0.self_attn.q_proj' (2 modules in all), which "
                       "its adapter_config.json does not select in this model"));
  EXPECT_TRUE(contains(surplus, "is merged into its model with PEFT"));
  planned.target_modules = {"k_proj", "v_proj", "q_proj"};
  const std::string missing = message(saved, planned, {"q_proj", "k_proj", "v_proj"});
  EXPECT_TRUE(contains(missing,
                       "has no 'model.layers.0.self_attn.k_proj', "
                       "'model.layers.1.self_attn.k_proj' (2 modules are missing), which its "
                       "adapter_config.json selects in this model"));
  for (const std::string& text : {surplus, missing})
    EXPECT_EQ(text.find("et target_modules"), std::string::npos) << text;
}

TEST_F(AdapterErrors, AnotherRank) {
  TinyOptions saved = lora();
  saved.lora_r = 8;
  const std::string text = message(saved, lora());
  EXPECT_TRUE(contains(text, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"));
  EXPECT_TRUE(contains(text, "has shape [8, 12]; expected [4, 12], as lora_r = 4"));
}

TEST_F(AdapterErrors, AnotherModel) {
  TinyOptions saved = lora();
  saved.model.intermediate_size = 24;
  const std::string text = message(saved, lora());
  EXPECT_TRUE(contains(text, "mlp"));
  EXPECT_TRUE(contains(text, "base model"));
}

TEST_F(AdapterErrors, AnotherScale) {
  TinyRun writer(lora());
  initialise_adapter(writer.executor());
  formats::LoraConfig config = config_of(writer);
  config.alpha = 3;
  save_adapter(folder_ / "adapter", config, {}, writer.executor());
  const std::string text = user_error_of([&] {
    load_adapter(folder_ / "adapter", writer.spec().method_options(), writer.executor());
  });
  EXPECT_TRUE(contains(text, "scale 0.75"));
  EXPECT_TRUE(contains(text, "lora_alpha 8"));
}

}  // namespace
}  // namespace snug::runtime
