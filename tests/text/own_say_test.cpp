// What a record says itself of what is learned counts before the recipe, and is not dropped.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "field_data.h"

namespace snug::text {
namespace {

using testing::contains;

class OwnSay : public FieldData {
 protected:
  void train_on_prompt() { options_.train_on_prompt = true; }
};

TEST_F(OwnSay, TrainOnPromptLearnsNoMessageThatSaysNo) {
  train_on_prompt();
  for (const char* field : {R"("weight": 0)", R"("loss": 0)", R"("loss": false)",
                            R"("masked": true)", R"("train": false)"})
    for (const char* role : {"system", "user"}) {
      const std::string record = fmt::format(
          R"({{"messages": [{{"role": "{}", "content": "a", {}}},)"
          R"({{"role": "user", "content": "q"}}, {{"role": "assistant", "content": "b"}}]}})",
          role, field);
      EXPECT_TRUE(contains(error(record), "message 1 says that it is not to be learned")) << record;
      options_.train_on_prompt = false;
      EXPECT_TRUE(contains(shown(record), "[assistant]{b</s>}")) << record;
      train_on_prompt();
    }
  EXPECT_TRUE(contains(error(R"({"prompt": [{"role": "user", "content": "a", "weight": 0}],)"
                             R"("completion": [{"role": "assistant", "content": "b"}]})"),
                       "message 1 says that it is not to be learned"));
  EXPECT_EQ(shown(R"({"prompt": [{"role": "user", "content": "a"}],)"
                  R"("completion": [{"role": "assistant", "content": "b"}]})"),
            "[{user]a</s>[assistant]b</s>}");
}

TEST_F(OwnSay, MessagesOfAPromptSayWhetherTheyAreLearned) {
  const auto record = [](const char* field) {
    return fmt::format(R"({{"prompt": [{{"role": "user", "content": "a"}},)"
                       R"({{"role": "assistant", "content": "b"{}}},)"
                       R"({{"role": "user", "content": "c"}}],)"
                       R"("completion": [{{"role": "assistant", "content": "d"}}]}})",
                       field);
  };
  for (const char* yes :
       {R"(, "train": true)", R"(, "weight": 1)", R"(, "loss": true)", R"(, "masked": false)"})
    EXPECT_EQ(shown(record(yes)), "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}")
        << yes;
  for (const char* no : {"", R"(, "train": false)"})
    EXPECT_EQ(shown(record(no)), "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}") << no;
}

// What a message of a prompt says of itself holds with train_on_prompt=true too; one that says
// nothing is learned then.
TEST_F(OwnSay, TrainOnPromptLearnsTheAnswersOfAPromptThatDoNotRefuseIt) {
  const auto record = [](const char* field) {
    return fmt::format(R"({{"prompt": [{{"role": "user", "content": "a"}},)"
                       R"({{"role": "assistant", "content": "b"{}}}],)"
                       R"("completion": [{{"role": "assistant", "content": "d"}}]}})",
                       field);
  };
  train_on_prompt();
  EXPECT_EQ(shown(record("")), "[{user]a</s>[assistant]b</s>[assistant]d</s>}");
  for (const char* no : {R"(, "weight": 0)", R"(, "train": false)", R"(, "masked": true)"})
    EXPECT_TRUE(contains(error(record(no)), "message 2 says that it is not to be learned")) << no;
  EXPECT_TRUE(contains(error(R"({"prompt": [{"role": "user", "content": "a"}], "completion": [)"
                             R"({"role": "user", "content": "a", "weight": 0},)"
                             R"({"role": "assistant", "content": "d"}]})"),
                       "message 1 says that it is not to be learned"));
}

TEST_F(OwnSay, AHistoryIsLearnedWhateverTheAnswerIs) {
  for (const char* answer : {R"("d")", R"([{"role": "assistant", "content": "d"}])"})
    EXPECT_EQ(shown(fmt::format(R"({{"prompt": "c", "history": [["a", "b"]], "completion": {}}})",
                                answer)),
              "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}")
        << answer;
}

// NeMo's field.
TEST_F(OwnSay, AMaskNamesTheRoleThatIsNotLearned) {
  const auto record = [](const char* mask) {
    return fmt::format(R"({{"mask": "{}", "conversations": [{{"from": "human", "value": "a"}},)"
                       R"({{"from": "gpt", "value": "b"}}]}})",
                       mask);
  };
  for (const char* mask : {"User", "user", "human", "Human", "System"}) {
    EXPECT_EQ(shown(record(mask)), "[user]a</s>[assistant]{b</s>}") << mask;
    EXPECT_EQ(unused(record(mask)), "") << mask;
  }
  for (const char* mask : {"assistant", "Assistant", "gpt"})
    EXPECT_TRUE(contains(error(record(mask)), "it is not to be learned")) << mask;
  EXPECT_TRUE(contains(error(record("Bob")), "the field 'mask' is 'Bob', which is no role"));
  train_on_prompt();
  EXPECT_TRUE(contains(error(record("User")), "message 1 says that it is not to be learned"));
}

TEST_F(OwnSay, OtherMediaOfAMessageAreRefused) {
  for (const char* field : {"image", "images", "video", "audio", "audios"}) {
    const auto record = [&](const char* value) {
      return fmt::format(R"({{"messages": [{{"role": "user", "content": "a", "{}": {}}},)"
                         R"({{"role": "assistant", "content": "b"}}]}})",
                         field, value);
    };
    for (const char* value : {R"("a.png")", R"(["a.png"])", R"({"url": "a"})"})
      EXPECT_TRUE(
          contains(error(record(value)), fmt::format("message 1: the field '{}' goes with", field)))
          << record(value);
    for (const char* nothing : {"null", "[]", R"("")"})
      EXPECT_EQ(shown(record(nothing)), "[user]a</s>[assistant]{b</s>}");
  }
}

}  // namespace
}  // namespace snug::text
