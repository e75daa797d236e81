// Tokenizers of folders as metadata of GGUF files. Expected names of rules, kinds and scores are
// those of llama.cpp's converter (scripts/oracles/check_gguf_tokenizers compares whole files).
#include "convert/gguf/tokenizer_out.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "convert/gguf/byte_level_rules.h"
#include "convert/tokenizer_folder.h"
#include "text/golden_files.h"
#include "text/tiny_tokenizer.h"

namespace snug::convert {
namespace {

using formats::Metadata;
using nlohmann::json;
using Texts = std::vector<std::string>;

// One of the small tokenizers of tests/text/goldens, with the keys of a variant.
std::string variant_document(const std::string& file, const std::string& name) {
  for (const auto& variant : text::json_of(text::kGoldens + "tiny/" + file))
    if (variant["name"] == name) return text::document_of(variant);
  throw std::runtime_error("no variant " + name);
}

TEST(TokenizerOut, NamesTheRuleThatDividesTextsAsTheTokenizerDoes) {
  const std::map<std::string, std::string> names = {
      {"qwen2, qwen3", "qwen2"},      {"qwen3.5", "qwen35"},
      {"llama 3, glm 4", "dbrx"},     {"deepseek v3", "deepseek-v3"},
      {"gpt-oss, llama 4", "gpt-4o"}, {"mistral tekken, nemotron", "tekken"},
      {"bloom, bloomz", "bloom"},     {"zeta", "seed-coder"}};
  for (const auto& [variant, name] : names) {
    SCOPED_TRACE(variant);
    TokenizerFolder folder(variant_document("published.json", variant));
    const Metadata metadata = folder.metadata();
    EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.ggml.pre"), name);
    EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.ggml.model"), "gpt2");
    EXPECT_EQ(folder.notes, Texts{});
  }
}

// Llama 3's words are those of dbrx, but words that are tokens are not merged.
TEST(TokenizerOut, TellsRulesApartThatIgnoreMerges) {
  json document = json::parse(variant_document("published.json", "llama 3, glm 4"));
  document["model"]["ignore_merges"] = true;
  TokenizerFolder folder(document.dump());
  EXPECT_EQ(value_of<std::string>(folder.metadata(), "tokenizer.ggml.pre"), "llama-bpe");
}

TEST(TokenizerOut, RefusesWordsThatNoRuleMakes) {
  for (const char* variant : {"split_Removed", "prefix_space", "whitespace_split"}) {
    SCOPED_TRACE(variant);
    TokenizerFolder folder(variant_document("pipelines.json", variant));
    const std::string message = testing::user_error_of([&] { folder.metadata(); });
    EXPECT_TRUE(testing::contains(message, "tokenizer.json: llama.cpp has no rule"));
  }
}

TEST(TokenizerOut, RefusesNormalizersThatChangeOrdinaryTexts) {
  TokenizerFolder folder(variant_document("pipelines.json", "nfkc_lower_strip"));
  const std::string message = testing::user_error_of([&] { folder.metadata(); });
  EXPECT_TRUE(testing::contains(message, "of 6 ordinary texts"));
}

TEST(TokenizerOut, RefusesModelsThatGgufHasNoFormFor) {
  TokenizerFolder folder(variant_document("pipelines.json", "plain_word_piece"));
  EXPECT_TRUE(
      testing::contains(testing::user_error_of([&] { folder.metadata(); }), "not WordPiece"));
}

TEST(TokenizerOut, NotesWhatLlamaCppDividesInAnotherWay) {
  TokenizerFolder folder(variant_document("pipelines.json", "nfc"));
  folder.metadata();
  ASSERT_EQ(folder.notes.size(), 1U);
  EXPECT_TRUE(testing::contains(folder.notes[0], "1 of 16 unusual texts"));
}

TEST(TokenizerOut, FillsRowsWithoutTokensAndTellsKindsOfTokens) {
  text::TinyTokenizer tiny{.merges = {{"a", "b"}}, .added = {"<s>", "<|im_end|>"}};
  json document = tiny.document();
  document["added_tokens"].push_back(
      {{"id", 259}, {"content", "plain word"}, {"special", false}, {"normalized", false}});
  document["added_tokens"].push_back(
      {{"id", 260}, {"content", "<|looks_special|>"}, {"special", false}, {"normalized", false}});
  TokenizerFolder folder(document.dump(), {{"bos_token", "<s>"}, {"eos_token", "<|im_end|>"}});
  const Metadata metadata = folder.metadata(2);
  const auto tokens = value_of<Texts>(metadata, "tokenizer.ggml.tokens");
  const auto kinds = value_of<std::vector<int32_t>>(metadata, "tokenizer.ggml.token_type");
  ASSERT_EQ(tokens.size(), 263U);
  ASSERT_EQ(kinds.size(), 263U);
  EXPECT_EQ(Texts(tokens.begin() + 256, tokens.end()),
            (Texts{"ab", "<s>", "<|im_end|>", "plain word", "<|looks_special|>", "[PAD261]",
                   "[PAD262]"}));
  EXPECT_EQ(std::vector<int32_t>(kinds.begin() + 256, kinds.end()),
            (std::vector<int32_t>{1, 3, 3, 4, 3, 5, 5}));
  EXPECT_EQ(value_of<Texts>(metadata, "tokenizer.ggml.merges"), Texts{"a b"});
  EXPECT_EQ(value_of<uint32_t>(metadata, "tokenizer.ggml.bos_token_id"), 257U);
  EXPECT_EQ(value_of<uint32_t>(metadata, "tokenizer.ggml.eos_token_id"), 258U);
  EXPECT_FALSE(value_of<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(metadata.find("tokenizer.ggml.scores"), nullptr);
}

// The table of a model may have fewer rows than its tokenizer has tokens.
TEST(TokenizerOut, LeavesOutTokensWithoutRowsAndTheirMerges) {
  const text::TinyTokenizer tiny{.merges = {{"a", "b"}, {"ab", "c"}}, .added = {}};
  TokenizerFolder folder(tiny.document().dump());
  const Metadata metadata = folder.metadata(-1);
  EXPECT_EQ(value_of<Texts>(metadata, "tokenizer.ggml.tokens").size(), 257U);
  EXPECT_EQ(value_of<Texts>(metadata, "tokenizer.ggml.merges"), Texts{"a b"});
}

TEST(TokenizerOut, NamesEndsThatLlamaCppDoesNotKnow) {
  const text::TinyTokenizer tiny{
      .merges = {}, .added = {"<s>", "</s>", "<|im_end|>", "<turn>", "<done>", "<over>"}};
  TokenizerFolder folder(tiny.document().dump(), tiny.config);
  folder.write("generation_config.json", json{{"eos_token_id", {257, 258, 259, 260, 261}}}.dump());
  const Metadata metadata = folder.metadata();
  EXPECT_EQ(value_of<uint32_t>(metadata, "tokenizer.ggml.eos_token_id"), 257U);
  EXPECT_EQ(value_of<uint32_t>(metadata, "tokenizer.ggml.eot_token_id"), 259U);
  EXPECT_EQ(value_of<uint32_t>(metadata, "tokenizer.ggml.eom_token_id"), 260U);
  ASSERT_EQ(folder.notes.size(), 1U);
  EXPECT_TRUE(testing::contains(folder.notes[0], "will not stop at '<over>'"));
}

TEST(TokenizerOut, TakesWhatStandsAroundATextFromTheTokenizer) {
  text::TinyTokenizer tiny;
  const json first = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  tiny.keys["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {first, text}},
      {"pair", {first, text}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {256}}, {"tokens", {"<s>"}}}}}}};
  TokenizerFolder folder(tiny.document().dump(), tiny.config);
  const Metadata metadata = folder.metadata();
  EXPECT_TRUE(value_of<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(value_of<bool>(metadata, "tokenizer.ggml.add_eos_token"));
}

