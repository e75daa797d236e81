// Folders with a SentencePiece model alone: the ids are those of transformers 5.24 for the same
// bytes.
#include "text/tokenizer/sentencepiece_model.h"

#include <gtest/gtest.h>

#include <bit>

#include "../base/processor_time.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127U) | 128U);
  return bytes + static_cast<char>(value);
}

std::string field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2U) + varint(bytes.size()) + bytes;
}

std::string field(uint64_t number, uint64_t value) { return varint(number << 3) + varint(value); }

std::string piece(const std::string& text, float score, PieceKind kind) {
  const auto bits = std::bit_cast<uint32_t>(score);
  std::string bytes = field(1, text) + varint(2U << 3 | 5U);
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>((bits >> (8 * i)) & 255U);
  return field(1, bytes + field(3, static_cast<uint64_t>(kind)));
}

// `first`, then ten pieces with scores of 0 to -9.
std::string model(std::string first, uint64_t kind, bool byte_fallback) {
  const std::vector<std::string> words = {"\u2581",
                                          "a",
                                          "b",
                                          "c",
                                          "ab",
                                          "\u2581"
                                          "a",
                                          "bc",
                                          "\u2581"
                                          "ab",
                                          "abc",
                                          "\u00e9"};
  for (size_t i = 0; i < words.size(); ++i)
    first += piece(words[i], -static_cast<float>(i * 7 % 10), PieceKind::normal);
  return first + field(2, field(3, kind) + field(35, byte_fallback ? 1 : 0)) +
         field(3, field(3, 1) + field(4, 0) + field(5, 1));
}

std::string bpe_model(const std::string& more = "") {
  std::string first = piece("<unk>", 0, PieceKind::unknown) + piece("<s>", 0, PieceKind::control) +
                      piece("</s>", 0, PieceKind::control);
  for (int byte = 0; byte < 256; ++byte)
    first += piece(fmt::format("<0x{:02X}>", byte), 0, PieceKind::byte);
  return model(first + more, 2, true);
}

void expect_ids(const TemporaryFolder& folder, const std::vector<Ids>& expected) {
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
  const std::vector<std::string> texts = {"abc ab", "a</s>  bc\u00e9",
                                          "\n\u2581"
                                          "abx",
                                          "<extra_id_1> a"};
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(tokenizer.encode(texts[i]), expected[i]) << texts[i];
}

// Of a piece of a megabyte hardly any division can be one into pieces.
TEST(SentencePieceFolder, WithOneLongPieceIsReadSoon) {
  const TemporaryFolder folder;
  folder.write("tokenizer.model",
               bpe_model(piece(std::string(size_t{1} << 20, 'q'), 0, PieceKind::normal)));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  const double begin = testing::processor_seconds();
  EXPECT_EQ(Tokenizer::from_folder(folder.path()).encode("abc"),
            (Ids{266 + 1, 262 + 1}));  // those of transformers, after one more piece
  EXPECT_LT(testing::processor_seconds() - begin, 20);
}

// The merges of pieces of all lengths, each of which every shorter one begins and ends, would take
// gigabytes.
TEST(SentencePieceFolder, OfPiecesThatAreAllMadeOfEachOtherIsRefused) {
  const TemporaryFolder folder;
  std::string pieces;
  for (size_t length = 2; length < 1200; ++length)
    pieces += piece(std::string(length, 'q'), 0, PieceKind::normal);
  folder.write("tokenizer.model", bpe_model(pieces));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  const double begin = testing::processor_seconds();
  const std::string error =
      message_of<base::UserError>([&] { Tokenizer::from_folder(folder.path()); });
  EXPECT_NE(error.find("tokenizer.model: its pieces are too long"), std::string::npos) << error;
  EXPECT_LT(testing::processor_seconds() - begin, 20);
}

