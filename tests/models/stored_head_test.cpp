// A folder whose config.json ties the head to the embedding, with and without a head in its files,
// and folders that hold a table under other names, or several times.
#include "models/stored/stored_head.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "formats/folder/safetensors_writer.h"
#include "formats/folder/tensor_index.h"
#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "models/weights.h"

namespace snug::models {
namespace {

constexpr const char* kEmbeddingWeight = "model.embed_tokens.weight";
constexpr const char* kHeadWeight = "lm_head.weight";

constexpr int64_t kRows = 40'000;  // more than one piece is read
constexpr int64_t kColumns = 32;

class StoredHead : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_.path() / "config.json")
        << R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2,
               "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 40000,
               "tie_word_embeddings": true})";
  }

  void write(const std::vector<std::string>& names, float last_of_head, base::DType type) {
    std::vector<formats::TensorSpec> specs;
    for (const std::string& name : names)
      specs.push_back({name, type_of(name, type), {kRows, kColumns}});
    formats::SafetensorsWriter writer(folder_.path() / "model.safetensors", specs, {});
    for (const formats::TensorSpec& spec : specs) {
      std::vector<float> values(kRows * kColumns, 1.0F);
      if (spec.name == kHeadWeight) values.back() = last_of_head;
      writer.write(spec.name, values.data(),
                   kRows * kColumns * base::size_of(type_of(spec.name, type)));
    }
    writer.finish();
  }

  static base::DType type_of(const std::string& name, base::DType of_head) {
    return name == kHeadWeight ? of_head : base::DType::f32;
  }

  bool is_tied() const { return find_model(folder_.path().string()).config.tied_embeddings; }

  testing::TemporaryFolder folder_;
};

TEST_F(StoredHead, IsTheEmbeddingWhereNoneIsStored) {
  EXPECT_TRUE(is_tied());  // no files of tensors at all
  write({kEmbeddingWeight}, 0, base::DType::f32);
  EXPECT_TRUE(is_tied());
}

TEST_F(StoredHead, IsTheEmbeddingWhereItHasItsValues) {
  write({kEmbeddingWeight, kHeadWeight}, 1.0F, base::DType::f32);
  EXPECT_TRUE(is_tied());
}

TEST_F(StoredHead, IsUsedWhereItsLastValueIsAnother) {
  write({kEmbeddingWeight, kHeadWeight}, 1.5F, base::DType::f32);
  EXPECT_FALSE(is_tied());
}

TEST_F(StoredHead, IsUsedWhereItHasAnotherType) {
  write({kEmbeddingWeight, kHeadWeight}, 1.0F, base::DType::bf16);
  EXPECT_FALSE(is_tied());
}

// A copy of a golden model's folder whose tensors have other names, or copies.
class RewrittenFolder {
 public:
  explicit RewrittenFolder(const std::string& golden)
      : source_("tests/goldens/" + golden + "/model") {
    for (const formats::IndexedTensor& tensor : source_.tensors())
      add(tensor.info->name, tensor.info->name);
  }

  // `added`: to the last element.
  void add(const std::string& name, const std::string& source, float added = 0) {
    const formats::IndexedTensor& tensor = source_.at(source);
    std::vector<float> values(static_cast<size_t>(tensor.info->elements()));
    source_.read(tensor, values.data());
    values.back() += added;
    tensors_[name] = {tensor.info->shape, std::move(values)};
  }
  void rename(const std::string& from, const std::string& to) {
    auto tensor = tensors_.extract(from);
    tensor.key() = to;
    tensors_.insert(std::move(tensor));
  }

  ModelConfig find() const {
    std::filesystem::copy_file(source_.folder() / "config.json", folder_.path() / "config.json",
                               std::filesystem::copy_options::overwrite_existing);
    std::vector<formats::TensorSpec> specs;
    for (const auto& [name, tensor] : tensors_)
      specs.push_back({name, base::DType::f32, tensor.first});
    formats::SafetensorsWriter writer(folder_.path() / "model.safetensors", specs, {});
    for (const formats::TensorSpec& spec : specs)
      writer.write(spec.name, tensors_.at(spec.name).second.data(), spec.bytes());
    writer.finish();
    return find_model(folder_.path().string()).config;
  }

  std::string error() const {
    try {
      find();
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "no error";
  }

  // Whether the folder that was found last has a tensor of this name for the model.
  bool holds(const std::string& name, const ModelConfig& config) const {
    return open_weights(folder_.path(), stack_of(config)).find(name) != nullptr;
  }

 private:
  formats::TensorIndex source_;
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> tensors_;
  testing::TemporaryFolder folder_;
};

constexpr const char* kShared = "shared.weight";
constexpr const char* kOfEncoder = "encoder.embed_tokens.weight";
constexpr const char* kOfDecoder = "decoder.embed_tokens.weight";

// transformers 5 computes with both tables where they differ.
TEST(StoredEmbedding, IsOneInBothStacksOfT5) {
  for (const std::string copy : {kOfEncoder, kOfDecoder}) {
    RewrittenFolder folder("t5");
    folder.add(copy, kShared);
    EXPECT_EQ(folder.error(), "no error") << copy;
    folder.add(copy, kShared, 0.5F);
    const std::string text = folder.error();
    EXPECT_NE(text.find("model.safetensors: tensor '" + copy), std::string::npos) << text;
    EXPECT_NE(text.find("is not the same as 'shared.weight'"), std::string::npos) << text;
  }
}

// Of tables that are one the files need hold but one, as transformers reads them.
TEST(StoredEmbedding, MayHaveTheNameOfACopy) {
  for (const char* name : {kOfEncoder, kOfDecoder, kHeadWeight}) {
    RewrittenFolder t5("t5");
    t5.rename(kShared, name);
    const ModelConfig config = t5.find();
    EXPECT_TRUE(config.tied_embeddings) << name;
    EXPECT_TRUE(t5.holds(kShared, config)) << name;
  }
  RewrittenFolder llama("grouped_tied");
  llama.rename(kEmbeddingWeight, kHeadWeight);
  EXPECT_TRUE(llama.holds(kEmbeddingWeight, llama.find()));
  RewrittenFolder gpt2("gpt2");
  gpt2.rename("transformer.wte.weight", kHeadWeight);
  EXPECT_TRUE(gpt2.holds("transformer.wte.weight", gpt2.find()));
  RewrittenFolder untied("basic");  // whose head is no embedding
  untied.rename(kEmbeddingWeight, "other");
  EXPECT_FALSE(untied.holds(kEmbeddingWeight, untied.find()));
}

// GPT-NeoX's, which is lm_head in transformers since 5, and embed_out before and in its files.
TEST(RenamedHead, HasEitherOfItsNames) {
  RewrittenFolder folder("gpt_neox");
  folder.rename("embed_out.weight", kHeadWeight);
  EXPECT_TRUE(folder.holds("embed_out.weight", folder.find()));
}

}  // namespace
}  // namespace snug::models
