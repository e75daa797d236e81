// Ids and texts against the Hugging Face `tokenizers` library: small tokenizers that ship with the
// tests, in every pipeline Snug reads, and the well-known ones where the shared data is present.
#include <gtest/gtest.h>

#include "golden_files.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::text {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> texts() {
  return json_of(kGoldens + "texts.json").get<std::vector<std::string>>();
}

void expect_pipeline(const Json& variant, const std::vector<std::string>& inputs) {
  const Tokenizer tokenizer = Tokenizer::from_text(document_of(variant), "", "tiny");

  Hash all_ids;
  Hash all_texts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto ids = tokenizer.encode(inputs[i]);
    const std::string hash = hash_of(ids);
    EXPECT_EQ(hash.substr(10), variant["hashes"][i].get<std::string>())
        << Json(inputs[i]).dump() << " gives " << ::testing::PrintToString(ids);
    all_ids.add(std::stoull(hash, nullptr, 16));
    for (const bool skip : {true, false})
      all_texts.add(std::stoull(hash_of(tokenizer.decode(ids, skip)), nullptr, 16));
  }
  EXPECT_EQ(all_ids.hex(), variant["ids"].get<std::string>());
  EXPECT_EQ(all_texts.hex(), variant["decoded"].get<std::string>());
}

TEST(TinyTokenizers, EqualTheLibraryInEveryPipeline) {
  const auto inputs = texts();
  const Json variants = json_of(kGoldens + "tiny/pipelines.json");
  EXPECT_GE(variants.size(), 40U);
  for (const Json& variant : variants) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    expect_pipeline(variant, inputs);
  }
}

TEST(TinyTokenizers, EqualTheLibraryWithPreTokenizersOfPublishedModels) {
  auto inputs = texts();
  const Json regexes = json_of(kGoldens + "regexes.json");
  for (const Json& text : regexes["texts"]) inputs.push_back(text.get<std::string>());
  for (const Json& variant : json_of(kGoldens + "tiny/published.json")) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    expect_pipeline(variant, inputs);
  }
}

class WellKnown : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = json_of(kGoldens + GetParam() + ".json");
    path_ = kSharedData + golden_["tokenizer"].get<std::string>();
    if (!std::filesystem::exists(path_)) GTEST_SKIP() << path_ << " is absent";
  }

  Tokenizer tokenizer() const {
    return std::filesystem::is_directory(path_)
               ? Tokenizer::from_folder(path_)
               : Tokenizer::from_text(contents_of(path_), "", path_);
  }

  Json golden_;
  std::string path_;
};

TEST_P(WellKnown, EqualsTheLibraryOnEdgeCases) {
  const Tokenizer tokenizer = this->tokenizer();
  const auto inputs = texts();
  ASSERT_EQ(inputs.size(), golden_["cases"].size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json& expected = golden_["cases"][i];
    SCOPED_TRACE(Json(inputs[i]).dump());
    const auto ids = tokenizer.encode(inputs[i]);
    if (expected.contains("ids")) {
      EXPECT_EQ(ids, expected["ids"].get<std::vector<int32_t>>());
    } else {
      EXPECT_EQ(hash_of(ids), expected["hash"].get<std::string>()) << ::testing::PrintToString(ids);
    }
    EXPECT_EQ(hash_of(tokenizer.decode(ids)), expected["decoded"].get<std::string>());
    EXPECT_EQ(hash_of(tokenizer.decode(ids, false)), expected["decoded_all"].get<std::string>());
  }
}

void encode_strings(const Tokenizer& tokenizer, const Json& value, std::vector<int32_t>& ids) {
  if (value.is_string()) {
    const auto more = tokenizer.encode(value.get<std::string>());
    ids.insert(ids.end(), more.begin(), more.end());
  } else if (value.is_structured()) {
    for (const auto& item : value) encode_strings(tokenizer, item, ids);
  }
}

std::vector<int32_t> encode_all_strings(const Tokenizer& tokenizer, const std::string& path) {
  std::vector<int32_t> ids;
  if (!path.ends_with(".jsonl")) {
    encode_strings(tokenizer, json_of(path), ids);
    return ids;
  }
  std::istringstream lines(contents_of(path));
  for (std::string line; std::getline(lines, line);)
    encode_strings(tokenizer, Json::parse(line), ids);
  return ids;
}

TEST_P(WellKnown, EqualsTheLibraryOnFiles) {
  const Tokenizer tokenizer = this->tokenizer();
  for (const Json& file : golden_["files"]) {
    const auto path = kSharedData + file["path"].get<std::string>();
    SCOPED_TRACE(path);
    const auto ids = file.contains("strings") ? encode_all_strings(tokenizer, path)
                                              : tokenizer.encode(contents_of(path));
    EXPECT_EQ(ids.size(), file["count"].get<size_t>());
    EXPECT_EQ(hash_of(ids), file["hash"].get<std::string>());
  }
}

std::string name_of_case(const ::testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shared, WellKnown,
                         ::testing::Values("llama2", "llama3", "gpt2", "qwen2", "phi-3-mini",
                                           "phi-2", "falcon", "t5-small", "torchtitan-test",
                                           "torchtune-tiny", "tiny_bpe", "gemma_cropped"),
                         name_of_case);

}  // namespace
}  // namespace snug::text
