// snug import gguf's work: a file that llama.cpp's converter made, with a tokenizer, as a folder.
#include "convert/gguf/import_gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/temporary_folder.h"
#include "convert/gguf_file_changes.h"
#include "formats/folder/tensor_index.h"
#include "models/config/config.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using base::DType;
using formats::GgmlType;
using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

constexpr const char* kTemplate = "{{ messages[0]['content'] }}</s>";

void add_small_tokenizer(GgufFileChanges& file) {
  using Texts = std::vector<std::string>;
  file.metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  file.metadata.set("tokenizer.ggml.pre", std::string("gpt-2"));
  file.metadata.set("tokenizer.ggml.tokens", Texts{"<s>", "</s>", "a", "b", "ab"});
  file.metadata.set("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 1, 1, 1});
  file.metadata.set("tokenizer.ggml.merges", Texts{"a b"});
  file.metadata.set("tokenizer.ggml.bos_token_id", 0U);
  file.metadata.set("tokenizer.ggml.eos_token_id", 1U);
  file.metadata.set("tokenizer.chat_template", std::string(kTemplate));
}

fs::path written(const TemporaryFolder& folder, const std::string& golden,
                 const std::function<void(GgufFileChanges&)>& change = {}) {
  GgufFileChanges file{formats::GgufFile("tests/goldens/gguf/converted/" + golden + ".gguf")};
  add_small_tokenizer(file);
  if (change) change(file);
  return file.write(folder / "x.gguf");
}

TEST(ImportGguf, MakesACompleteFolderWithinItsPlan) {
  const TemporaryFolder folder;
  const GgufImporter importer(written(folder, "biases"), std::nullopt);
  EXPECT_EQ(importer.note(), "");
  EXPECT_EQ(importer.plan().dtype, DType::f32);
  const FolderReport report = importer.write(folder / "deep/out");
  EXPECT_LE(report.result_bytes, importer.plan().result_bytes);
  const formats::TensorIndex golden("tests/goldens/biases/model");
  const formats::TensorIndex made(folder / "deep/out");
  ASSERT_EQ(made.tensors().size(), golden.tensors().size());
  for (const formats::IndexedTensor& tensor : golden.tensors()) {
    std::vector<char> expected(static_cast<size_t>(tensor.info->bytes()));
    std::vector<char> found(expected.size());
    golden.read(tensor, expected.data());
    made.read(made.at(tensor.info->name), found.data());
    EXPECT_EQ(found, expected) << tensor.info->name;
  }
  const models::ModelConfig config = models::find_model((folder / "deep/out").string()).config;
  EXPECT_EQ(config.file_width, 4);
  EXPECT_TRUE(config.attention_bias);
  const auto tokenizer = text::Tokenizer::from_folder(folder / "deep/out");
  EXPECT_EQ(tokenizer.encode("aab"), (std::vector<int32_t>{2, 4}));
  EXPECT_EQ(base::read_text_file(folder / "deep/out/chat_template.jinja"), kTemplate);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "deep"), {}), 1)
      << "nothing else is left";
}

TEST(ImportGguf, RoundsToTheTypeThatIsAskedFor) {
  const TemporaryFolder folder;
  for (const auto& [dtype, name] : {std::pair{DType::bf16, "BF16"}, std::pair{DType::f16, "F16"}}) {
    const fs::path out = folder / name;
    GgufImporter(written(folder, "biases"), dtype).write(out);
    const formats::TensorIndex made(out);
    for (const formats::IndexedTensor& tensor : made.tensors())
      EXPECT_EQ(tensor.info->stored_dtype, name) << tensor.info->name;
  }
}

TEST(ImportGguf, SaysWhatTheValuesOfAQuantisedFileAre) {
  const TemporaryFolder folder;
  // The model with 32 for its width of 36, so that rows of the embedding are whole blocks: zeros.
  const fs::path path = written(folder, "biases", [](GgufFileChanges& file) {
    file.metadata.set("llama.embedding_length", 32U);
    file.metadata.set("llama.attention.key_length", 6U);
    file.metadata.set("llama.attention.value_length", 6U);
    for (size_t i = 0; i < file.tensors.size(); ++i) {
      formats::GgufTensorSpec& tensor = file.tensors[i];
      const bool makes_width =
          contains(tensor.name, "attn_output") || contains(tensor.name, "down");
      int64_t& width = makes_width ? tensor.shape.front() : tensor.shape.back();
      if (width == 36 && (makes_width || !tensor.name.ends_with(".bias"))) width = 32;
      if (tensor.name == "token_embd.weight") tensor.type = GgmlType::q8_0;
      file.data[i].assign(static_cast<size_t>(tensor.bytes()), std::byte{0});
    }
  });
  const GgufImporter importer(path, std::nullopt);
  EXPECT_TRUE(contains(importer.note(), "1 of 35 tensors are quantised (most values in f32)"));
  importer.write(folder / "out");
  const formats::TensorIndex made(folder / "out");
  EXPECT_EQ(made.at("model.embed_tokens.weight").info->shape, (std::vector<int64_t>{101, 32}));
}

TEST(ImportGguf, RefusesATokenizerBeforeItReadsWeights) {
  const TemporaryFolder folder;
  const fs::path path = written(folder, "biases", [](GgufFileChanges& file) {
    file.metadata.set("tokenizer.ggml.model", std::string("rwkv"));
    file.data[0][3] = std::byte{0x7f};  // a weight that is not finite
    file.data[0][2] = std::byte{0xff};
  });
  const std::string error =
      user_error_of([&] { GgufImporter(path, std::nullopt).write(folder / "out"); });
  EXPECT_TRUE(contains(error, path.string()));
  EXPECT_TRUE(contains(error, "tokenizer.ggml.model"));
  EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST(ImportGguf, RefusesWhatTheTypeCannotHold) {
  const TemporaryFolder folder;
  const fs::path path = written(folder, "biases", [](GgufFileChanges& file) {
    const float large = 1e6F;
    std::memcpy(file.data[file.index_of("blk.0.ffn_up.weight")].data(), &large, 4);
  });
  GgufImporter(path, DType::bf16).write(folder / "bf16");
  EXPECT_TRUE(
      contains(user_error_of([&] { GgufImporter(path, DType::f16).write(folder / "fp16"); }),
               "float16 cannot hold"));
  EXPECT_FALSE(fs::exists(folder / "fp16"));
}

TEST(ImportGguf, RefusesMoreTokensThanRows) {
  const TemporaryFolder folder;
  const fs::path path = written(folder, "biases", [](GgufFileChanges& file) {
    file.metadata.set("tokenizer.ggml.tokens", std::vector<std::string>(102, "a"));
  });
  EXPECT_TRUE(contains(user_error_of([&] { GgufImporter(path, std::nullopt); }),
                       "tokenizer.ggml.tokens has 102 tokens, but token_embd.weight has 101 rows"));
}

}  // namespace
}  // namespace snug::convert
