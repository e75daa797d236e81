// Merging adapters into folders: multimodal ones, element types, shards, and what is refused.
#include "convert/folder/merge_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/temporary_folder.h"
#include "convert/source/folder_weights.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "models/config/config.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::TensorIndex;
using formats::TensorSpec;
using nlohmann::json;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

const std::string kGoldens = "tests/goldens/";
const std::string kForms = kGoldens + "adapter_forms/";

std::vector<uint8_t> stored_in(const TensorIndex& index, const std::string& name) {
  const formats::IndexedTensor& tensor = index.at(name);
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.info->bytes()));
  index.read(tensor, bytes.data());
  return bytes;
}

FolderReport merge_with(const fs::path& model, const fs::path& adapter, const fs::path& output,
                        const WriteOptions& options = {}) {
  return FolderMerger({.model = model, .adapter = adapter, .options = options}).write(output);
}

// How a multimodal model's files name the tensors of its text part.
struct Wrapping {
  std::string layers;  // in place of "model."
  std::string head;    // in place of "lm_head"
  std::string name_of(const std::string& name) const {
    return name.starts_with("model.") ? layers + name.substr(6)
                                      : head + name.substr(std::string("lm_head").size());
  }
};
const Wrapping kWithin{"model.language_model.", "lm_head"};
const Wrapping kBefore{"language_model.model.", "language_model.lm_head"};

// A golden's model as the text part of a multimodal one, with other tensors next to it, one of a
// type that nothing here computes with.
void wrap(const std::string& golden, const Wrapping& wrapping, const TemporaryFolder& folder) {
  const fs::path source = kGoldens + golden + "/model";
  json config = {{"architectures", {"SomeVlForConditionalGeneration"}},
                 {"model_type", "some_vl"},
                 {"vision_config", {{"hidden_size", 4}}},
                 {"dtype", "float32"}};
  config["text_config"] = base::read_json_file(source / "config.json");
  config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"];
  folder.write("in/config.json", config.dump());
  folder.write("in/preprocessor_config.json", "{}");
  folder.write("in/LICENSE", "free");
  const TensorIndex index(source);
  std::vector<TensorSpec> specs{{"model.visual.patch.weight", DType::f32, {2, 3}},
                                {"model.visual.scale", DType::u8, {5}, "F8_E4M3"}};
  for (const auto& tensor : index.tensors())
    specs.push_back({wrapping.name_of(tensor.info->name), *tensor.info->dtype, tensor.info->shape});
  formats::SafetensorsWriter writer(folder / "in/model.safetensors", specs);
  const std::vector<uint8_t> others(24, 0x31);
  writer.write(specs[0].name, others.data(), 24);
  writer.write(specs[1].name, others.data(), 5);
  for (const auto& tensor : index.tensors()) {
    const auto bytes = stored_in(index, tensor.info->name);
    writer.write(wrapping.name_of(tensor.info->name), bytes.data(), std::ssize(bytes));
  }
  writer.finish();
}

// The text part of the result is the merged text model; everything else is as it was.
void expect_wrapped(const std::string& golden, const std::string& form, const Wrapping& wrapping) {
  const TemporaryFolder folder;
  wrap(golden, wrapping, folder);
  merge_with(folder / "in", kForms + form, folder / "out");
  merge_with(kGoldens + golden + "/model", kForms + form, folder / "text");
  const TensorIndex text(folder / "text");
  const TensorIndex from(folder / "in");
  const TensorIndex to(folder / "out");
  EXPECT_EQ(to.tensors().size(), text.tensors().size() + 2);
  for (const auto& tensor : text.tensors())
    EXPECT_EQ(stored_in(to, wrapping.name_of(tensor.info->name)),
              stored_in(text, tensor.info->name))
        << tensor.info->name;
  for (const char* other : {"model.visual.patch.weight", "model.visual.scale"})
    EXPECT_EQ(stored_in(to, other), stored_in(from, other));
  EXPECT_EQ(to.at("model.visual.scale").info->stored_dtype, "F8_E4M3");
  for (const char* file : {"preprocessor_config.json", "LICENSE"})
    EXPECT_TRUE(fs::exists(folder / "out" / file)) << file;
  json wanted = base::read_json_file(folder / "in/config.json");
  const json text_config = base::read_json_file(folder / "text/config.json");
  for (const char* key : {"tie_word_embeddings", "vocab_size"})
    wanted["text_config"][key] = text_config[key];
  wanted["tie_word_embeddings"] = text_config["tie_word_embeddings"];
  EXPECT_EQ(base::read_json_file(folder / "out/config.json"), wanted);
}

