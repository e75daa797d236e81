#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "golden_files.h"
#include "text/document.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using Role = Message::Role;

const std::vector<Message> kChat = {{Role::system, "Be brief."},
                                    {Role::user, " Hi "},
                                    {Role::assistant, "Hello"},
                                    {Role::user, "Bye"},
                                    {Role::assistant, "See you"}};

Tokenizer with_tokens(const std::vector<std::string>& more, const std::string& source = "") {
  TinyTokenizer tiny;
  tiny.added.insert(tiny.added.end(), more.begin(), more.end());
  if (!source.empty()) tiny.config["chat_template"] = source;
  return tiny.make();
}

const std::vector<std::string> kChatml = {"<|im_start|>", "<|im_end|>"};
const std::vector<std::string> kLlama3 = {"<|begin_of_text|>", "<|start_header_id|>",
                                          "<|end_header_id|>", "<|eot_id|>"};
const std::vector<std::string> kPhi3 = {"<|user|>", "<|assistant|>", "<|system|>", "<|end|>"};

struct Rendered {
  std::string text;
  std::string learned;
};

Rendered render(const Tokenizer& tokenizer, const std::string& name, bool for_generation = false) {
  const ChatTemplate chat(name, tokenizer);
  const Document document =
      tokenize_parts(tokenizer, chat.render(kChat, for_generation), SpecialTokens::none);
  std::vector<int32_t> learned;
  for (size_t i = 0; i < document.ids.size(); ++i)
    if (document.trained[i] != 0) learned.push_back(document.ids[i]);
  return {tokenizer.decode(document.ids, false), tokenizer.decode(learned, false)};
}

TEST(ChatTemplate, Chatml) {
  const Rendered all = render(with_tokens(kChatml), "chatml");
  EXPECT_EQ(all.text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
            "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
            "<|im_start|>assistant\nSee you<|im_end|>\n");
  EXPECT_EQ(all.learned, "Hello<|im_end|>See you<|im_end|>");
  EXPECT_TRUE(
      render(with_tokens(kChatml), "chatml", true).text.ends_with("\n<|im_start|>assistant\n"));
}

