#include "runtime/saving/save_model.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "base/json.h"
#include "base/temporary_folder.h"
#include "formats/folder/tensor_index.h"
#include "models/families/families.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/save_tensors.h"
#include "runtime/storage/tensor_part.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using base::DType;
using testing::contains;
using testing::golden;
using testing::TemporaryFolder;
using testing::TinyRun;
using testing::user_error_of;

models::ModelSource golden_source(const std::string& name) {
  return models::find_model((golden(name) / "model").string());
}

TEST(SaveModel, ReadsBackBitForBit) {
  for (const char* name :
       {"grouped_tied", "biases", "rope_llama3", "gpt2", "bloom", "falcon_grouped"}) {
    SCOPED_TRACE(name);
    const models::ModelSource source = golden_source(name);
    TinyRun run({.model = source.config});
    load_weights(source.folder, source.config, run.executor());
    TemporaryFolder folder;
    save_model(folder / "out", source, run.executor());
    TinyRun again({.model = source.config});
    load_weights(folder / "out", source.config, again.executor());
    for (const models::Weight& weight : models::weights_of(source.config))
      EXPECT_TRUE(run.bytes(weight.name) == again.bytes(weight.name)) << weight.name;
    EXPECT_EQ(formats::TensorIndex(folder / "out").tensors().size(),
              models::weights_of(source.config).size());
  }
}

TEST(SaveModel, CarriesConfigAndCompanionsOfTheBase) {
  TemporaryFolder folder;
  std::filesystem::copy(golden("sharded_bf16") / "model", folder / "base");
  std::filesystem::remove(folder / "base/config_v4.json");
  for (const char* name : {"base/tokenizer.json", "base/tokenizer_config.json",
                           "base/special_tokens_map.json", "base/chat_template.jinja"})
    folder.write(name, std::string("contents of ") + name);
  const models::ModelSource source = models::find_model((folder / "base").string());
  TinyRun run({.model = source.config});
  load_weights(source.folder, source.config, run.executor());
  save_model(folder / "out", source, run.executor());

  const auto before = base::read_json_file(folder / "base/config.json");
  auto after = base::read_json_file(folder / "out/config.json");
  EXPECT_EQ(after["dtype"], "float32");
  after["dtype"] = before["dtype"];
  EXPECT_EQ(after, before);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "chat_template.jinja", "generation_config.json"})
    EXPECT_EQ(base::read_text_file(folder / "out" / name),
              base::read_text_file(folder / "base" / name))
        << name;
  EXPECT_FALSE(std::filesystem::exists(folder / "out/model.safetensors.index.json"));
  EXPECT_EQ(folder.count(), 2U) << "nothing is left next to it";

  folder.write("base/tokenizer_config.json", "{}");
  save_model(folder / "trained", source, run.executor(), {"{{ 'mine' }}", {5, 7}});
  EXPECT_EQ(base::read_text_file(folder / "trained/chat_template.jinja"), "{{ 'mine' }}");
  EXPECT_EQ(base::read_json_file(folder / "trained/generation_config.json")["eos_token_id"],
            nlohmann::json({5, 7}));
}

TEST(SaveModel, UpdatesTheOlderTypeKeyToo) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "base");
  std::filesystem::copy(golden("basic") / "model/config_v4.json", folder / "base/config.json");
  const models::ModelSource source = models::find_model((folder / "base").string());
  TinyRun run({.model = source.config, .compute = DType::bf16, .init_seed = 3});
  random_weights(source.config, run.executor());
  run.executor().run(program::ProgramName::prepare);
  save_model(folder / "out", source, run.executor());
  const auto config = base::read_json_file(folder / "out/config.json");
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_FALSE(config.contains("dtype"));
  const formats::TensorIndex index(folder / "out");
  EXPECT_EQ(index.at("model.norm.weight").info->stored_dtype, "BF16");
}