TEST(MergedMultimodal, KeepsItsPrefixAndItsOtherTensors) {
  expect_wrapped("mistral", "wrapped_multimodal", kWithin);
  expect_wrapped("mistral", "patterns_dora", kBefore);
}

// As wrapped_multimodal, with a product of the encoder of images; with what merging says.
std::string merge_with_image_product(const TemporaryFolder& folder, const std::string& module) {
  const fs::path source = kForms + "wrapped_multimodal";
  fs::create_directories(folder / "adapter");
  fs::copy_file(source / "adapter_config.json", folder / "adapter/adapter_config.json",
                fs::copy_options::overwrite_existing);
  const TensorIndex index(source, "adapter_model");
  const std::string name = "base_model.model.model." + module;
  std::vector<TensorSpec> specs{{name + ".lora_A.weight", DType::f32, {2, 3}},
                                {name + ".lora_B.weight", DType::f32, {2, 2}}};
  for (const auto& tensor : index.tensors())
    specs.push_back({tensor.info->name, *tensor.info->dtype, tensor.info->shape});
  formats::SafetensorsWriter writer(folder / "adapter/adapter_model.safetensors", specs);
  const std::vector<float> a{1, 2, 3, 4, 5, 6};
  const std::vector<float> b{1, 0, 0, 1};
  writer.write(specs[0].name, a.data(), 24);
  writer.write(specs[1].name, b.data(), 16);
  for (const auto& tensor : index.tensors()) {
    const auto bytes = stored_in(index, tensor.info->name);
    writer.write(tensor.info->name, bytes.data(), std::ssize(bytes));
  }
  writer.finish();
  return user_error_of([&] { merge_with(folder / "in", folder / "adapter", folder / "out"); });
}

TEST(MergedMultimodal, ProductsOfItsOtherPartsAreMergedToo) {
  const TemporaryFolder folder;
  wrap("mistral", kWithin, folder);
  EXPECT_TRUE(
      contains(merge_with_image_product(folder, "visual.elsewhere"),
               "the adapter changes 'model.visual.elsewhere.weight', and the model has no"));
  ASSERT_EQ(merge_with_image_product(folder, "visual.patch"), "(no error)");
  const TensorIndex from(folder / "in");
  const TensorIndex to(folder / "out");
  const auto before = stored_in(from, "model.visual.patch.weight");
  const auto after = stored_in(to, "model.visual.patch.weight");
  for (size_t i = 0; i < 6; ++i)  // alpha 4 over rank 2, times the identity, times 1 to 6
    EXPECT_EQ(reinterpret_cast<const float*>(after.data())[i],
              reinterpret_cast<const float*>(before.data())[i] + 2.0F * static_cast<float>(i + 1));
}

TEST(MergedMultimodal, GetsAHeadOfItsOwnAndAResizedVocabulary) {
  expect_wrapped("qwen2", "head_tied", kWithin);
  expect_wrapped("qwen2", "saved_head_tied", kBefore);
  expect_wrapped("qwen2", "resized_tied", kWithin);
}