TEST(SentencePieceFolder, OfLlamaHasTheIdsOfTransformers) {
  const TemporaryFolder folder;
  folder.write("tokenizer.model", bpe_model());
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true})");
  expect_ids(folder, {{1, 266, 262, 266},
                      {1, 264, 2, 259, 259, 265, 268},
                      {1, 259, 13, 266, 123},
                      {1, 259, 63, 104, 123, 119, 117, 260, 98, 108, 103, 98, 52, 65, 264}});
}

TEST(SentencePieceFolder, WithoutAClassHasTheIdsOfTransformers) {
  const TemporaryFolder folder;
  folder.write("tokenizer.model", bpe_model());
  folder.write("config.json", R"({"model_type": "mistral"})");
  expect_ids(folder, {{264, 265, 266},
                      {264, 2, 259, 259, 259, 265, 268},
                      {259, 13, 266, 123},
                      {259, 63, 104, 123, 119, 117, 260, 98, 108, 103, 98, 52, 65, 264}});
}

TEST(SentencePieceFolder, UserDefinedPiecesStandByThemselves) {
  const std::string bytes = bpe_model(piece("[X]", 0, PieceKind::user_defined) +
                                      piece("cab", 0, PieceKind::user_defined) +
                                      piece("[XY]", 0, PieceKind::user_defined));
  const std::vector<std::string> texts = {"abc ab", "a[X]b [XY]cab abcab", "[X][XY cabc"};
  const auto expect = [&](const TemporaryFolder& folder, const std::vector<Ids>& expected) {
    const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
    for (size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(tokenizer.encode(texts[i]), expected[i]) << texts[i];
  };
  const TemporaryFolder general;
  general.write("tokenizer.model", bytes);
  general.write("config.json", R"({"model_type": "mistral"})");
  expect(general, {{267, 268, 269},
                   {267, 259, 264, 262, 261, 260, 269, 260},
                   {262, 259, 94, 91, 92, 262, 260, 265}});
  const TemporaryFolder llama;
  llama.write("tokenizer.model", bytes);
  llama.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  expect(llama, {{269, 265, 269},
                 {267, 259, 264, 262, 261, 260, 269, 260},
                 {259, 94, 91, 92, 262, 260, 265}});
}

TEST(SentencePieceFolder, OfT5HasTheIdsOfTransformers) {
  const TemporaryFolder folder;
  folder.write("spiece.model",
               model(piece("<pad>", 0, PieceKind::control) + piece("</s>", 0, PieceKind::control) +
                         piece("<unk>", 0, PieceKind::unknown),
                     1, false));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 2})");
  expect_ids(folder, {{3, 11, 3, 7, 1}, {8, 1, 3, 9, 12, 1}, {3, 7, 2, 1}, {13, 8, 1}});
}

TEST(SentencePieceFolder, OfOthersAndDamagedOnesAreRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& bytes, const std::string& config) {
    folder.write("tokenizer.model", bytes);
    folder.write("tokenizer_config.json", config);
    return message_of<base::UserError>([&] { Tokenizer::from_folder(folder.path()); });
  };
  const std::string llama = R"({"tokenizer_class": "LlamaTokenizer"})";
  EXPECT_TRUE(testing::contains(refusal(bpe_model(), R"({"tokenizer_class": "XGLMTokenizer"})"),
                                "'XGLMTokenizer' (model_type '') is not supported"));
  EXPECT_TRUE(testing::contains(
      refusal(bpe_model(), R"({"tokenizer_class": "LlamaTokenizer", "pad_token": "[PAD]"})"),
      "names the pad_token '[PAD]', which is no piece"));
  EXPECT_TRUE(testing::contains(refusal("IQ== 0\nIg== 1\n", llama), "no SentencePiece model"));
  const std::string whole = bpe_model();
  EXPECT_TRUE(testing::contains(refusal(whole.substr(0, whole.size() / 2), llama),
                                "no SentencePiece model"));
  EXPECT_TRUE(testing::contains(refusal(model("", 3, false), llama), "words or characters"));
}

}  // namespace
}  // namespace snug::text
