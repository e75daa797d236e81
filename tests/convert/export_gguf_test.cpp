// GGUF files of models and adapters: bytes are those of llama.cpp's own converter for the models in
// tests/goldens, types of tensors those of its quantiser; several kinds in one pass are the same
// files as each alone; costs are those planned.
#include "convert/gguf/export_gguf.h"
#include "convert/gguf/merged_tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "base/json.h"
#include "convert/gguf/export_adapter.h"
#include "convert/gguf/general_keys.h"
#include "convert/source/folder_weights.h"
#include "convert/source/merged_weights.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/gguf/blocks.h"
#include "formats/gguf/gguf_file.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using formats::GgmlType;
using formats::GgufFile;
using formats::GgufTensorInfo;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

constexpr std::array kFp32{GgufMix::f32};

fs::path golden(const std::string& name) { return "tests/goldens/" + name; }

std::vector<std::byte> bytes_of(const GgufFile& file, const GgufTensorInfo& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.bytes()));
  file.read_range(tensor, 0, bytes);
  return bytes;
}

std::vector<float> values_of(const GgufFile& file, const GgufTensorInfo& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  formats::dequantise_blocks(tensor.type, bytes_of(file, tensor), values);
  return values;
}

void expect_same_tensors(const fs::path& ours, const fs::path& theirs,
                         const std::set<std::string>& others = {}) {
  const GgufFile a(ours);
  const GgufFile b(theirs);
  EXPECT_EQ(a.tensors().size(), b.tensors().size());
  for (const GgufTensorInfo& tensor : b.tensors()) {
    const GgufTensorInfo* mine = a.find(tensor.name);
    ASSERT_NE(mine, nullptr) << tensor.name;
    ASSERT_EQ(mine->shape, tensor.shape) << tensor.name;
    ASSERT_EQ(mine->type, tensor.type) << tensor.name;
    const std::string last = tensor.name.substr(tensor.name.find('.', 4) + 1);
    if (others.contains(tensor.name) || others.contains(last)) continue;
    EXPECT_EQ(bytes_of(a, *mine), bytes_of(b, tensor)) << tensor.name;
  }
}

struct ExportCase {
  std::string name;
  GgufMix mix = GgufMix::f32;
  std::set<std::string> others{};  // tensors whose values the converter leaves to be wrong
};

class GgufExport : public ::testing::TestWithParam<ExportCase> {};

TEST_P(GgufExport, HasTheBytesOfTheConverter) {
  const TemporaryFolder folder;
  const FolderWeights source(golden(GetParam().name) / "model");
  const std::array mixes{GetParam().mix};
  const GgufExporter exporter(source, mixes, "tiny");
  exporter.write(folder.path() / "out");
  expect_same_tensors(folder.path() / "out" / exporter.plan().files.at(0),
                      golden("gguf/converted") / (GetParam().name + ".gguf"), GetParam().others);
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, GgufExport,
    ::testing::Values(ExportCase{"biases"}, ExportCase{"rope_llama3", {}, {"rope_freqs.weight"}},
                      ExportCase{"rope_yarn"}, ExportCase{"mixtral"},
                      ExportCase{"qwen2", GgufMix::f16}, ExportCase{"qwen3", GgufMix::bf16},
                      ExportCase{"gemma2", {}, {"attn_q.weight"}},
                      ExportCase{"gemma3", {}, {"attn_q_norm.weight"}}, ExportCase{"phi"},
                      ExportCase{"phi3_long"}, ExportCase{"gpt2"}, ExportCase{"gpt_neox"},
                      ExportCase{"bloom"}, ExportCase{"falcon_grouped"}, ExportCase{"olmo2"},
                      ExportCase{"stablelm"}, ExportCase{"mt5"}),
    [](const auto& golden) { return golden.param.name; });

TEST(ExportGguf, HasTheRotaryFactorsOfTheConverter) {
  const TemporaryFolder folder;
  const FolderWeights source(golden("rope_llama3/model"));
  GgufExporter(source, kFp32, "tiny").write(folder.path() / "out");
  const GgufFile ours(folder.path() / "out/tiny-F32.gguf");
  const GgufFile theirs(golden("gguf/converted/rope_llama3.gguf"));
  const auto a = values_of(ours, *ours.find("rope_freqs.weight"));
  const auto b = values_of(theirs, *theirs.find("rope_freqs.weight"));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6F * b[i]);
}