TEST(MergedFolder, IsRoundedOnceInTheTypeThatIsAskedFor) {
  const TemporaryFolder folder;
  const fs::path model = kGoldens + "mistral/model";
  const fs::path adapter = kForms + "patterns_dora";
  merge_with(model, adapter, folder / "whole");
  merge_with(model, adapter, folder / "half", {.dtype = DType::bf16, .max_shard_bytes = 4096});
  const TensorIndex whole(folder / "whole");
  const TensorIndex half(folder / "half");
  EXPECT_GT(half.files().size(), 2U);
  EXPECT_EQ(base::read_json_file(folder / "half/config.json")["dtype"], "bfloat16");
  for (const auto& tensor : whole.tensors()) {
    const auto values = stored_in(whole, tensor.info->name);
    const auto rounded = stored_in(half, tensor.info->name);
    for (size_t i = 0; i < rounded.size() / 2; ++i) {
      const auto value = reinterpret_cast<const float*>(values.data())[i];
      ASSERT_EQ(reinterpret_cast<const base::BFloat16*>(rounded.data())[i].bits,
                base::to_bfloat16(value).bits)
          << tensor.info->name << " " << i;
    }
  }
}

// The recipe of a run may be given, with the type in which it computed.
TEST(MergedFolder, HasTheTypeThatTheCommandLineSays) {
  const std::vector<std::string> words{"model=" + kGoldens + "mistral/model",
                                       "adapter=" + kForms + "patterns", "output_dir=out"};
  const auto inputs = [&](const std::string& yaml, std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return merge_inputs(formats::parse_recipe(yaml, "run.yaml", more));
  };
  EXPECT_EQ(inputs("compute_dtype: fp32", {}).options.dtype, std::nullopt);
  EXPECT_EQ(inputs("", {"dtype=bf16"}).options.dtype, DType::bf16);
  EXPECT_EQ(inputs("compute_dtype: bf16", {"dtype=fp16"}).options.dtype, DType::f16);
  EXPECT_EQ(inputs("", {"max_shard_size=2MB"}).options.max_shard_bytes, 2'000'000);
}

// The adapter of a run's folder, and the model that its config names.
TEST(MergedFolder, InputsAreFoundFromARun) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run/checkpoint-5");
  fs::copy(kForms + "patterns", folder / "run/adapter");
  fs::copy(kForms + "patterns", folder / "run/checkpoint-9");
  const auto found = [&](const std::string& adapter) {
    return merge_inputs(formats::parse_recipe("", "run.yaml", {"adapter=" + adapter}));
  };
  const MergeInputs of_run = found((folder / "run").string());
  EXPECT_EQ(of_run.adapter, folder / "run/adapter");
  EXPECT_EQ(of_run.model, kGoldens + "mistral/model");
  fs::remove_all(folder / "run/adapter");
  EXPECT_EQ(found((folder / "run").string()).adapter, folder / "run/checkpoint-9");
  json config = base::read_json_file(folder / "run/checkpoint-9/adapter_config.json");
  config["base_model_name_or_path"] = "no-one/such-model";
  folder.write("run/checkpoint-9/adapter_config.json", config.dump());
  EXPECT_TRUE(contains(user_error_of([&] { found((folder / "run").string()); }),
                       "hf download no-one/such-model"));
}

TEST(MergedFolder, FitsWhatWasSaidOfIt) {
  const TemporaryFolder folder;
  const FolderMerger merger({.model = kGoldens + "mistral/model", .adapter = kForms + "patterns"});
  EXPECT_EQ(merger.plan().changed, 8);
  const FolderReport report = merger.write(folder / "out");
  EXPECT_LE(report.result_bytes, merger.plan().result_bytes);
  EXPECT_EQ(
      report.result_bytes,
      merger.plan().source_bytes - TensorIndex(kForms + "patterns", "adapter_model").total_bytes());
}

// Results are often put on a larger disk through a link, whose target may be still to be made.
TEST(MergedFolder, GoesThroughALinkToWhereItLeads) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "disk/empty");
  for (const char* target : {"disk/empty", "disk/new"}) {
    fs::create_symlink(target, folder / "link");
    merge_with(kGoldens + "mistral/model", kForms + "patterns", folder / "link");
    EXPECT_TRUE(fs::is_symlink(folder / "link"));
    EXPECT_TRUE(fs::exists(folder / target / "model.safetensors"));
    fs::remove(folder / "link");
  }
  EXPECT_EQ(folder.count(), 1U) << "the disk alone";
}

