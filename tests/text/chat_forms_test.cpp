// The built-in chat templates next to the published ones of their models, as transformers renders
// them (scripts/oracles/make_chat_forms.py).
#include "text/chat/chat_forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "golden_files.h"
#include "text/chat/chat_template.h"
#include "text/record/record_form.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using nlohmann::ordered_json;

Tokenizer tokenizer_of(const ChatForm& form, const std::string& bos, const std::string& eos) {
  TinyTokenizer tiny;
  std::set<std::string> tokens(form.tokens.begin(), form.tokens.end());
  tokens.insert({bos, eos});
  tiny.added.assign(tokens.begin(), tokens.end());
  tiny.config = {{"bos_token", bos}, {"eos_token", eos}};
  return tiny.make();
}

std::string said(const std::function<std::string()>& render) {
  try {
    return render();
  } catch (const base::UserError& error) {
    return fmt::format("refused: {}", error.what());
  }
}

Conversation conversation_of(const ordered_json& record) {
  RawRecord raw;
  raw.text = record.dump();
  return parse_record(raw, "golden", {.form = RecordForm::messages}).conversation;
}

TEST(ChatForms, WriteWhatThePublishedTemplatesWrite) {
  const ordered_json golden = json_of(kGoldens + "chat_forms.json");
  for (const auto& [name, entry] : golden.at("forms").items()) {
    const ChatForm& form = *find_chat_form(name);
    const std::string bos = entry.at("bos").is_null() ? "<s>" : entry.at("bos");
    const Tokenizer tokenizer = tokenizer_of(form, bos, entry.at("eos"));
    const ChatTemplate chat(name, tokenizer);
    for (const auto& [which, texts] : entry.at("texts").items()) {
      const ordered_json& record = golden.at("conversations").at(which);
      for (const auto& [part, expected] : texts.items())
        EXPECT_EQ(said([&] {
                    const Conversation conversation = conversation_of(record);
                    return part == "whole" ? chat.text(conversation) : chat.prompt(conversation);
                  }),
                  expected.get<std::string>())
            << name << ": " << which << ", " << part;
    }
  }
}

// What is learned in two turns, with a | between them.
TEST(ChatForms, MarkWhatTheAssistantSays) {
  const Conversation chat{
      .messages = {{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}}};
  const std::vector<std::pair<const char*, const char*>> expected{
      {"chatml", "b<|im_end|>|d<|im_end|>"},
      {"qwen-2.5", "b<|im_end|>|d<|im_end|>"},
      {"qwen-3", "b<|im_end|>|<think>\n\n</think>\n\nd<|im_end|>"},
      {"phi-4", "b<|im_end|>|d<|im_end|>"},
      {"llama-2", " b <E>| d <E>"},
      {"llama-3", "b<|eot_id|>|d<|eot_id|>"},
      {"llama-3.1", "b<|eot_id|>|d<|eot_id|>"},
      {"mistral-v1", " b<E>| d<E>"},
      {"mistral-v3", " b<E>| d<E>"},
      {"mistral-v3-tekken", "b<E>|d<E>"},
      {"mistral-v7-tekken", "b<E>|d<E>"},
      {"gemma", "b<end_of_turn>|d<end_of_turn>"},
      {"command-r", "b<|END_OF_TURN_TOKEN|>|d<|END_OF_TURN_TOKEN|>"},
      {"deepseek-v3", "b<E>|d<E>"},
      {"zephyr", "b<E>|d<E>"},
      {"phi-3", "b<|end|>|d<|end|>|<E>"},
      {"alpaca", "b<E>|d<E>"},
      {"vicuna", " b<E>| d<E>"},
      {"plain", "b<E>|d<E>"}};
  for (const auto& [name, learned] : expected) {
    const Tokenizer tokenizer = tokenizer_of(*find_chat_form(name), "<B>", "<E>");
    std::string text;
    for (const Part& part : ChatTemplate(name, tokenizer).render(chat))
      if (part.is_answer && !part.text.empty()) text += (text.empty() ? "" : "|") + part.text;
    EXPECT_EQ(text, learned) << name;
  }
}

// A prompt is what stands before an answer, so that a model reads in use what it read in training.
TEST(ChatForms, BeginAnswersWhereThePromptEnds) {
  const Conversation chat{.messages = {{"user", "a"}, {"assistant", "b"}}};
  const Conversation asked{.messages = {{"user", "a"}}};
  for (const char* name : {"chatml", "qwen2.5", "Qwen3", "phi4", "llama2", "llama3", "llama_3.1",
                           "mistral", "mistral_v1", "mistral-nemo", "mistral_small", "gemma2",
                           "cohere", "deepseek3", "zephyr", "phi", "alpaca", "vicuna"}) {
    const Tokenizer tokenizer = tokenizer_of(*find_chat_form(name), "<B>", "<E>");
    const ChatTemplate made(name, tokenizer);
    EXPECT_EQ(made.prompt(asked), made.render(chat).front().text) << name;
  }
}

// Two prompts of other tools that have no published template: Stanford Alpaca's, as records of that
// form have it, and FastChat's.
TEST(ChatForms, InWordsAlone) {
  const auto prompt = [](const char* name, const Conversation& chat) {
    return ChatTemplate(name, tokenizer_of(*find_chat_form(name), "<B>", "<E>")).prompt(chat);
  };
  const Conversation asked{.messages = {{"user", "Why?"}}};
  const Conversation told{.messages = {{"system", "Be kind."}, {"user", "Why?"}}};
  EXPECT_EQ(prompt("alpaca", asked), alpaca_prompt("Why?", ""));
  EXPECT_EQ(prompt("alpaca", told), "Be kind.\n\n### Instruction:\nWhy?\n\n### Response:\n");
  EXPECT_EQ(prompt("vicuna", told), "Be kind. USER: Why? ASSISTANT:");
  EXPECT_EQ(prompt("vicuna", asked).find("A chat between a curious user and an artificial "), 0U);
}

}  // namespace
}  // namespace snug::text
