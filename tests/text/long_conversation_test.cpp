// Conversations of thousands of messages, whose template marks no answers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "../base/processor_time.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "golden_files.h"
#include "text/chat/answer_spans.h"
#include "text/chat/chat_template.h"
#include "text/chat/jinja/allowance.h"
#include "text/chat/unwritten.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

Tokenizer tokenizer_with(const std::string& source) {
  TinyTokenizer tiny;
  for (const char* token : {"<|im_start|>", "<|im_end|>"}) tiny.added.emplace_back(token);
  tiny.config["chat_template"] = source;
  return tiny.make();
}

// What is learned, each answer in brackets.
std::string learned_of(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts)
    if (part.is_answer) text += "(" + part.text + ")";
  return text;
}

Conversation of_turns(int turns) {
  Conversation conversation{.messages = {{"system", "s"}}};
  for (int i = 0; i < turns; ++i) {
    conversation.messages.emplace_back("user", fmt::format("q{}", i));
    conversation.messages.emplace_back("assistant", fmt::format("a{}", i));
  }
  return conversation;
}

// An agent's turns: a question, then calls and their results.
Conversation of_calls(int turns) {
  Conversation conversation{.messages = {{"user", "q"}}};
  for (int i = 0; i < turns; ++i) {
    conversation.messages.emplace_back("assistant", fmt::format("look {}", i));
    conversation.messages.emplace_back(i % 7 == 6 ? "user" : "tool", fmt::format("r{}", i % 3));
  }
  conversation.messages.emplace_back("assistant", "done");
  return conversation;
}

constexpr const char* kChatmlAlone =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

TEST(LongConversation, TakesTheTimeOfItsLength) {
  const Tokenizer tokenizer = tokenizer_with(kChatmlAlone);
  const ChatTemplate chat("", tokenizer);
  const double start = testing::processor_seconds();
  std::string expected;
  for (int i = 0; i < 2500; ++i) expected += fmt::format("(a{}<|im_end|>)", i);
  EXPECT_EQ(learned_of(chat.render(of_turns(2500))), expected);
  EXPECT_EQ(chat.unwritten(of_turns(2500)).size(), 0);
  EXPECT_LT(testing::processor_seconds() - start, 5);
  expected.clear();
  for (int i = 0; i < 1000; ++i) expected += fmt::format("(look {}<|im_end|>)", i);
  EXPECT_EQ(learned_of(chat.render(of_calls(1000))), expected + "(done<|im_end|>)");
}

// One message that is not learned, in a template that marks its answers.
TEST(LongConversation, MayLeaveAnswersOutOfWhatIsMarked) {
  const Tokenizer tokenizer = tokenizer_with(
      "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}<|im_end|>{% endgeneration %}{% generation %}</s>{% endgeneration %}"
      "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}");
  const ChatTemplate chat("", tokenizer);
  for (const int turns : {3, 40, 2500}) {
    Conversation conversation = of_turns(turns);
    conversation.messages[4].set_learned(false);
    std::string expected;
    for (int i = 0; i < turns; ++i)
      if (i != 1) expected += fmt::format("(a{}<|im_end|>)(</s>)", i);
    EXPECT_EQ(learned_of(chat.render(conversation)), expected);
  }
}

// What the finder says when it renders every beginning of the conversation, or few of them.
std::string answers_of(const ChatTemplate& chat, const Tokenizer& tokenizer,
                       const Conversation& conversation, size_t most_rendered) {
  const jinja::Allowance allowance;
  const AnswerFinder finder(
      tokenizer,
      [&](const Conversation& some, bool for_generation) {
        return for_generation ? chat.prompt(some) : chat.text(some);
      },
      most_rendered);
  std::string answers;
  try {
    const std::string whole = chat.text(conversation);
    for (const auto& [begin, end] : finder.find(conversation, whole))
      answers += fmt::format("{}-{} ", begin, end);
  } catch (const base::UserError& error) {
    answers += error.what();
  }
  return answers;
}

Conversation some_of(Conversation conversation, size_t messages) {
  conversation.messages.resize(messages, Message("user", ""));
  return conversation;
}

// Templates whose beginnings end otherwise, alone or after many messages.
const std::vector<std::string> kWilful = {
    kChatmlAlone,
    // The last turn has an end of its own.
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ '</s>' if loop.last else '<|im_end|>' "
    "}}"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
    // The system message moves to the last question.
    "{% for m in messages[1:] %}[{{ m.role }}]{% if loop.last or loop.index == messages|length - 2 "
    "%}{{ messages[0].content }}{% endif %}{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}",
    // Turns have numbers.
    "{% for m in messages %}<{{ loop.index }} {{ m.role }}>{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<{{ messages|length + 1 }} assistant>{% endif %}",
    // Late prompts open otherwise, with what late answers have as well.
    "{% for m in messages %}[{{ m.role }}]{{ '##' if loop.index > 31 and m.role == 'assistant' }}"
    "{{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}[assistant]"
    "{{ '##' if messages|length > 30 }}{% endif %}",
    // Every fourth turn ends otherwise.
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ '</s>' if loop.index % 4 == 0 else "
    "'<|im_end|>' }}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
    // Another number of messages is refused.
    "{% for m in messages %}{{ raise_exception('odd') if loop.index % 2 == 1 and m.role == "
    "'assistant' and messages[0].role == 'user' }}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"};

TEST(LongConversation, HasTheAnswersOfAShortOne) {
  std::vector<std::string> sources = kWilful;
  const std::string folder = kSharedData + "chat-templates/llama.cpp-2025-02/";
  if (std::filesystem::exists(folder))
    for (const auto& file : std::filesystem::directory_iterator(folder))
      if (file.path().extension() == ".jinja") sources.push_back(contents_of(file.path().string()));
  for (const std::string& source : sources) {
    const Tokenizer tokenizer = tokenizer_with(source);
    const ChatTemplate chat("", tokenizer);
    for (const Conversation& conversation :
         {of_turns(24), some_of(of_turns(24), 48), of_calls(22), some_of(of_calls(22), 43)})
      EXPECT_EQ(answers_of(chat, tokenizer, conversation, 0),
                answers_of(chat, tokenizer, conversation, SIZE_MAX))
          << source.substr(0, 200);
  }
}

}  // namespace
}  // namespace snug::text
