#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "../base/processor_time.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/chat/chat_settings.h"
#include "text/tokenizer/stream_decoder.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using testing::TemporaryFolder;

using base::UserError;
using Ids = std::vector<int32_t>;
using nlohmann::json;

// Merges with the ids 256 ab, 257 bc, 258 abc; <s> 259, </s> 260.
TinyTokenizer abc() { return {{{"a", "b"}, {"b", "c"}, {"ab", "c"}}}; }

TEST(Tokenizer, MergesTheEarliestPairFirst) {
  const Tokenizer tokenizer = abc().make();
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{258}));
  EXPECT_EQ(tokenizer.encode("bcab"), (Ids{257, 256}));
  EXPECT_EQ(tokenizer.encode("abbc"), (Ids{256, 257}));
  EXPECT_EQ(tokenizer.encode("</s>ab<s>"), (Ids{260, 256, 259}));
  EXPECT_EQ(tokenizer.encode(""), (Ids{}));
  EXPECT_EQ(tokenizer.vocabulary_size(), 261);
}

TEST(Tokenizer, ADropoutOfNothingIsNone) {
  for (const json& nothing : {json(0), json(0.0), json(nullptr)}) {
    json document = abc().document();
    document["model"]["dropout"] = nothing;
    EXPECT_EQ(Tokenizer::from_text(document.dump(), "", "tiny").encode("abc"), (Ids{258}));
  }
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = abc().make();
  EXPECT_EQ(tokenizer.id_of("abc"), 258);
  EXPECT_EQ(tokenizer.id_of("</s>"), 260);
  EXPECT_EQ(tokenizer.id_of("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer.token_of(258), "abc");
  EXPECT_EQ(tokenizer.token_of(261), std::nullopt);
  EXPECT_EQ(tokenizer.token_of(-1), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(260));
  EXPECT_FALSE(tokenizer.is_special(258));
  EXPECT_EQ(tokenizer.bos_id(), 259);
  EXPECT_EQ(tokenizer.eos_id(), 260);
  EXPECT_EQ(tokenizer.pad_id(), std::nullopt);
  EXPECT_GT(tokenizer.host_bytes(), 0);
}

TEST(Tokenizer, DecodesWhatItEncodes) {
  const Tokenizer tokenizer = abc().make();
  const std::string text = "<s>abc \xE4\xB8\xAD\xF0\x9F\x98\x80\n</s>";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text), false), text);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), "abc \xE4\xB8\xAD\xF0\x9F\x98\x80\n");
  EXPECT_EQ(tokenizer.decode(Ids{0xE4, 0xB8, 'x', 9999}), "\xEF\xBF\xBDx");
}

TEST(Tokenizer, PutsItsTokensAroundAText) {
  TinyTokenizer tiny = abc();
  tiny.keys["post_processor"] = TinyTokenizer::bos_template(259);
  const Tokenizer tokenizer = tiny.make();
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{259, 256}));
  EXPECT_EQ(tokenizer.encode("ab", false), (Ids{256}));
}

