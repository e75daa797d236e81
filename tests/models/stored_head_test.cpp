// A folder whose config.json ties the head to the embedding, with and without a head in its files.
#include "models/stored_head.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "base/temporary_folder.h"
#include "formats/safetensors_writer.h"
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

}  // namespace
}  // namespace snug::models
