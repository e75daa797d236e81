// From the data that is trained on to the folder that is saved: whoever opens it renders
// conversations and ends answers as they were trained.
#include "train/trained_chat.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../base/captured_stream.h"
#include "../base/temporary_folder.h"
#include "../text/tiny_tokenizer.h"
#include "base/file.h"
#include "base/json.h"
#include "formats/folder/hf_folder.h"
#include "text/chat/chat_template.h"

namespace snug::train {
namespace {

using testing::contains;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

const text::Conversation kAsked{.messages = {{"system", "s"}, {"user", "q"}}};

class TrainedChatTest : public ::testing::Test {
 protected:
  TrainedChatTest() {
    text::TinyTokenizer tiny;
    tiny.added = {"<s>", "</s>", "<|im_start|>", "<|im_end|>"};  // 256 to 259
    folder_.write("base/tokenizer.json", tiny.document().dump());
    write("base/tokenizer_config.json", tiny.config);
    write("base/config.json", {{"eos_token_id", 257}, {"bos_token_id", 256}});
    folder_.write("data.jsonl", R"({"messages": [{"role": "user", "content": "q"},)"
                                R"( {"role": "assistant", "content": "a"}]})");
  }

  void write(const std::string& name, const Json& json) { folder_.write(name, json.dump()); }
  Json read(const std::string& name) { return base::read_json_file(folder_ / name); }

  // What a job with this word for chat_template saves as NAME, in place of a model or an adapter.
  void save(const std::string& name, const std::string& word, const std::string& adapter = "") {
    const testing::CapturedStream console(stderr);
    const std::string base = (folder_ / "base").string();
    const auto tokenizer = text::Tokenizer::from_folder(base, text::Tokenizer::kAnyRows, adapter);
    const text::Dataset data = text::load_dataset((folder_ / "data.jsonl").string(), tokenizer,
                                                  {.max_length = 64, .chat_template = word});
    const formats::TrainedChat chat = trained_chat(data.audit, {{}, base}, adapter);
    std::filesystem::create_directory(folder_ / name);
    formats::copy_companion_files(base, folder_ / name);
    formats::write_trained_chat(folder_ / name, folder_ / "base/config.json", chat);
    said_ = console.text();
  }

  Ids stops_of(const text::Tokenizer& tokenizer) const {
    return {tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()};
  }