TEST(TokenizerOut, KeepsChatTemplates) {
  const text::TinyTokenizer tiny;
  TokenizerFolder folder(tiny.document().dump(), tiny.config);
  folder.write("chat_template.jinja", "the usual one");
  folder.write("additional_chat_templates/tool use.jinja", "the one with tools");
  const Metadata metadata = folder.metadata();
  EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.chat_template"), "the usual one");
  EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.chat_template.tool_use"),
            "the one with tools");
  EXPECT_EQ(value_of<Texts>(metadata, "tokenizer.chat_templates"), Texts{"tool_use"});
}

// <unk>, <s>, </s>, the bytes, and pieces of SentencePiece's kind with merges.
json piece_document(const std::vector<std::pair<std::string, std::string>>& merges) {
  json document = {
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
      {"added_tokens", json::array()},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"merges", json::array()}}}};
  json& vocab = document["model"]["vocab"];
  const auto add = [&](const std::string& token) {
    if (!vocab.contains(token)) vocab[token] = vocab.size();
  };
  for (const char* token : {"<unk>", "<s>", "</s>"}) {
    document["added_tokens"].push_back(
        {{"id", vocab.size()}, {"content", token}, {"special", true}, {"normalized", false}});
    add(token);
  }
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const auto& [left, right] : merges) {
    document["model"]["merges"].push_back({left, right});
    add(left + right);
  }
  for (const auto& [left, right] : merges)
    for (const std::string& part : {left, right}) add(part);
  return document;
}

