// A text in pieces has the ids of the whole, whatever the tokenizer and wherever pieces end.
#include "text/tokenizer/text_encoder.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "golden_files.h"
#include "text/unicode/utf8.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using Ids = std::vector<int32_t>;
using Json = nlohmann::ordered_json;

// The ids of `text` in pieces of random sizes; the message where it is refused.
Ids in_pieces(const Tokenizer& tokenizer, std::string_view text, size_t piece_bytes,
              std::string& refusal) {
  std::mt19937 random(static_cast<unsigned>(piece_bytes));
  Ids ids;
  refusal = message_of<base::UserError>([&] {
    TextEncoder encoder(tokenizer, piece_bytes);
    for (size_t begin = 0; begin < text.size();) {
      std::string_view piece = text.substr(begin, 1 + random() % (2 * piece_bytes));
      piece.remove_suffix(incomplete_tail(piece));
      encoder.add(piece, ids);
      begin += piece.size();
    }
    encoder.finish(ids);
  });
  return ids;
}

// All texts of the goldens in a row, over and over, in changing order, and between them words that
// look different while their end is not there yet.
std::string long_text(size_t bytes) {
  auto texts = json_of(kGoldens + "texts.json").get<std::vector<std::string>>();
  const std::vector<std::string> open = {"we're ", "they'll",  " I've", "\r\n\r\n",
                                         "   x",   "1234567",  "</s>",  "<|endoftext|>",
                                         " \t ",   "a\xCC\x81"};
  std::mt19937 random(3);
  std::string text;
  while (text.size() < bytes) {
    const std::string& next = texts[random() % texts.size()];
    for (int i = 0; i < 20; ++i) text += open[random() % open.size()];
    if (next.size() < 4000) text += next + (random() % 3 == 0 ? "\n" : " ");
  }
  return text;
}

class Pipelines : public ::testing::TestWithParam<const char*> {};

TEST_P(Pipelines, GiveTheIdsOfTheWhole) {
  const std::string text = long_text(60'000);
  for (const Json& variant : json_of(kGoldens + "tiny/" + GetParam() + ".json")) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    const Tokenizer tokenizer = Tokenizer::from_text(document_of(variant), "", "tiny");
    const Ids whole = tokenizer.encode(text, false);
    for (const size_t piece : {400UL, 3000UL}) {
      std::string refusal;
      const Ids ids = in_pieces(tokenizer, text, piece, refusal);
      EXPECT_EQ(refusal, "");
      ASSERT_EQ(ids.size(), whole.size()) << piece;
      ASSERT_TRUE(ids == whole) << piece;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TextEncoder, Pipelines, ::testing::Values("pipelines", "published"));

TEST(TextEncoder, GivesTheIdsOfTheWholeForWellKnownTokenizers) {
  const std::string shared = kSharedData + "tokenizers/";
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << shared << " is absent";
  const std::string text = long_text(200'000);
  for (const char* name : {"falcon", "gpt2", "llama2", "llama3", "phi-2", "phi-3-mini", "qwen"}) {
    SCOPED_TRACE(name);
    if (!std::filesystem::exists(shared + name + "/tokenizer.json")) continue;
    const Tokenizer tokenizer = Tokenizer::from_folder(shared + name);
    std::string refusal;
    const Ids ids = in_pieces(tokenizer, text, 5000, refusal);
    EXPECT_EQ(refusal, "");
    ASSERT_TRUE(ids == tokenizer.encode(text, false));
  }
}

// The model knows of SentencePiece's mark that no merge goes past it, and of no other mark.
TEST(TextEncoder, DividesAtNoOtherMark) {
  TinyTokenizer tiny;
  tiny.added.clear();
  tiny.config.clear();
  tiny.keys["model"] = {{"type", "BPE"},
                        {"unk_token", nullptr},
                        {"vocab", {{"_", 0}, {"a", 1}, {"j", 2}, {"j_", 3}, {"\xE2\x96\x81", 4}}},
                        {"merges", {"j _"}}};
  tiny.keys["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}, {"split", false}};
  const Tokenizer tokenizer = tiny.make();
  std::string text;
  for (int i = 0; i < 40; ++i) text += "aj ";
  std::string refusal;
  EXPECT_EQ(in_pieces(tokenizer, text, 8, refusal), tokenizer.encode(text, false)) << refusal;
}

TEST(TextEncoder, RefusesWhatOffersNoPlaceToCut) {
  TinyTokenizer tiny{{{"a", "a"}}};
  std::string refusal;
  in_pieces(tiny.make(), std::string(3'000'000, 'a'), 60'000, refusal);
  EXPECT_NE(refusal.find("split the text"), std::string::npos) << refusal;
  tiny.keys["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  std::string words;
  while (words.size() < 3'000'000) words += "a word ";
  in_pieces(tiny.make(), words, 60'000, refusal);
  EXPECT_NE(refusal.find("split the text"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace snug::text