TEST(Tokenizer, LongWordsDoNotTakeQuadraticTime) {
  const Tokenizer tokenizer = TinyTokenizer{{{"a", "a"}, {"aa", "aa"}}}.make();
  const double start = testing::processor_seconds();
  const Ids ids = tokenizer.encode(std::string(500'003, 'a'));
  EXPECT_EQ(ids.size(), 125'002U);  // aaaa ..., aa, a
  EXPECT_LT(testing::processor_seconds() - start, 60);
}

TEST(Tokenizer, AWordThatIsTooLongIsRefused) {
  const Tokenizer tokenizer = TinyTokenizer{{{"a", "a"}}}.make();
  const auto message =
      message_of<UserError>([&] { tokenizer.encode(std::string(2'000'000, 'a')); });
  EXPECT_NE(message.find("split the text"), std::string::npos) << message;
}

TEST(Tokenizer, ManyThreadsEncodeAlike) {
  const Tokenizer tokenizer = abc().make();
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "abc cab " + std::to_string(i * 7919 % 1000);
  const Ids expected = tokenizer.encode(text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) threads.emplace_back([&] { ids = tokenizer.encode(text); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const Tokenizer tokenizer = abc().make();
  const auto message = message_of<UserError>([&] { tokenizer.encode("ab\xFFz"); });
  EXPECT_NE(message.find("not valid UTF-8 at byte 2"), std::string::npos) << message;
}

TEST(Tokenizer, TwoAddedTokensOfOneNormalFormAreRefused) {
  TinyTokenizer tiny = abc();
  json document = tiny.document();
  document["normalizer"] = {{"type", "Lowercase"}};
  document["added_tokens"][1]["content"] = "<S>";
  for (json& token : document["added_tokens"]) token["normalized"] = true;
  const auto message = message_of<UserError>(
      [&] { Tokenizer::from_text(document.dump(), "", "tiny/tokenizer.json"); });
  EXPECT_NE(message.find("'<s>' and '<S>' are not supported together"), std::string::npos)
      << message;
}

// White space after <r> is taken; a token of white space that lies within it is none of its own.
TEST(Tokenizer, WhiteSpaceBelongsToOneAddedToken) {
  TinyTokenizer tiny = abc();
  tiny.added = {"<r>", "   ", "<l>"};  // 259, 260, 261
  json document = tiny.document();
  document["added_tokens"][0]["rstrip"] = true;
  document["added_tokens"][1]["lstrip"] = true;
  document["added_tokens"][1]["rstrip"] = true;
  document["added_tokens"][2]["lstrip"] = true;
  const Tokenizer tokenizer = Tokenizer::from_text(document.dump(), "", "tiny");
  EXPECT_EQ(tokenizer.encode("a<r>   b"), (Ids{'a', 259, 'b'}));
  EXPECT_EQ(tokenizer.encode("a<r>  <l>b"), (Ids{'a', 259, 261, 'b'}));
  EXPECT_EQ(tokenizer.encode("a    b"), (Ids{'a', 260, 'b'}));
  document["added_tokens"][1]["rstrip"] = false;
  const Tokenizer other = Tokenizer::from_text(document.dump(), "", "tiny");
  EXPECT_NE(message_of<UserError>([&] { other.encode("a<r>    b"); }).find("'   ' (lstrip)"),
            std::string::npos);
}

// What each edit of tokenizer.json must be answered with.
struct Refusal {
  const char* pointer;
  json value;
  const char* message;
};

TEST(Tokenizer, NamesWhatItDoesNotSupport) {
  const json unknown = {{"type", "Fancy"}};
  const json sequence = {{"type", "Sequence"},
                         {"pretokenizers", {TinyTokenizer::byte_level(), unknown}}};
  const json regex = {{"type", "Split"},
                      {"pattern", {{"Regex", "a(?m)"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const json two_templates = {
      {"type", "Sequence"},
      {"processors", {TinyTokenizer::bos_template(259), TinyTokenizer::bos_template(259)}}};
  json behavior = regex;
  behavior["pattern"] = {{"String", "a"}};
  behavior["behavior"] = "Sideways";
  const std::vector<Refusal> refusals = {
      {"/normalizer", unknown, "normalizer: the normalizer 'Fancy'"},
      {"/normalizer", {{"type", "Precompiled"}}, "the key 'precompiled_charsmap' is missing"},
      {"/normalizer",
       {{"type", "Replace"}, {"pattern", {{"Regex", "x*"}}}, {"content", "y"}},
       "normalizer: a Replace whose pattern may match nothing is not supported before"},
      {"/pre_tokenizer", unknown, "pre_tokenizer: the pre-tokenizer 'Fancy'"},
      {"/pre_tokenizer", sequence, "pre_tokenizer.pretokenizers[1]: the pre-tokenizer 'Fancy'"},
      {"/pre_tokenizer", regex, "this kind of group"},
      {"/pre_tokenizer", behavior, "the behavior 'Sideways'"},
      {"/pre_tokenizer/pattern", 1, "the key 'pattern' is not supported"},
      {"/pre_tokenizer/add_prefix_space", 1, "expected true or false"},
      {"/post_processor", unknown, "the post-processor 'Fancy'"},
      {"/decoder", unknown, "the decoder 'Fancy'"},
      {"/model/type", "Fancy", "the tokenizer model 'Fancy'"},
      {"/model/type", "Unigram", "model.vocab: expected an array"},
      {"/model/type", "WordPiece", "model: the key 'merges' is not supported"},
      {"/model/dropout", 0.1, "merge dropout"},
      {"/model/magic", 1, "the key 'magic' is not supported"},
      {"/model/unk_token", "<unk>", "the unk_token '<unk>' is not in the vocabulary"},
      {"/model/merges", {"a b", "x"}, "'x' is not two tokens"},
      {"/model/merges", json::array({json::array({"a", "b"}), json::array({"x", "y"})}),
       "merge 1 joins 'x' and 'y', but 'xy'"},
      {"/model/merges", 3, "model.merges: expected an array"},
      {"/model/vocab/a", -1, "the id of 'a'"},
      {"/model/vocab/a", "x", "the id of 'a'"},
      {"/model/vocab/a", 98, "stands there twice"},
      {"/added_tokens/0/id", 7, "'<s>' is declared with the id 7"},
      {"/added_tokens/0/content", "", "an added token is empty"},
      {"/added_tokens/1/content", "<s>", "the added token '<s>' stands there twice"},
      {"/post_processor", two_templates, "processors[1]: a post-processor 'TemplateProcessing'"},
      {"/extra", 1, "the key 'extra' is not supported"},
  };
  for (const Refusal& refusal : refusals) {
    json document = abc().document();
    document[json::json_pointer(refusal.pointer)] = refusal.value;
    const auto message = message_of<UserError>(
        [&] { Tokenizer::from_text(document.dump(), "", "tiny/tokenizer.json"); });
    EXPECT_NE(message.find(refusal.message), std::string::npos)
        << refusal.pointer << " = " << refusal.value << " gives: " << message;
    EXPECT_EQ(message.find("tiny/tokenizer.json"), 0U) << message;
  }
}

TEST(Tokenizer, SaysWhereJsonIsBroken) {
  const auto message = message_of<UserError>(
      [] { Tokenizer::from_text("{\n \"model\": {,\n", "", "tokenizer.json"); });
  EXPECT_NE(message.find("tokenizer.json:2:12: not valid JSON"), std::string::npos) << message;
}

TEST(TokenizerFolder, ReadsTheSmallFiles) {
  const TemporaryFolder folder;
  TinyTokenizer tiny = abc();
  tiny.added = {"<s>", "</s>", "<eot>", "<pad>"};
  folder.write("tokenizer.json", tiny.document().dump());
  folder.write("tokenizer_config.json",
               R"({"eos_token": {"content": "</s>"}, "chat_template": "<|im_start|>",)"
               R"("added_tokens_decoder": {"263": {"content": "<new>", "special": true}}})");
  folder.write("special_tokens_map.json", R"({"pad_token": "<pad>", "eos_token": "<eot>"})");
  folder.write("generation_config.json", R"({"bos_token_id": 259, "eos_token_id": [261, 260]})");
  folder.write("config.json", R"({"eos_token_id": 262})");  // asked only where the other has none
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
  EXPECT_EQ(tokenizer.bos_id(), 259);
  EXPECT_EQ(tokenizer.eos_id(), 260);
  EXPECT_EQ(tokenizer.pad_id(), 262);
  EXPECT_EQ(Ids(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()), (Ids{260, 261}));
  EXPECT_EQ(tokenizer.chat_settings().templates.at("default"), "<|im_start|>");
  EXPECT_EQ(tokenizer.encode("<new>"), (Ids{263}));
  EXPECT_EQ(tokenizer.vocabulary_size(), 264);
}

TEST(TokenizerFolder, SaysWhatIsMissingOrBroken) {
  const TemporaryFolder folder;
  auto load = [&] { Tokenizer::from_folder(folder.path()); };
  auto message = message_of<UserError>(load);
  EXPECT_NE(message.find("/tokenizer.json: no such file"), std::string::npos) << message;
  folder.write("tokenizer.json", abc().document().dump());
  folder.write("generation_config.json", "{\"eos_token_id\": \"x\"}");
  message = message_of<UserError>(load);
  EXPECT_NE(message.find("generation_config.json: expected 'eos_token_id'"), std::string::npos)
      << message;
  folder.write("tokenizer_config.json", "");
  message = message_of<UserError>(load);
  EXPECT_NE(message.find("tokenizer_config.json: the file is empty"), std::string::npos) << message;
}

TEST(StreamDecoder, HoldsBackIncompleteCharacters) {
  const Tokenizer tokenizer = abc().make();
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(258), "abc");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.push(260), "");
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, PiecesAddUpToTheWhole) {
  const Tokenizer tokenizer = abc().make();
  const std::string text = "abc \xE4\xB8\xAD\xE6\x96\x87 bcab\xC3\xA9 \xF0\x9F\x98\x80!";
  StreamDecoder stream(tokenizer);
  std::string all;
  for (const int32_t id : tokenizer.encode(text)) all += stream.push(id);
  EXPECT_EQ(all + stream.finish(), text);
}

json replacement(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

// Each step is harmless; together they would make 10^10 bytes of one.
TEST(Tokenizer, ExpandsATextWithinBounds) {
  const json tenfold = replacement("a", "aaaaaaaaaa");
  const json steps(10, tenfold);
  for (const json& normalizer :
       {json{{"type", "Sequence"}, {"normalizers", steps}},
        replacement("a", std::string(1'000'000, 'a')),
        json{{"type", "Prepend"}, {"prepend", std::string(1'000'000, 'a')}}}) {
    TinyTokenizer tiny = abc();
    tiny.keys["normalizer"] = normalizer;
    const Tokenizer tokenizer = tiny.make();
    EXPECT_TRUE(testing::contains(message_of<UserError>([&] { tokenizer.encode("a"); }),
                                  "of a text, over 16 times"));
    EXPECT_EQ(tokenizer.encode(""), (Ids{}));
  }
  TinyTokenizer tiny = abc();
  tiny.keys["decoder"] = {{"type", "Sequence"}, {"decoders", steps}};
  const Tokenizer tokenizer = tiny.make();
  EXPECT_TRUE(testing::contains(message_of<UserError>([&] { tokenizer.decode(Ids{'a'}); }),
                                "of a text, over 16 times"));
  tiny.keys["pre_tokenizer"] = {{"type", "Sequence"},
                                {"pretokenizers", json(40, TinyTokenizer::byte_level())}};
  EXPECT_TRUE(testing::contains(message_of<UserError>([&] { tiny.make().encode("\xC3\xA9"); }),
                                "of a text, over 16 times"));
}

TEST(Tokenizer, ExpandsOrdinaryTextsAsItShould) {
  TinyTokenizer tiny = abc();
  tiny.keys["normalizer"] = replacement("c", "aaaaaaaaaaaaaaa");
  EXPECT_EQ(tiny.make().encode("c"), Ids(15, 'a'));
  EXPECT_EQ(tiny.make().encode(std::string(10'000, 'c')).size(), 150'000U);
}

TEST(Tokenizer, PutsBoundedlyManyTokensAroundAText) {
  TinyTokenizer tiny = abc();
  json many = TinyTokenizer::bos_template(259);
  many["special_tokens"]["<s>"]["ids"] = json(1'000, 259);
  many["single"] = json::array();
  for (int i = 0; i < 1'000; ++i)
    many["single"].push_back({{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}});
  tiny.keys["post_processor"] = many;
  EXPECT_TRUE(
      testing::contains(message_of<UserError>([&] { tiny.make(); }), "more than 1024 tokens"));
}

// Adding one must not look at all before it, nor finding one at all there are.
TEST(Tokenizer, TakesManyAddedTokens) {
  constexpr int kCount = 60'000;
  TinyTokenizer tiny = abc();
  for (int i = 0; i < kCount; ++i) tiny.added.push_back(fmt::format("<|extra_{}|>", i));
  const std::clock_t start = std::clock();
  const Tokenizer tokenizer = tiny.make();
  std::string text;
  for (int i = 0; i < 2'000; ++i) text += fmt::format("<|extra_{}|>a<|extra_", i * 7);
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(ids.front(), 261);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](int32_t id) { return id >= 261; }), 2'000);
  EXPECT_LT(std::clock() - start, 10 * CLOCKS_PER_SEC) << "of the processor's time";
}

TEST(Tokenizer, OfAddedTokensTheLongestIsFound) {
  TinyTokenizer tiny = abc();
  tiny.added = {"<s>", "</s>", "<x", "<xyz>", "<xy", "\xC3\xA9x"};  // ids from 259 on
  const Tokenizer tokenizer = tiny.make();
  EXPECT_EQ(tokenizer.encode("<xyz>"), (Ids{262}));
  EXPECT_EQ(tokenizer.encode("<xyz"), (Ids{263, 'z'}));
  EXPECT_EQ(tokenizer.encode("<xz"), (Ids{261, 'z'}));
  EXPECT_EQ(tokenizer.encode("<"), (Ids{'<'}));
  EXPECT_EQ(tokenizer.encode("<<x\xC3\xA9x<x"), (Ids{'<', 261, 264, 261}));
  tiny.added.push_back(std::string(1'025, 'x'));
  EXPECT_TRUE(testing::contains(message_of<UserError>([&] { tiny.make(); }),
                                "1025 bytes; expected at most 1024"));
}

TEST(Tokenizer, DeepNestingIsRefused) {
  json nested = replacement("a", "b");
  for (int i = 0; i < 70; ++i)
    nested = {{"type", "Sequence"}, {"normalizers", json::array({nested})}};
  TinyTokenizer tiny = abc();
  tiny.keys["normalizer"] = nested;
  EXPECT_TRUE(
      testing::contains(message_of<UserError>([&] { tiny.make(); }), "tiny/tokenizer.json:1:"));
}

// Llama 2's decoder drops the space before the first word only.
TEST(StreamDecoder, KeepsTheSpaceAfterAPrompt) {
  json vocab = {{"<unk>", 0}, {"\u2581", 1}, {"a", 2}, {"\u2581a", 3}};
  const json space = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
  const json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  const json document = {
      {"model",
       {{"type", "BPE"},
        {"vocab", vocab},
        {"merges", json::array({json::array({"\u2581", "a"})})}}},
      {"decoder", {{"type", "Sequence"}, {"decoders", {space, {{"type", "Fuse"}}, strip}}}}};
  const Tokenizer tokenizer = Tokenizer::from_text(document.dump(), "", "piece");
  StreamDecoder fresh(tokenizer);
  EXPECT_EQ(fresh.push(3), "a");
  EXPECT_EQ(fresh.push(3), " a");
  StreamDecoder after(tokenizer);
  after.start_after(Ids{3});
  EXPECT_EQ(after.push(3), " a");
}

TEST(Tokenizer, NamesAnEndThatIsAList) {
  for (const nlohmann::json& value : {nlohmann::json{"<s>", "</s>"}, nlohmann::json(5)}) {
    TinyTokenizer tiny;
    tiny.config["eos_token"] = value;
    const std::string error = message_of<base::UserError>([&] { tiny.make(); });
    EXPECT_NE(error.find("expected 'eos_token' to be one token"), std::string::npos) << error;
    EXPECT_NE(error.find("eos_token_id in generation_config.json"), std::string::npos) << error;
  }
}

// With the ids that transformers' add_special_tokens gives them; what is a token of the vocabulary
// already keeps its own.
TEST(Tokenizer, GetsTokensThatItLacks) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", abc().document().dump());
  const std::vector<std::string> wanted{"<|im_start|>", "</s>", "abc", "<|im_end|>"};
  const auto open = [&](int64_t rows) {
    return Tokenizer::from_folder(folder.path().string(), rows, "", wanted);
  };
  const Tokenizer tokenizer = open(263);
  EXPECT_EQ(Ids(tokenizer.new_ids().begin(), tokenizer.new_ids().end()), (Ids{261, 258, 262}));
  EXPECT_EQ(tokenizer.encode("<|im_start|>ab<|im_end|></s>"), (Ids{261, 256, 262, 260}));
  EXPECT_TRUE(tokenizer.is_special(261) && tokenizer.is_special(258));
  EXPECT_EQ(tokenizer.vocabulary_size(), 263);
  const std::string error = message_of<UserError>([&] { open(262); });
  EXPECT_NE(error.find("'<|im_end|>' would have the id 262, but the model has rows for 262 ids"),
            std::string::npos)
      << error;
}

}  // namespace
}  // namespace snug::text
