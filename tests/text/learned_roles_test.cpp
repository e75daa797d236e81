// Whose messages are learned, and of which turns (roles_to_train, train_on_turns), with the meaning
// that axolotl documents: a learned message is its text and the token that ends its turn.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "field_data.h"
#include "text/record/learning_rules.h"

namespace snug::text {
namespace {

using base::LearnedTurns;
using testing::contains;

class LearnedRoles : public FieldData {
 protected:
  void learn(const std::vector<std::string>& roles, LearnedTurns turns = LearnedTurns::all) {
    options_.learning = learning_rules(roles, turns);
  }
};

std::string said(const char* role, const char* text, const char* field = "") {
  return fmt::format(R"({{"role": "{}", "content": "{}"{}{}}})", role, text,
                     *field == '\0' ? "" : ", ", field);
}

std::string chat(const std::vector<std::string>& messages) {
  return fmt::format(R"({{"messages": [{}]}})", fmt::join(messages, ", "));
}

const std::string kTwoTurns = chat({said("system", "s"), said("user", "a"), said("assistant", "b"),
                                    said("user", "c"), said("assistant", "d")});
const std::string kWithTools =
    chat({said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d"),
          said("tool", "e"), said("assistant", "f")});

TEST_F(LearnedRoles, AnyRoleIsLearnedWithTheEndOfItsTurn) {
  learn({"user", "assistant"});
  EXPECT_EQ(shown(kTwoTurns),
            "[system]s</s>[user]{a</s>}[assistant]{b</s>}[user]{c</s>}[assistant]{d</s>}");
  learn({"human"});
  EXPECT_EQ(shown(kTwoTurns),
            "[system]s</s>[user]{a</s>}[assistant]b</s>[user]{c</s>}[assistant]d</s>");
  learn({"system", "tool"});
  EXPECT_EQ(shown(kTwoTurns),
            "[system]{s</s>}[user]a</s>[assistant]b</s>[user]c</s>[assistant]d</s>");
  EXPECT_TRUE(contains(shown(kWithTools), "[assistant]d</s>[tool]{e</s>}[assistant]f</s>"));
}

TEST_F(LearnedRoles, NobodyIsLearnedButWhoSaysSo) {
  learn({"none"});
  EXPECT_EQ(shown(chat({said("user", "a", R"("train": true)"), said("assistant", "b"),
                        said("user", "c"), said("assistant", "d", R"("weight": 1)")})),
            "[user]{a</s>}[assistant]b</s>[user]c</s>[assistant]{d</s>}");
  EXPECT_TRUE(contains(error(kTwoTurns), "and none says itself that it is"));
}

TEST_F(LearnedRoles, AMessageSaysItselfWhetherItIsLearned) {
  learn({"user"});
  EXPECT_EQ(shown(chat({said("user", "a", R"("weight": 0)"), said("assistant", "b"),
                        said("user", "c"), said("assistant", "d", R"("train": true)")})),
            "[user]a</s>[assistant]b</s>[user]{c</s>}[assistant]{d</s>}");
  learn({"assistant"});
  for (const char* yes : {R"("train": true)", R"("training": 1)", R"("masked": false)"})
    EXPECT_EQ(shown(chat({said("user", "a", yes), said("assistant", "b", R"("train": false)")})),
              "[user]{a</s>}[assistant]b</s>")
        << yes;
  EXPECT_TRUE(contains(
      error(chat({said("user", "a", R"("train": true, "masked": true)"), said("assistant", "b")})),
      "disagrees with another field"));
}

// ms-swift's last_round learns what follows the user's last question, LLaMA-Factory's mask_history
// the last message alone.
TEST_F(LearnedRoles, TheLastTurnAlone) {
  learn({"assistant"}, LearnedTurns::last);
  EXPECT_EQ(shown(kTwoTurns),
            "[system]s</s>[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}");
  EXPECT_EQ(
      shown(kWithTools),
      "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}[tool]e</s>[assistant]{f</s>}");
  learn({"assistant"}, LearnedTurns::last_message);
  EXPECT_EQ(shown(kWithTools),
            "[user]a</s>[assistant]b</s>[user]c</s>[assistant]d</s>[tool]e</s>[assistant]{f</s>}");
  // A question that nobody answers is no turn to learn.
  learn({"assistant"}, LearnedTurns::last);
  EXPECT_EQ(shown(chat({said("user", "a"), said("assistant", "b"), said("user", "c")})),
            "[user]a</s>[assistant]{b</s>}[user]c</s>");
  // What says that it is learned is, whatever its turn.
  EXPECT_EQ(shown(chat({said("user", "a"), said("assistant", "b", R"("weight": 1)"),
                        said("user", "c"), said("assistant", "d")})),
            "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}");
  EXPECT_TRUE(
      contains(error(chat({said("user", "a"), said("assistant", "b"), said("user", "c"),
                           said("assistant", "d", R"("weight": 0)")})),
               "its messages of the roles and turns that are learned say that they are not"));
}

TEST_F(LearnedRoles, TheLastTurnBeginsWithAllThatItsUserAsks) {
  learn({"user", "assistant"}, LearnedTurns::last);
  EXPECT_EQ(shown(chat({said("user", "a"), said("assistant", "b"), said("user", "c"),
                        said("user", "d"), said("assistant", "e")})),
            "[user]a</s>[assistant]b</s>[user]{c</s>}[user]{d</s>}[assistant]{e</s>}");
  learn({"user"}, LearnedTurns::last_message);
  EXPECT_EQ(shown(kTwoTurns),
            "[system]s</s>[user]a</s>[assistant]b</s>[user]{c</s>}[assistant]d</s>");
}

// A history is earlier turns; the messages of a prompt are not learned unless they say so.
TEST_F(LearnedRoles, OtherFormsOfConversations) {
  learn({"assistant"}, LearnedTurns::last);
  EXPECT_EQ(shown(R"({"prompt": "c", "history": [["a", "b"]], "completion": "d"})"),
            "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}");
  learn({"user", "assistant"});
  EXPECT_EQ(shown(R"({"prompt": "c", "history": [["a", "b"]], "completion": "d"})"),
            "[user]{a</s>}[assistant]{b</s>}[user]{c</s>}[assistant]{d</s>}");
  EXPECT_EQ(shown(R"({"prompt": [{"role": "user", "content": "a"}],)"
                  R"("completion": [{"role": "assistant", "content": "b"}]})"),
            "[user]a</s>[assistant]{b</s>}");
  EXPECT_TRUE(
      contains(error(R"({"prompt": "a", "completion": "b"})"),
               "roles_to_train says whose messages are learned, and the record holds none"));
}

// A field next to a conversation holds its system message.
TEST_F(LearnedRoles, TheSystemMessageNextToAConversation) {
  learn({"system"});
  EXPECT_EQ(shown(R"({"system": "s", "messages": [{"role": "user", "content": "a"},)"
                  R"({"role": "assistant", "content": "b"}]})"),
            "[system]{s</s>}[user]a</s>[assistant]b</s>");
}

// Marks are the assistant's; other roles are found next to them.
TEST_F(LearnedRoles, TemplatesThatMarkAnswers) {
  use_template(
      "{% for m in messages %}[{{ m.role }}] {% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}</s>{% endgeneration %}{% else %}{{ m.content | trim }}\n</s>{% endif %}"
      "{% endfor %}");
  learn({"user", "assistant"});
  EXPECT_EQ(shown(chat({said("user", " a "), said("assistant", "b")})),
            "[user] {a\n</s>}[assistant] {b</s>}");
  learn({"user"});
  EXPECT_EQ(shown(chat({said("user", "a"), said("assistant", "b")})),
            "[user] {a\n</s>}[assistant] b</s>");
}

// Another token than the one that ends turns, and words of the template, are not learned with it.
TEST_F(LearnedRoles, WhatFollowsATextIsLearnedOnlyWhereItEndsTheTurn) {
  use_template(
      "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
      "{% else %}{{ m.content }}</s>{% endif %}{% endfor %}");
  learn({"user"});
  EXPECT_EQ(shown(chat({said("user", "a"), said("assistant", "b")})), "[INST] {a} [/INST]b</s>");
}

TEST_F(LearnedRoles, ATextThatCannotBeToldIsRefused) {
  learn({"user", "system", "assistant"});
  use_template(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ m.content if m.role == 'user' }}</s>"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}");
  EXPECT_TRUE(contains(error(kTwoTurns), "message 2: what of the text is that of this message of"));
  use_template(
      "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  EXPECT_TRUE(contains(error(kTwoTurns),
                       "message 1: the chat template does not write the text of this message"));
}

TEST_F(LearnedRoles, WordsThatAreNoRoles) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"bob"}, {"none", "user"}, {"assistant", "all"}})
    EXPECT_TRUE(contains(message_of<base::UserError>([&] { learn(words); }), "which is no role"))
        << fmt::format("{}", fmt::join(words, " "));
}

// Spaces and letters at the ends of a text are its own, whatever the template makes of them.
TEST_F(LearnedRoles, TextsBeginAndEndInAnything) {
  learn({"user"});
  for (const char* text : {"Q", "Z", "QZ", "ZQ", " Q", "Q ", "Q\\nQ", "</s>", "[user]"})
    EXPECT_TRUE(
        contains(shown(chat({said("user", text), said("assistant", text)})),
                 text[1] == '\\' ? "[user]{Q\nQ</s>}" : fmt::format("[user]{{{}</s>}}", text)))
        << text;
}

}  // namespace
}  // namespace snug::text