// Golden types are listed, except for those of the most frequent type, whose list is empty.
void expect_types(const json& golden_types, const std::vector<GgmlType>& types,
                  const models::GgufModel& model) {
  std::string most;
  std::map<std::string, std::string> listed;
  for (const auto& [type, names] : golden_types.items()) {
    if (names.empty()) most = type;
    for (const auto& name : names) listed[name.get<std::string>()] = type;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string& name = model.tensors[i].name;
    const auto found = listed.find(name);
    EXPECT_EQ(base::word_of(types[i]), found == listed.end() ? most : found->second) << name;
  }
}

TEST(ExportGguf, ChoosesTypesAsLlamaCppsQuantiserDoes) {
  const json mixes = base::read_json_file(golden("gguf/mixes.json"));
  for (const auto& [name, entry] : mixes.items()) {
    const json& config_json = entry.at("config");
    const models::ModelConfig config = models::parse_config(config_json.dump(), name);
    const models::GgufModel model = models::gguf_model(config, config_json);
    for (const auto& [kind, types] : entry.at("types").items()) {
      SCOPED_TRACE(name + " " + kind);
      expect_types(types, mixed_types(*base::from_word<GgufMix>(kind), model, config), model);
    }
  }
}

TEST(ExportGguf, WritesSeveralKindsInOnePassAsEachAlone) {
  const TemporaryFolder folder;
  const FolderWeights source(golden("gpt_neox/model"));
  const std::array mixes{GgufMix::q8_0, GgufMix::f16, GgufMix::q4_k_m};
  const GgufExporter all(source, mixes, "tiny");
  const FolderReport report = all.write(folder.path() / "all");
  EXPECT_EQ(all.plan().files,
            (std::vector<std::string>{"tiny-Q8_0.gguf", "tiny-F16.gguf", "tiny-Q4_K_M.gguf"}));
  int64_t bytes = 0;
  for (size_t i = 0; i < mixes.size(); ++i) {
    const std::array one{mixes[i]};
    const fs::path alone = folder.path() / ("alone" + std::to_string(i));
    GgufExporter(source, one, "tiny").write(alone);
    const std::string& file = all.plan().files[i];
    EXPECT_EQ(base::read_text_file(folder.path() / "all" / file),
              base::read_text_file(alone / file));
    bytes += static_cast<int64_t>(fs::file_size(alone / file));
  }
  EXPECT_EQ(all.plan().result_bytes, bytes);
  EXPECT_EQ(report.result_bytes, bytes);
}

TEST(ExportGguf, NamesTheModelAsTheConverterDoes) {
  EXPECT_EQ(title_of("smollm2-135M-Instruct"), "Smollm2 135M Instruct");
  EXPECT_EQ(title_of("tiny-v2-chat"), "Tiny v2 Chat");
  const FolderWeights source(golden("mixtral/model"));
  const TemporaryFolder folder;
  GgufExporter(source, kFp32, "tiny-mix").write(folder.path() / "out");
  const GgufFile ours(folder.path() / "out/tiny-mix-F32.gguf");
  const GgufFile theirs(golden("gguf/converted/mixtral.gguf"));
  for (const char* key :
       {"general.architecture", "general.type", "general.size_label", "general.file_type",
        "general.quantization_version", "tokenizer.ggml.model"}) {
    ASSERT_NE(theirs.metadata().find(key), nullptr) << key;
    ASSERT_NE(ours.metadata().find(key), nullptr) << key;
    EXPECT_TRUE(*ours.metadata().find(key) == *theirs.metadata().find(key)) << key;
  }
}

// The example's model has a tokenizer.
TEST(ExportGguf, WritesAModelfileOfTheFirstFile) {
  const TemporaryFolder folder;
  const FolderWeights source("examples/wordnet");
  const std::array mixes{GgufMix::q8_0, GgufMix::f16};
  const GgufExporter exporter(source, mixes, "order");
  exporter.write(folder.path() / "out");
  EXPECT_TRUE(base::read_text_file(folder.path() / "out/Modelfile")
                  .starts_with("FROM ./order-Q8_0.gguf\n"));
  int64_t bytes = 0;
  for (const char* file : {"order-Q8_0.gguf", "order-F16.gguf", "Modelfile"})
    bytes += static_cast<int64_t>(fs::file_size(folder.path() / "out" / file));
  EXPECT_EQ(exporter.plan().result_bytes, bytes);
}

TEST(ExportGguf, TakesTheTokenizerOfAnotherFolder) {
  const TemporaryFolder folder;
  const FolderWeights source("examples/wordnet");
  const fs::path adapter = folder.path() / "adapter";
  fs::create_directory(adapter);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(fs::path("examples/wordnet") / file, adapter / file);
  const std::string chat = "{% for m in messages %}{{ m.content }}{% endfor %}";
  base::write_file_atomically(adapter / "chat_template.jinja", chat);
  GgufExporter(source, kFp32, "own").write(folder.path() / "without");
  GgufExporter(source, kFp32, "own", adapter).write(folder.path() / "with");
  const GgufFile without(folder.path() / "without/own-F32.gguf");
  const GgufFile with(folder.path() / "with/own-F32.gguf");
  EXPECT_EQ(without.metadata().find("tokenizer.chat_template"), nullptr);
  ASSERT_NE(with.metadata().find("tokenizer.chat_template"), nullptr);
  EXPECT_TRUE(*with.metadata().find("tokenizer.chat_template") == formats::MetadataValue(chat));
}