  testing::TemporaryFolder folder_;
  std::string said_;
};

TEST_F(TrainedChatTest, WhatEndsATurnEndsGeneration) {
  save("result", "chatml");
  EXPECT_EQ(read("result/generation_config.json"),
            Json({{"bos_token_id", 256}, {"eos_token_id", {257, 259}}}));
  EXPECT_TRUE(contains(said_, "ends with the token 259")) << said_;
  const auto tokenizer = text::Tokenizer::from_folder((folder_ / "result").string());
  EXPECT_EQ(stops_of(tokenizer), (Ids{257, 259}));
  const auto base = text::Tokenizer::from_folder((folder_ / "base").string());
  EXPECT_EQ(text::ChatTemplate("", tokenizer).prompt(kAsked),
            text::ChatTemplate("chatml", base).prompt(kAsked));
}

// Whose file names it already keeps its file to the letter; of two files the one that others read
// counts.
TEST_F(TrainedChatTest, FilesThatNameTheEndStayAsTheyAre) {
  write("base/generation_config.json", {{"eos_token_id", {259, 257}}, {"top_p", 0.5}});
  save("result", "chatml");
  EXPECT_EQ(base::read_text_file(folder_ / "result/generation_config.json"),
            base::read_text_file(folder_ / "base/generation_config.json"));
  EXPECT_EQ(said_, "");
  write("base/generation_config.json", {{"eos_token_id", 259}, {"top_p", 0.5}});
  save("again", "zephyr");  // ends in </s>, which config.json alone names
  EXPECT_TRUE(contains(said_, "[259], counts, and not that of config.json, [257]")) << said_;
  EXPECT_EQ(read("again/generation_config.json"),
            Json({{"eos_token_id", {259, 257}}, {"top_p", 0.5}}));
}

// Others do not look into config.json where there is the other file.
TEST_F(TrainedChatTest, AGenerationConfigWithoutAnEndGetsOne) {
  write("base/generation_config.json", {{"top_p", 0.5}});
  save("result", "zephyr");
  EXPECT_EQ(read("result/generation_config.json"), Json({{"eos_token_id", 257}, {"top_p", 0.5}}));
}

TEST_F(TrainedChatTest, AModelsOwnTemplateTravelsAsItIs) {
  write("base/tokenizer_config.json", {{"eos_token", "</s>"},
                                       {"chat_template",
                                        "{% for m in messages %}{{ m.role + m.content + "
                                        "eos_token }}{% endfor %}"}});
  save("result", "");
  EXPECT_EQ(base::read_text_file(folder_ / "result/tokenizer_config.json"),
            base::read_text_file(folder_ / "base/tokenizer_config.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "result/chat_template.jinja"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "result/generation_config.json"));
}

// Of all places where a template may stand none holds another one.
TEST_F(TrainedChatTest, ARecipesTemplateReplacesTheFoldersOwn) {
  folder_.write("base/chat_template.jinja", "{{ 'other' }}");
  folder_.write("base/chat_template.json", "{\"chat_template\": \"other\"}");
  folder_.write("base/additional_chat_templates/tool_use.jinja", "{{ 'other' }}");
  write("base/tokenizer_config.json", {{"eos_token", "</s>"}, {"chat_template", "{{ 'other' }}"}});
  const std::string source =
      "{% for m in messages %}{{ m.role + ':' + m.content + eos_token }}{% endfor %}";
  const auto file = folder_.write("own.jinja", source);
  save("result", file.string());
  EXPECT_EQ(base::read_text_file(folder_ / "result/chat_template.jinja"), source);
  EXPECT_EQ(read("result/tokenizer_config.json"),
            Json({{"eos_token", "</s>"}, {"chat_template", source}}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "result/chat_template.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "result/additional_chat_templates"));
}

// An adapter is opened next to its base, and says how it was trained; training that goes on from it
// hands that on.
TEST_F(TrainedChatTest, AnAdapterCountsBeforeItsModel) {
  folder_.write("base/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  save("adapter", "chatml");
  const std::string adapter = (folder_ / "adapter").string();
  const auto tokenizer =
      text::Tokenizer::from_folder((folder_ / "base").string(), text::Tokenizer::kAnyRows, adapter);
  EXPECT_EQ(stops_of(tokenizer), (Ids{257, 259}));
  const text::ChatTemplate chat("", tokenizer);
  EXPECT_EQ(chat.name(), "the adapter's own");
  EXPECT_EQ(chat.prompt(kAsked), text::ChatTemplate("chatml", tokenizer).prompt(kAsked));
  save("further", "", adapter);
  EXPECT_EQ(base::read_text_file(folder_ / "further/chat_template.jinja"),
            base::read_text_file(folder_ / "adapter/chat_template.jinja"));
  EXPECT_EQ(read("further/generation_config.json"), read("adapter/generation_config.json"));
}

// Of another tool's adapter too, and where it says nothing the model's files count.
TEST_F(TrainedChatTest, AnAdaptersTokensAreThoseOfItsConfig) {
  write("adapter/tokenizer_config.json", {{"eos_token", "<|im_end|>"}, {"pad_token", "<new>"}});
  const std::string base = (folder_ / "base").string();
  const auto tokenizer =
      text::Tokenizer::from_folder(base, text::Tokenizer::kAnyRows, (folder_ / "adapter").string());
  EXPECT_EQ(tokenizer.eos_id(), 259);
  EXPECT_EQ(tokenizer.bos_id(), 256);
  EXPECT_EQ(stops_of(tokenizer), (Ids{259, 257}));
  EXPECT_EQ(stops_of(text::Tokenizer::from_folder(base, text::Tokenizer::kAnyRows,
                                                  (folder_ / "none").string())),
            (Ids{257}));
}

// Tokens that the base lacks are in the result's files, with the ids that they were trained with.
TEST_F(TrainedChatTest, TokensThatWereAddedTravel) {
  text::TinyTokenizer tiny;  // <s> and </s> are 256 and 257
  folder_.write("base/tokenizer.json", tiny.document().dump());
  const std::string base = (folder_ / "base").string();
  const std::vector<std::string> wanted{"</s>", "<|im_start|>", "<|im_end|>"};
  const auto open = [&](int64_t rows) {
    return text::Tokenizer::from_folder(base, rows, "", wanted);
  };
  const text::Tokenizer tokenizer = open(260);
  EXPECT_EQ(Ids(tokenizer.new_ids().begin(), tokenizer.new_ids().end()), (Ids{258, 259}));
  EXPECT_EQ(tokenizer.encode("<|im_start|>a<|im_end|>", false), (Ids{258, 97, 259}));
  const std::string prompt = text::ChatTemplate("chatml", tokenizer).prompt(kAsked);
  std::filesystem::create_directory(folder_ / "result");
  formats::copy_companion_files(base, folder_ / "result");
  formats::write_trained_chat(folder_ / "result", folder_ / "base/config.json",
                              {.added_tokens = new_tokens(tokenizer)});
  const auto result = text::Tokenizer::from_folder((folder_ / "result").string(), 260);
  EXPECT_EQ(result.encode(prompt, false), tokenizer.encode(prompt, false));
  EXPECT_TRUE(result.is_special(258));
  EXPECT_TRUE(contains(text::message_of<base::UserError>([&] { open(259); }),
                       "added_tokens: '<|im_end|>' would have the id 259, but the model has rows "
                       "for 259 ids"));
}

}  // namespace
}  // namespace snug::train