TEST(MergedFolder, InfinitiesInWhatTheAdapterLeavesAreNamed) {
  const TemporaryFolder folder;
  fs::copy(kGoldens + "mistral/model", folder / "in");
  const formats::SafetensorsFile file(folder / "in/model.safetensors");
  const float infinity = std::numeric_limits<float>::infinity();
  std::fstream stored(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  stored.seekp(file.header_bytes() + file.at("model.norm.weight").begin + 8);
  stored.write(reinterpret_cast<const char*>(&infinity), sizeof infinity);
  stored.close();
  const std::string error =
      user_error_of([&] { merge_with(folder / "in", kForms + "patterns", folder / "out"); });
  EXPECT_TRUE(contains(error, "'model.norm.weight' of the model holds an infinity or NaN at [2]"));
}

TEST(MergedFolder, NumbersThatATypeCannotHoldAreNamed) {
  const TemporaryFolder folder;
  fs::copy(kForms + "saved", folder / "adapter");
  const fs::path file = folder / "adapter/adapter_model.safetensors";
  const formats::SafetensorsFile before(kForms + "saved/adapter_model.safetensors");
  std::vector<TensorSpec> specs;
  for (const auto& tensor : before.tensors())
    specs.push_back({tensor.name, *tensor.dtype, tensor.shape});
  formats::SafetensorsWriter writer(file, specs);
  std::string large;
  for (const auto& tensor : before.tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    before.read(tensor, values.data());
    if (tensor.name.ends_with("lm_head.weight")) {
      values[3] = 70000.0F;
      large = tensor.name;
    }
    writer.write(tensor.name, values.data(), tensor.bytes());
  }
  writer.finish();
  ASSERT_FALSE(large.empty());
  const std::string error = user_error_of([&] {
    merge_with(kGoldens + "mistral/model", folder / "adapter", folder / "out",
               {.dtype = DType::f16});
  });
  EXPECT_TRUE(
      contains(error, "tensor 'lm_head.weight' has a number at [0, 3] that float16 cannot"));
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(MergedFolder, AdaptersOfOtherModelsAndKindsAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& golden, const std::string& adapter) {
    return user_error_of(
        [&] { merge_with(kGoldens + golden + "/model", adapter, folder / "out"); });
  };
  EXPECT_TRUE(contains(refusal("gpt2", kForms + "patterns"), "an adapter of another model"));
  EXPECT_TRUE(contains(refusal("grouped_tied", kGoldens + "prompt_layer/adapter"),
                       "this is a LLaMA-Adapter"));
  EXPECT_TRUE(contains(refusal("basic", kGoldens + "lora_all_linear/adapter"), "another model"));
  EXPECT_EQ(folder.count(), 0U);
}

// Text models that Snug has no family of: the products are the same. Where the head may be the
// embedding, what changes one of them cannot be told from what changes both.
TEST(MergedFolder, OfAModelThatSnugDoesNotKnowIsTheSame) {
  const TemporaryFolder folder;
  fs::copy(kGoldens + "mistral/model", folder / "in");
  json config = base::read_json_file(folder / "in/config.json");
  config["model_type"] = "mistral_of_tomorrow";
  folder.write("in/config.json", config.dump());
  for (const char* form : {"patterns", "patterns_dora", "head"}) {
    merge_with(folder / "in", kForms + form, folder / "of_unknown");
    merge_with(kGoldens + "mistral/model", kForms + form, folder / "of_known");
    const TensorIndex known(folder / "of_known");
    const TensorIndex unknown(folder / "of_unknown");
    for (const auto& tensor : known.tensors())
      EXPECT_EQ(stored_in(unknown, tensor.info->name), stored_in(known, tensor.info->name));
    fs::remove_all(folder / "of_known");
    fs::remove_all(folder / "of_unknown");
  }
  config["tie_word_embeddings"] = true;
  folder.write("in/config.json", config.dump());
  EXPECT_TRUE(contains(
      user_error_of([&] { merge_with(folder / "in", kForms + "head", folder / "of_unknown"); }),
      "the adapter changes 'lm_head.weight', and in this model"));
}

}  // namespace
}  // namespace snug::convert