// As merging leaves them: what the adapter brings replaces the model's, and nothing else is lost.
TEST(MergedTokenizer, HasTheAdaptersFilesOverTheModels) {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  const fs::path adapter = folder.path() / "adapter";
  fs::create_directory(model);
  fs::create_directory(adapter);
  base::write_file_atomically(model / "config.json", R"({"model_type": "llama"})");
  base::write_file_atomically(model / "tokenizer.json", "of the model");
  base::write_file_atomically(model / "chat_template.jinja", "template");
  base::write_file_atomically(model / "generation_config.json", R"({"eos_token_id": [0, 5]})");
  base::write_file_atomically(adapter / "tokenizer.json", "of the adapter");
  const fs::path output = folder.path() / "new/out";
  {
    const MergedTokenizer merged(model, adapter, output);
    const auto text = [&](const char* file) {
      return base::read_text_file(merged.folder() / file);
    };
    EXPECT_EQ(text("tokenizer.json"), "of the adapter");
    EXPECT_EQ(text("chat_template.jinja"), "template");
    EXPECT_EQ(text("generation_config.json"), R"({"eos_token_id": [0, 5]})");
    EXPECT_EQ(text("config.json"), R"({"model_type": "llama"})");
  }
  EXPECT_TRUE(fs::is_empty(folder.path() / "new"));
}

TEST(ExportGguf, SaysTheLicenceAndTheSamplingOfTheFolder) {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  fs::copy(golden("basic/model"), model, fs::copy_options::recursive);
  base::write_file_atomically(model / "README.md",
                              "---\nlicense: apache-2.0\nlanguage:\n- en\n---\n");
  base::write_file_atomically(model / "generation_config.json",
                              R"({"temperature": 0.5, "top_k": 20, "top_p": null})");
  formats::Metadata metadata;
  models::GgufModel of_llama;
  of_llama.architecture = "llama";
  add_general_keys(of_llama, "tiny", model, metadata);
  const auto expect = [&](const char* key, const formats::MetadataValue& value) {
    ASSERT_NE(metadata.find(key), nullptr) << key;
    EXPECT_TRUE(*metadata.find(key) == value) << key;
  };
  expect("general.license", std::string("apache-2.0"));
  expect("general.languages", std::vector<std::string>{"en"});
  expect("general.sampling.temp", 0.5F);
  expect("general.sampling.top_k", int32_t{20});
  EXPECT_EQ(metadata.find("general.sampling.top_p"), nullptr);
}

TEST(ExportGguf, MergesAnAdapterOnTheWay) {
  const TemporaryFolder folder;
  const FolderWeights base(golden("gpt_neox_in_turn/model"));
  const MergedWeights merged(base, golden("lora_saved_head/adapter"));
  GgufExporter(merged, kFp32, "tiny").write(folder.path() / "out");
  const GgufFile file(folder.path() / "out/tiny-F32.gguf");
  // The adapter has this head under the name of another version of transformers.
  const formats::TensorIndex adapter =
      formats::open_adapter_index(golden("lora_saved_head/adapter"));
  std::vector<float> head(static_cast<size_t>(file.find("output.weight")->elements()));
  adapter.read(*formats::find_table(adapter, "lm_head.weight"), head.data());
  EXPECT_EQ(values_of(file, *file.find("output.weight")), head);
}

TEST(ExportGguf, RefusesKindsByNamingAll) {
  EXPECT_TRUE(contains(user_error_of([] { parse_mixes("q8_0,q9_0"); }), "no kind \"q9_0\""));
  EXPECT_TRUE(contains(user_error_of([] { parse_mixes("q9_0"); }), "q4_k_m, q4_k_s, q4_1"));
  EXPECT_TRUE(contains(user_error_of([] { parse_mixes(""); }), "no kind is named"));
  EXPECT_TRUE(contains(user_error_of([] { parse_mixes("[]"); }), "no kind is named"));
  EXPECT_TRUE(contains(user_error_of([] { parse_mixes("'q8_0"); }), "a quote is not closed"));
  EXPECT_TRUE(contains(user_error_of([] { parse_mixes("Q8_0, q8_0"); }), "stands twice"));
  const FolderWeights source(golden("basic/model"));
  const std::array mxfp4{GgufMix::mxfp4};
  EXPECT_TRUE(
      contains(user_error_of([&] { GgufExporter(source, mxfp4, "x"); }), "this one has none"));
}