TEST(ChatTemplate, Llama3) {
  const Rendered all = render(with_tokens(kLlama3), "llama-3");
  EXPECT_EQ(all.text,
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nSee you<|eot_id|>");
  EXPECT_EQ(all.learned, "Hello<|eot_id|>See you<|eot_id|>");
}

TEST(ChatTemplate, Llama2) {
  const Rendered all = render(with_tokens({}), "llama-2");
  EXPECT_EQ(all.text,
            "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi [/INST] Hello </s>"
            "<s>[INST] Bye [/INST] See you </s>");
  EXPECT_EQ(all.learned, " Hello </s> See you </s>");
  const Tokenizer tokenizer = with_tokens({});
  const ChatTemplate chat("llama-2", tokenizer);
  const std::vector<Message> twice = {{Role::user, "a"}, {Role::user, "b"}};
  EXPECT_NE(message_of<UserError>([&] { chat.render(twice); }).find("message 2"),
            std::string::npos);
}

TEST(ChatTemplate, Zephyr) {
  const Rendered all = render(with_tokens({}), "zephyr");
  EXPECT_EQ(all.text,
            "<|system|>\nBe brief.</s>\n<|user|>\n Hi </s>\n<|assistant|>\nHello</s>\n"
            "<|user|>\nBye</s>\n<|assistant|>\nSee you</s>\n");
  EXPECT_EQ(all.learned, "Hello</s>See you</s>");
}

TEST(ChatTemplate, Phi3) {
  const Rendered all = render(with_tokens(kPhi3), "phi-3");
  EXPECT_EQ(all.text,
            "<|system|>\nBe brief.<|end|>\n<|user|>\n Hi <|end|>\n<|assistant|>\nHello<|end|>\n"
            "<|user|>\nBye<|end|>\n<|assistant|>\nSee you<|end|>\n</s>");
  EXPECT_EQ(all.learned, "Hello<|end|>See you<|end|></s>");
}

TEST(ChatTemplate, IsRecognised) {
  const auto name = [](const Tokenizer& tokenizer) { return ChatTemplate("", tokenizer).name(); };
  EXPECT_EQ(name(with_tokens(kChatml)), "chatml");
  EXPECT_EQ(name(with_tokens(kLlama3)), "llama-3");
  EXPECT_EQ(name(with_tokens(kPhi3)), "phi-3");
  EXPECT_EQ(name(with_tokens(kChatml, "{{ '<|im_start|>' }}")), "chatml");
  EXPECT_EQ(name(with_tokens(kPhi3, "'<|user|>' '<|end|>'")), "phi-3");
  EXPECT_EQ(name(with_tokens({}, "'<|user|>\n' + message + eos_token")), "zephyr");
  EXPECT_EQ(name(with_tokens({}, "'[INST] <<SYS>>'")), "llama-2");
}

// A template's own file, as in a model's folder, means the built-in one of its form.
TEST(ChatTemplate, MayBeGivenAsAFile) {
  const testing::TemporaryFolder folder;
  const auto chatml = folder.write("a.jinja", "{{ '<|im_start|>' + message['role'] }}");
  EXPECT_EQ(ChatTemplate(chatml.string(), with_tokens(kChatml)).name(), "chatml");
  EXPECT_EQ(find_chat_template("zephyr"), "zephyr");
  EXPECT_EQ(find_chat_template(""), "");
  const auto other = folder.write("b.jinja", "{{ message }}");
  const std::string error = testing::user_error_of([&] { find_chat_template(other.string()); });
  EXPECT_TRUE(testing::contains(error, "b.jinja"));
  EXPECT_TRUE(testing::contains(error, "chatml"));
}

TEST(ChatTemplate, SaysWhatItNeeds) {
  const auto message = [](const std::string& name, const Tokenizer& tokenizer) {
    return message_of<UserError>([&] { ChatTemplate(name, tokenizer); });
  };
  EXPECT_NE(message("", with_tokens({})).find("has no chat template; choose a template"),
            std::string::npos);
  // A folder's own template is not overruled by the tokens that happen to be there.
  EXPECT_NE(message("", with_tokens(kChatml, "{{ mystery }}")).find("none of those built in"),
            std::string::npos);
  EXPECT_NE(message("jinja", with_tokens({})).find("'jinja' is not known; the choices are chatml"),
            std::string::npos);
  EXPECT_NE(message("chatml", with_tokens({})).find("needs the token <|im_start|>"),
            std::string::npos);
  TinyTokenizer bare;
  bare.config = nlohmann::json::object();
  EXPECT_NE(message("plain", bare.make()).find("needs an EOS token"), std::string::npos);
  EXPECT_NE(message("llama-2", bare.make()).find("needs a BOS token"), std::string::npos);
}

// Published templates are recognised by the markers they really have.
TEST(ChatTemplate, KnowsPublishedTemplates) {
  const std::string folder = kSharedData + "chat-templates/llama.cpp-2025-02/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  std::vector<std::string> tokens = kChatml;
  tokens.insert(tokens.end(), kLlama3.begin(), kLlama3.end());
  tokens.insert(tokens.end(), kPhi3.begin(), kPhi3.end());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"Qwen-Qwen2.5-7B-Instruct", "chatml"},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "chatml"},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama-3"},
      {"meta-llama-Llama-3.2-3B-Instruct", "llama-3"},
      {"microsoft-Phi-3.5-mini-instruct", "phi-3"}};
  for (const auto& [file, name] : expected) {
    const Tokenizer tokenizer = with_tokens(tokens, contents_of(folder + file + ".jinja"));
    EXPECT_EQ(ChatTemplate("", tokenizer).name(), name) << file;
  }
  for (const char* file : {"google-gemma-2-2b-it", "mistralai-Mistral-Nemo-Instruct-2407",
                           "deepseek-ai-DeepSeek-R1-Distill-Llama-8B"}) {
    const Tokenizer tokenizer =
        with_tokens(tokens, contents_of(folder + std::string(file) + ".jinja"));
    EXPECT_NE(message_of<UserError>([&] { ChatTemplate("", tokenizer); }), "") << file;
  }
}

}  // namespace
}  // namespace snug::text
