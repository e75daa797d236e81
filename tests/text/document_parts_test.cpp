// Records of an encoder-decoder: a prompt that its encoder reads, and an answer that its decoder
// learns.
#include "text/record/document_parts.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/row/dataset.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr int32_t kEos = 257;  // after 256 bytes and <s>

// Ends a text in EOS, as T5's tokenizers do.
Tokenizer t5_like() {
  TinyTokenizer tiny;
  tiny.keys["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
        {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}}},
      {"pair", nlohmann::json::array()},
      {"special_tokens", {{"</s>", {{"id", "</s>"}, {"ids", {kEos}}, {"tokens", {"</s>"}}}}}}};
  return tiny.make();
}

class DocumentPartsData : public ::testing::Test {
 protected:
  Dataset load(const std::string& contents, int32_t encoder_length = 64, int32_t max_length = 64) {
    return load_dataset(folder_.write("data.jsonl", contents), tokenizer_,
                        {.max_length = max_length,
                         .encoder_length = encoder_length,
                         .padding_id = 9,
                         .repeats_prompt = repeats_prompt_,
                         .vocabulary = 300,
                         .threads = 2});
  }
  std::string error_of(const std::string& contents) {
    return message_of<UserError>([&] { load(contents); });
  }
  static Ids part_of(const Dataset& data, TokenStream stream) {
    Ids words(static_cast<size_t>(data.documents.length(0, stream)));
    data.documents.read(0, words, stream);
    for (int32_t& word : words)
      word = DocumentStore::is_target(word) ? -DocumentStore::id_of(word) : word;
    return words;
  }
  static Ids prompt(const Dataset& data) { return part_of(data, TokenStream::encoder); }
  // Targets negated.
  static Ids answer(const Dataset& data) { return part_of(data, TokenStream::decoder); }

  Tokenizer tokenizer_ = t5_like();
  bool repeats_prompt_ = false;
  TemporaryFolder folder_;
};

TEST_F(DocumentPartsData, EachPartEndsInOneEos) {
  const Dataset data = load(R"({"prompt": "ab", "completion": "cd"})");
  EXPECT_EQ(prompt(data), (Ids{'a', 'b', kEos}));
  EXPECT_EQ(answer(data), (Ids{-'c', -'d', -kEos}));
  EXPECT_EQ(data.audit.trained_tokens, 3);
  EXPECT_EQ(data.audit.tokens, 6);
}

TEST_F(DocumentPartsData, InputAndTargetAreTheTwoParts) {
  const Dataset data = load(R"({"input": "ab", "target": "cd"})");
  EXPECT_EQ(prompt(data), (Ids{'a', 'b', kEos}));
  EXPECT_EQ(answer(data), (Ids{-'c', -'d', -kEos}));
}

// CodeT5+'s decoder reads prompt and answer as one text, and learns the answer.
TEST_F(DocumentPartsData, ADecoderMayRepeatThePrompt) {
  tokenizer_ = TinyTokenizer{}.make();
  repeats_prompt_ = true;
  const Dataset data = load(R"({"prompt": "ab", "completion": "cd"})");
  EXPECT_EQ(prompt(data), (Ids{'a', 'b'}));
  EXPECT_EQ(answer(data), (Ids{'a', 'b', -'c', -'d', -kEos}));
  const Dataset tokens = load(R"({"input_ids": [5, 6], "labels": [-100, -100, -100, 8]})");
  EXPECT_EQ(answer(tokens), (Ids{5, 6, 9, -8}));
  const std::string error =
      message_of<UserError>([&] { load(R"({"prompt": "abcd", "completion": "e"})", 64, 4); });
  EXPECT_TRUE(contains(error, "set max_target_length=6, which holds all of it")) << error;
}

TEST_F(DocumentPartsData, ATokenizerWithoutEosGetsOneAfterAnswers) {
  tokenizer_ = TinyTokenizer{}.make();
  const Dataset data = load(R"({"prompt": "ab", "completion": "cd"})");
  EXPECT_EQ(prompt(data), (Ids{'a', 'b'}));
  EXPECT_EQ(answer(data), (Ids{-'c', -'d', -kEos}));
}

TEST_F(DocumentPartsData, InstructionsAreRenderedForTheEncoder) {
  const Dataset data = load(R"({"instruction": "do", "output": "x"})", 400);
  EXPECT_EQ(prompt(data).size(), alpaca_prompt("do", "").size() + 1);
  EXPECT_EQ(answer(data), (Ids{-'x', -kEos}));
}

// The encoder's part still ends as it did; the decoder's has lost its end.
TEST_F(DocumentPartsData, BothPartsAreCut) {
  const Dataset data = load(R"({"prompt": "abcdef", "completion": "ghi"})", 4, 2);
  EXPECT_EQ(prompt(data), (Ids{'a', 'b', 'c', kEos}));
  EXPECT_EQ(answer(data), (Ids{-'g', -'h'}));
  EXPECT_EQ(data.audit.truncated, 1);
  EXPECT_EQ(data.audit.cut_tokens, 3 + 2);
}

TEST_F(DocumentPartsData, TokensArePromptAndLabels) {
  const Dataset data = load(R"({"input_ids": [5, 6, 7], "labels": [-100, 8, 1, 0]})");
  EXPECT_EQ(prompt(data), (Ids{5, 6, 7}));
  EXPECT_EQ(answer(data), (Ids{9, -8, -1, 0}));
  EXPECT_EQ(data.audit.trained_tokens, 3);
  const Dataset padded =
      load(R"({"input_ids": [5, 6, 0, 0], "attention_mask": [1, 1, 0, 0], "labels": [8]})");
  EXPECT_EQ(prompt(padded), (Ids{5, 6}));
}

TEST_F(DocumentPartsData, RefusesWhatHasNoTwoParts) {
  for (
      const auto& [record, named] : std::vector<std::pair<std::string, std::string>>{
          {R"({"text": "abc"})", "is not built for encoder-decoders"},
          {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
           "is not built for encoder-decoders"},
          {R"({"input_ids": [5, 6]})", "no label is a token"},
          {R"({"input_ids": [5, 6], "labels": [-100]})", "no label is a token"},
          {R"({"input_ids": [5, 6], "labels": [-3, 4]})", "labels[0] is -3"},
          {R"({"input_ids": [], "labels": [4]})", "no token for the encoder"},
          {R"({"input_ids": [5, 300], "labels": [4]})", "input_ids holds the id 300"},
          {R"({"input_ids": [5], "labels": [300]})", "labels holds the id 300"}})
    EXPECT_TRUE(contains(error_of(record), named)) << error_of(record);
}

}  // namespace
}  // namespace snug::text