TEST(TokenizerOut, RanksPiecesByTheirMerges) {
  TokenizerFolder folder(
      piece_document({{"h", "e"}, {"\u2581", "he"}, {"l", "l"}, {"\u2581h", "e"}, {"\u2581", "h"}})
          .dump(),
      {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}});
  const Metadata metadata = folder.metadata();
  EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.ggml.model"), "llama");
  EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.ggml.pre"), "default");
  const auto tokens = value_of<Texts>(metadata, "tokenizer.ggml.tokens");
  const auto scores = value_of<std::vector<float>>(metadata, "tokenizer.ggml.scores");
  const auto kinds = value_of<std::vector<int32_t>>(metadata, "tokenizer.ggml.token_type");
  std::map<std::string, float> score_of;
  for (size_t id = 259; id < tokens.size(); ++id) score_of[tokens[id]] = scores[id];
  EXPECT_EQ(score_of["he"], 0);
  EXPECT_EQ(score_of["\u2581he"], -1);
  EXPECT_EQ(score_of["ll"], -2);
  EXPECT_EQ(score_of["\u2581h"], -3);
  EXPECT_EQ(std::vector<int32_t>(kinds.begin(), kinds.begin() + 4),
            (std::vector<int32_t>{2, 3, 3, 6}));
  EXPECT_TRUE(value_of<bool>(metadata, "tokenizer.ggml.add_space_prefix"));
  EXPECT_FALSE(value_of<bool>(metadata, "tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(value_of<uint32_t>(metadata, "tokenizer.ggml.unknown_token_id"), 0U);
}

// llama.cpp ends at a character that has neither a token nor tokens of its bytes.
TEST(TokenizerOut, RefusesPiecesWithoutTokensOfBytes) {
  json document = piece_document({{"h", "e"}});
  document["model"]["vocab"].erase("<0x41>");
  document["model"]["vocab"].erase("<0xC3>");
  TokenizerFolder folder(document.dump());
  EXPECT_TRUE(testing::contains(testing::user_error_of([&] { folder.metadata(); }),
                                "no tokens for 2 of the 256 bytes"));
}

TEST(TokenizerOut, WritesTheTableOfAUnigramsNormalizer) {
  TokenizerFolder folder(variant_document("pipelines.json", "plain_unigram"));
  const Metadata metadata = folder.metadata();
  EXPECT_EQ(value_of<std::string>(metadata, "tokenizer.ggml.model"), "t5");
  EXPECT_EQ(folder.notes, Texts{});
}

// The converter's names for published tokenizers.
TEST(TokenizerOut, FindsTheNamesOfPublishedTokenizers) {
  const std::map<std::string, std::string> names = {
      {"gpt2", "gpt-2"}, {"phi-2", "phi-2"}, {"falcon", "falcon"}};
  for (const auto& [folder, name] : names) {
    const std::string path = text::kSharedData + "tokenizers/" + folder;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
    const auto tokenizer = text::Tokenizer::from_folder(path);
    EXPECT_EQ(name_of_fingerprint(tokenizer.encode(kFingerprintText)), name);
  }
}

}  // namespace
}  // namespace snug::convert