TEST(SaveModel, ReplacesAnEarlierOneWhole) {
  TemporaryFolder folder;
  folder.write("out/leftover.txt", "old");
  TinyRun run({.init_seed = 3});
  random_weights(run.spec().model, run.executor());
  save_model(folder / "out", {run.spec().model, {}}, run.executor());
  EXPECT_FALSE(std::filesystem::exists(folder / "out/leftover.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder / "out/model.safetensors"));
}

TEST(SaveModel, RefusesWhatIsNotFinite) {
  for (const DType compute : {DType::f32, DType::bf16})
    for (const float wrong :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN()}) {
      TemporaryFolder folder;
      TinyRun run({.compute = compute, .init_seed = 3});
      random_weights(run.spec().model, run.executor());
      run.executor().run(program::ProgramName::prepare);
      save_model(folder / "out", {run.spec().model, {}}, run.executor());
      const std::string before = base::read_text_file(folder / "out/model.safetensors");
      run.set(run.executor().tensor("model.norm.weight"), 5, wrong);
      const std::string text = user_error_of([&] {
        save_model(folder / "out", {run.spec().model, {}}, run.executor());
      });
      EXPECT_TRUE(contains(text, "tensor 'model.norm.weight' is not finite at [5]"));
      EXPECT_EQ(base::read_text_file(folder / "out/model.safetensors"), before);
      EXPECT_EQ(folder.count(), 1U) << "nothing is half-written";
    }
}

// What a preset's config.json says must read as the same shape.
TEST(ConfigJson, ReadsAsTheSameShape) {
  for (const std::string& name : models::preset_names()) {
    SCOPED_TRACE(name);
    const models::ModelConfig config = *models::preset(name);
    const std::string text = config_json(config, DType::bf16);
    const models::ModelConfig back = models::parse_config(text, "config.json");
    EXPECT_EQ(config_json(back, DType::bf16), text);
    EXPECT_EQ(back.norm_epsilon, config.norm_epsilon);
    EXPECT_EQ(back.initializer_range, config.initializer_range);
    EXPECT_EQ(models::parameter_count(back), models::parameter_count(config));
    EXPECT_EQ(models::inverse_frequencies(back), models::inverse_frequencies(config));
    EXPECT_EQ(back.tied_embeddings, config.tied_embeddings);
    for (int64_t layer = 0; layer < config.num_layers; ++layer)
      EXPECT_EQ(back.window_of(layer), config.window_of(layer)) << layer;
    const models::Family* family = models::find_family(config.model_type);
    EXPECT_EQ(nlohmann::json::parse(text)["architectures"],
              nlohmann::json::array({family->architecture}));
  }
}

TEST(SaveTensors, ADamagedFileDoesNotReadBack) {
  TemporaryFolder folder;
  TinyRun run({.init_seed = 3});
  random_weights(run.spec().model, run.executor());
  Saved tensors = saved_by(program::ProgramName::save, FileSet::model, run.executor());
  write_tensors(folder.path(), "model", tensors, run.executor());
  EXPECT_NO_THROW(read_back(folder.path(), "model", tensors, run.executor()));
  std::string file = base::read_text_file(folder / "model.safetensors");
  file.back() = static_cast<char>(file.back() ^ 1);
  base::write_file_atomically(folder / "model.safetensors", file);
  const std::string text =
      user_error_of([&] { read_back(folder.path(), "model", tensors, run.executor()); });
  EXPECT_TRUE(contains(text, "model.safetensors: tensor 'lm_head.weight' does not read back"));
}

// A tensor, or a part of one, that the program writes and no file got.
TEST(SaveTensors, NoticesWhatWasNotWritten) {
  TemporaryFolder folder;
  TinyRun run({.init_seed = 3});
  random_weights(run.spec().model, run.executor());
  Saved without = saved_by(program::ProgramName::save, FileSet::model, run.executor());
  without.tensors.pop_back();
  EXPECT_TRUE(
      testing::dies([&] { write_tensors(folder.path(), "without", without, run.executor()); },
                    "asked[i] (0 against"));
  Saved shorter = saved_by(program::ProgramName::save, FileSet::model, run.executor());
  SavedTensor& last = shorter.tensors.back();
  last.buffer = slice(last.buffer, 0, last.buffer.elements() - 1);
  last.shape = last.buffer.shape;
  EXPECT_TRUE(testing::dies(
      [&] { write_tensors(folder.path(), "shorter", shorter, run.executor()); }, "asked[i] ("));
}

// The program says that all of it is read back.
TEST(SaveTensors, NoticesWhatWasNotReadBack) {
  TemporaryFolder folder;
  TinyRun run({.init_seed = 3});
  random_weights(run.spec().model, run.executor());
  Saved saved = saved_by(program::ProgramName::save, FileSet::model, run.executor());
  for (const int64_t missing_bytes : {int64_t{1}, saved.asked.back()}) {
    saved.compared.back() = -missing_bytes;
    EXPECT_TRUE(testing::dies([&] { write_tensors(folder.path(), "model", saved, run.executor()); },
                              "ran with read_back"));
  }
}

// What the files took is what counts, whatever was handed on to be written.
TEST(SaveTensors, NoticesWhatNoFileTook) {
  TinyRun run({.init_seed = 3});
  random_weights(run.spec().model, run.executor());
  const auto save_without = [&](size_t at, int64_t missing_bytes) {
    Saved saved = saved_by(program::ProgramName::save, FileSet::model, run.executor());
    const SavedTensor* left_out = at < saved.tensors.size() ? &saved.tensors[at] : nullptr;
    save_pieces(saved, run.executor(),
                [&](const SavedTensor& tensor, const backends::Buffer& piece, int64_t) {
                  return piece.bytes() - (&tensor == left_out ? missing_bytes : 0);
                });
  };
  const Saved whole = saved_by(program::ProgramName::save, FileSet::model, run.executor());
  const size_t last = whole.tensors.size() - 1;
  save_without(last + 1, 0);
  for (const size_t at : {size_t{0}, last}) {
    EXPECT_TRUE(
        testing::dies([&] { save_without(at, whole.tensors[at].buffer.bytes()); }, "bytes"));
    EXPECT_TRUE(testing::dies([&] { save_without(at, 1); }, "bytes"));
  }
}

TEST(SaveTensors, SplitsIntoShards) {
  TemporaryFolder folder;
  TinyRun run({.init_seed = 3});
  random_weights(run.spec().model, run.executor());
  Saved tensors = saved_by(program::ProgramName::save, FileSet::model, run.executor());
  write_tensors(folder.path(), "model", tensors, run.executor(), 3000);
  const formats::TensorIndex index(folder.path());
  EXPECT_GT(index.files().size(), 2U);
  EXPECT_NO_THROW(read_back(folder.path(), "model", tensors, run.executor()));
}

}  // namespace
}  // namespace snug::runtime