// Each form that lists of recipes have on a command line.
TEST(ExportGguf, TakesKindsInEachFormOfAList) {
  for (const char* text : {"Q4_K, F16", "q4_k_m,f16", "q4_k_m f16", "[q4_k_m,f16]",
                           "[\"q4_k_m\", 'f16']", "q4_k_m,f16,"})
    EXPECT_EQ(parse_mixes(text), (std::vector{GgufMix::q4_k_m, GgufMix::f16})) << text;
}

TEST(ExportAdapter, HasTheTensorsOfLlamaCppsConverter) {
  for (const char* name : {"lora_all_linear", "lora_gpt_neox", "lora_phi3"}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const fs::path adapter = golden(name) / "adapter";
    const json config = base::read_json_file(adapter / "adapter_config.json");
    const FolderWeights base(fs::path(config.at("base_model_name_or_path").get<std::string>()));
    AdapterExporter(base, adapter, kFp32, "tiny").write(folder.path() / "out");
    const fs::path ours = folder.path() / "out/tiny-F32-LoRA.gguf";
    const fs::path theirs = golden("gguf/adapters") / (std::string(name) + ".gguf");
    expect_same_tensors(ours, theirs);
    const GgufFile mine(ours);
    const GgufFile given(theirs);
    for (const char* key :
         {"general.architecture", "general.type", "adapter.type", "adapter.lora.alpha"}) {
      ASSERT_NE(given.metadata().find(key), nullptr) << key;
      ASSERT_NE(mine.metadata().find(key), nullptr) << key;
      EXPECT_TRUE(*mine.metadata().find(key) == *given.metadata().find(key)) << key;
    }
  }
}

TEST(ExportAdapter, WritesAModelfileOfTheFirstFile) {
  const TemporaryFolder folder;
  const FolderWeights base(golden("grouped_tied/model"));
  const std::array mixes{GgufMix::f16, GgufMix::f32};
  const AdapterExporter exporter(base, golden("lora_all_linear/adapter"), mixes, "tiny");
  exporter.write(folder.path() / "out");
  EXPECT_EQ(base::read_text_file(folder.path() / "out/Modelfile"),
            "FROM " + fs::absolute(golden("grouped_tied/model")).string() +
                "\nADAPTER ./tiny-F16-LoRA.gguf\n");
  int64_t bytes = 0;
  for (const char* file : {"tiny-F16-LoRA.gguf", "tiny-F32-LoRA.gguf", "Modelfile"})
    bytes += static_cast<int64_t>(fs::file_size(folder.path() / "out" / file));
  EXPECT_EQ(exporter.plan().result_bytes, bytes);
}

TEST(ExportAdapter, FoldsTheScaleOfRslora) {
  const fs::path adapter = golden("lora_qv_rslora/adapter");
  const json config = base::read_json_file(adapter / "adapter_config.json");
  const FolderWeights base(fs::path(config.at("base_model_name_or_path").get<std::string>()));
  const AdapterExporter exporter(base, adapter, kFp32, "tiny");
  // llama.cpp multiplies by alpha / r.
  const auto r = config.at("r").get<double>();
  EXPECT_NEAR(exporter.plan().alpha, config.at("lora_alpha").get<double>() * std::sqrt(r), 1e-5);
}

std::string adapter_refusal(const char* base, const char* adapter) {
  const FolderWeights source(golden(base) / "model");
  return user_error_of(
      [&] { AdapterExporter(source, golden(adapter) / "adapter", kFp32, "tiny"); });
}

TEST(ExportAdapter, RefusesWhatNoFileExpressesAndSaysToMerge) {
  EXPECT_TRUE(contains(adapter_refusal("gpt2", "dora_gpt2"), "it is DoRA"));
  EXPECT_TRUE(contains(adapter_refusal("gpt2", "dora_gpt2"), "snug merge"));
  EXPECT_TRUE(contains(adapter_refusal("gpt_neox_in_turn", "lora_saved_head"), "whole"));
  EXPECT_TRUE(contains(adapter_refusal("gemma", "lora_embedding_tied"), "a head that is"));
  const FolderWeights base(golden("grouped_tied/model"));
  const std::array q8{GgufMix::q8_0};
  EXPECT_TRUE(contains(
      user_error_of([&] { AdapterExporter(base, golden("lora_all_linear/adapter"), q8, "x"); }),
      "f32, f16 or bf16"));
}

}  // namespace
}  // namespace snug::convert
