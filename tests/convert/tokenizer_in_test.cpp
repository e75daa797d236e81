// The tokenizer of a GGUF file as files of a folder: what went out comes back with the same ids.
#include "convert/gguf/tokenizer_in.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "convert/gguf/missing_rule.h"
#include "convert/tokenizer_folder.h"
#include "text/golden_files.h"
#include "text/tiny_tokenizer.h"

namespace snug::convert {
namespace {

using formats::Metadata;
using nlohmann::json;
using Texts = std::vector<std::string>;

Texts sample_texts() {
  auto texts = text::json_of(text::kGoldens + "texts.json").get<Texts>();
  for (const auto& text : text::json_of(text::kGoldens + "regexes.json")["texts"])
    texts.push_back(text.get<std::string>());
  return texts;
}

// Folder, metadata, folder: both tokenizers give the same ids and the same texts.
void expect_round_trip(const std::string& document) {
  TokenizerFolder folder(document);
  const testing::TemporaryFolder other;
  write_tokenizer(folder.metadata(3), other.path());
  const auto before = folder.tokenizer();
  const auto after = text::Tokenizer::from_folder(other.path());
  EXPECT_EQ(after.vocabulary_size(), before.vocabulary_size());
  for (const std::string& text : sample_texts()) {
    const auto ids = before.encode(text);
    EXPECT_EQ(after.encode(text), ids) << json(text).dump();
    EXPECT_EQ(after.decode(ids), before.decode(ids)) << json(text).dump();
  }
}

TEST(TokenizerIn, ByteLevelTokenizersOfPublishedModelsComeBack) {
  const Texts names = {"qwen2, qwen3",     "qwen3.5",
                       "llama 3, glm 4",   "deepseek v3",
                       "gpt-oss, llama 4", "mistral tekken, nemotron",
                       "bloom, bloomz",    "zeta"};
  size_t found = 0;
  for (const auto& variant : text::json_of(text::kGoldens + "tiny/published.json")) {
    const auto name = variant["name"].get<std::string>();
    if (std::ranges::find(names, name) == names.end()) continue;
    SCOPED_TRACE(name);
    ++found;
    json document = json::parse(text::document_of(variant));
    if (name.starts_with("qwen")) document["normalizer"] = {{"type", "NFC"}};
    expect_round_trip(document.dump());
  }
  EXPECT_EQ(found, names.size());
}

std::string pipeline_document(const std::string& name) {
  for (const auto& variant : text::json_of(text::kGoldens + "tiny/pipelines.json"))
    if (variant["name"] == name) return text::document_of(variant);
  throw std::runtime_error("no variant " + name);
}

TEST(TokenizerIn, OtherKindsComeBack) {
  for (const char* name : {"plain_byte_level", "roberta", "plain_piece"}) {
    SCOPED_TRACE(name);
    expect_round_trip(pipeline_document(name));
  }
  // A GGUF file holds scores in fp32, as SentencePiece does, which trains most Unigram models.
  json unigram = json::parse(pipeline_document("plain_unigram"));
  for (json& piece : unigram["model"]["vocab"])
    piece[1] = static_cast<double>(piece[1].get<float>());
  expect_round_trip(unigram.dump());
}

TEST(TokenizerIn, WritesNamesEndsAndTemplates) {
  const text::TinyTokenizer tiny{.merges = {{"a", "b"}}, .added = {"<s>", "</s>", "<|im_end|>"}};
  TokenizerFolder folder(tiny.document().dump(), tiny.config);
  folder.write("chat_template.jinja", "usual");
  folder.write("additional_chat_templates/rag.jinja", "another");
  Metadata metadata = folder.metadata();
  metadata.set("general.architecture", std::string("llama"));
  metadata.set("llama.context_length", uint32_t{512});
  metadata.set("general.sampling.temp", 0.6F);
  metadata.set("general.sampling.top_k", int32_t{20});
  const testing::TemporaryFolder other;
  write_tokenizer(metadata, other.path());
  const auto config = text::json_of((other / "tokenizer_config.json").string());
  EXPECT_EQ(config["bos_token"], "<s>");
  EXPECT_EQ(config["eos_token"], "</s>");
  EXPECT_EQ(config["model_max_length"], 512);
  const auto generation = text::json_of((other / "generation_config.json").string());
  EXPECT_EQ(generation["bos_token_id"], 257);
  EXPECT_EQ(generation["eos_token_id"], json({258, 259}));
  EXPECT_EQ(generation["temperature"], 0.6);
  EXPECT_EQ(generation["top_k"], 20);
  EXPECT_EQ(generation["do_sample"], true);
  EXPECT_EQ(text::contents_of((other / "chat_template.jinja").string()), "usual");
  EXPECT_EQ(text::contents_of((other / "additional_chat_templates/rag.jinja").string()), "another");
}

// The tokens and merges of SmolLM2's tokenizer that can be in the text by which converters know
// tokenizers, at their ids; between them are holes.
Metadata smollm2_metadata() {
  const json golden = text::json_of(text::kGoldens + "smollm2_cropped.json");
  Texts tokens;
  for (const auto& [token, id] : golden["tokens"].items()) {
    const auto index = id.get<size_t>();
    for (size_t hole = tokens.size(); hole <= index; ++hole) tokens.push_back(hole_text(hole));
    tokens[index] = token;
  }
  std::vector<int32_t> kinds;
  for (size_t id = 0; id < tokens.size(); ++id)
    kinds.push_back(tokens[id] == hole_text(id) ? 5 : 1);
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.tokens", tokens);
  metadata.set("tokenizer.ggml.token_type", kinds);
  metadata.set("tokenizer.ggml.merges", golden["merges"].get<Texts>());
  return metadata;
}

// Without the key, and with what converters wrote for tokenizers that they did not know.
TEST(TokenizerIn, FindsTheRuleThatAnOldFileDoesNotName) {
  Metadata metadata = smollm2_metadata();
  const GgufTokenizer tokenizer = read_tokenizer_keys(metadata);
  EXPECT_TRUE(lacks_rule(tokenizer));
  EXPECT_EQ(rule_by_ids(tokenizer), "smollm");
  metadata.set("tokenizer.ggml.pre", std::string("default"));
  const testing::TemporaryFolder made;
  write_tokenizer(metadata, made.path());
  metadata.set("tokenizer.ggml.pre", std::string("smollm"));
  const testing::TemporaryFolder named;
  write_tokenizer(metadata, named.path());
  EXPECT_EQ(text::contents_of((made / "tokenizer.json").string()),
            text::contents_of((named / "tokenizer.json").string()));
}

// Scores say nothing there, and a text does not begin with a space.
TEST(TokenizerIn, TakesTheMergesThatAFileOfGemma4Lists) {
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gemma4"));
  metadata.set("tokenizer.ggml.tokens",
               Texts{"<pad>", "<eos>", "<bos>", "<unk>", "\u2581", "a", "b", "c", "ab", "bc"});
  metadata.set("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 3, 2, 1, 1, 1, 1, 1, 1});
  metadata.set("tokenizer.ggml.scores", std::vector<float>(10, -1000.0F));
  metadata.set("tokenizer.ggml.add_bos_token", true);
  metadata.set("tokenizer.ggml.bos_token_id", uint32_t{2});
  metadata.set("tokenizer.ggml.unknown_token_id", uint32_t{3});
  const testing::TemporaryFolder made;
  const auto refusal = [&] { write_tokenizer(metadata, made.path()); };
  EXPECT_TRUE(testing::contains(testing::user_error_of(refusal), "lists its merges"));
  metadata.set("tokenizer.ggml.merges", Texts{"b c", "a b"});
  write_tokenizer(metadata, made.path());
  const text::Tokenizer tokenizer = text::Tokenizer::from_folder(made.path());
  EXPECT_EQ(tokenizer.encode("abc ab"), (std::vector<int32_t>{2, 5, 9, 4, 8}));
}

struct Damage {
  const char* key;
  formats::MetadataValue value;
  const char* message;
};

TEST(TokenizerIn, RefusesWhatDoesNotFitTogether) {
  const text::TinyTokenizer tiny{.merges = {{"a", "b"}}};
  TokenizerFolder folder(tiny.document().dump());
  const Metadata whole = folder.metadata();
  const std::vector<Damage> damages = {
      {"tokenizer.ggml.model", std::string("rwkv"), "'rwkv' are not supported"},
      {"tokenizer.ggml.model", std::string("none"), "has no tokenizer"},
      {"tokenizer.ggml.model", uint32_t{1}, "tokenizer.ggml.model: expected a text"},
      {"tokenizer.ggml.pre", std::string("kimi-k2"), "does not know 'kimi-k2'"},
      {"tokenizer.ggml.pre", std::string(), "does not say it, and its ids are those of no"},
      {"tokenizer.ggml.pre", std::string("default"), "--pre-tokenizer llama-bpe FILE NEW_FILE"},
      {"tokenizer.ggml.tokens", Texts{}, "has no tokenizer"},
      {"tokenizer.ggml.tokens", Texts{"a", "a"}, "token_type: 259 types for 2 tokens"},
      {"tokenizer.ggml.tokens", Texts(259, "a"), "'a' stands there twice"},
      {"tokenizer.ggml.tokens", Texts(259, "\xFF"), "not valid UTF-8"},
      {"tokenizer.ggml.token_type", std::vector<int32_t>(259, 7), "has the type 7"},
      {"tokenizer.ggml.scores", std::vector<float>(2), "2 scores for 259 tokens"},
      {"tokenizer.ggml.scores", std::vector<float>(259, NAN), "is not finite"},
      {"tokenizer.ggml.merges", Texts{"ab"}, "'ab' is not two tokens"},
      {"tokenizer.ggml.merges", std::vector<float>{1}, "expected a list of texts"},
      {"tokenizer.ggml.bos_token_id", std::string("<s>"), "expected an integer"},
      {"tokenizer.ggml.add_bos_token", uint32_t{1}, "expected true or false"},
      {"tokenizer.chat_template...x", std::string("x"), "the name of a template"},
  };
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.message);
    Metadata metadata = whole;
    metadata.set(damage.key, damage.value);
    const testing::TemporaryFolder other;
    const std::string message =
        testing::user_error_of([&] { write_tokenizer(metadata, other.path()); });
    EXPECT_TRUE(testing::contains(message, damage.message));
  }
}

}  // namespace
}  // namespace snug::convert
