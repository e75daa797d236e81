// What a record says itself of what is learned counts before the recipe, and is not dropped.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

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

// A completion that repeats its prompt says of the prompt's messages what they say of themselves.
TEST_F(OwnSay, ACopyOfThePromptIsHeard) {
  const auto record = [](const char* own, const char* copy) {
    return fmt::format(R"({{"prompt": [{{"role": "user", "content": "a"}},)"
                       R"({{"role": "assistant", "content": "b"{}}},)"
                       R"({{"role": "user", "content": "c"}}],)"
                       R"("completion": [{{"role": "user", "content": "a"}},)"
                       R"({{"role": "assistant", "content": "b"{}}},)"
                       R"({{"role": "user", "content": "c"}},)"
                       R"({{"role": "assistant", "content": "d"}}]}})",
                       own, copy);
  };
  for (const char* yes : {R"(, "train": true)", R"(, "weight": 1)", R"(, "masked": false)"}) {
    EXPECT_EQ(shown(record("", yes)), "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}")
        << yes;
    EXPECT_EQ(unused(record("", yes)), "") << yes;
    EXPECT_EQ(shown(record(yes, "")), "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}")
        << yes;
    for (const auto& both : {record(R"(, "loss": 0)", yes), record(yes, R"(, "loss": 0)")})
      EXPECT_TRUE(
          contains(error(both), "message 2: 'prompt' and its copy in 'completion' disagree"))
          << both;
  }
  EXPECT_EQ(shown(record(R"(, "loss": 0)", R"(, "loss": 0)")),
            "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}");
  // What else only the copy says is named.
  EXPECT_EQ(unused(record("", R"(, "mood": "glad", "reasoning_content": "so")")),
            "'mood' (1 record), 'reasoning_content' (1 record)");
}

std::string message_with(const char* role, const char* text, const std::string& field) {
  return fmt::format(R"({{"role": "{}", "content": "{}"{}{}}})", role, text,
                     field.empty() ? "" : ", ", field);
}

// In pairs and in answers with labels the prompt is not learned, and all that follows it is.
TEST_F(OwnSay, WhatIsComparedAgreesWithItsMessages) {
  ask_for(RecordForm::preference);
  const auto prompt = [](const std::string& user, const std::string& answer) {
    return message_with("user", "a", user) + ", " + message_with("assistant", "b", answer) + ", " +
           message_with("user", "c", "");
  };
  const std::string chosen = message_with("assistant", "d", "");
  const std::string rejected = message_with("assistant", "e", "");
  const auto pairs = [&](const std::string& asked, const std::string& copy) {
    return std::vector<std::string>{
        fmt::format(R"({{"prompt": [{}], "chosen": [{}], "rejected": [{}]}})", asked, chosen,
                    rejected),
        fmt::format(R"({{"chosen": [{0}, {1}], "rejected": [{0}, {2}]}})", asked, chosen, rejected),
        fmt::format(R"({{"chosen": [{0}, {1}], "rejected": [{3}, {2}]}})", asked, chosen, rejected,
                    copy),
        fmt::format(R"({{"prompt": [{0}], "chosen": [{3}, {1}], "rejected": [{3}, {2}]}})", asked,
                    chosen, rejected, copy),
        fmt::format(R"({{"prompt": [{3}], "chosen": [{3}, {1}], "rejected": [{0}, {2}]}})", asked,
                    chosen, rejected, copy),
        fmt::format(R"({{"messages": [{0}], "chosen": {1}, "rejected": {2}}})", asked, chosen,
                    rejected),
        fmt::format(R"({{"messages": [{0}, {1}], "rejected_response": "e"}})", asked, chosen)};
  };
  for (const char* no : {R"("weight": 0)", R"("train": false)", R"("masked": true)"})
    for (const std::string& pair : pairs(prompt(no, no), prompt("", "")))
      EXPECT_EQ(shown(pair), "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}") << pair;
  for (const char* yes : {R"("weight": 1)", R"("train": true)", R"("masked": false)"})
    for (const std::string& pair : pairs(prompt("", yes), prompt("", ""))) {
      const std::string message = error(pair);
      EXPECT_TRUE(contains(message, "message 2: the field '") &&
                  contains(message, "asks to learn it, but it stands before what is compared") &&
                  contains(message, "; ignore_fields="))
          << pair << message;
    }
  EXPECT_TRUE(contains(
      error(fmt::format(R"({{"prompt": "a", "chosen": [{0}, {1}, {0}], "rejected": [{2}]}})",
                        chosen, message_with("tool", "r", R"("train": false)"), rejected)),
      "message 3: the field 'train' says that it is not to be learned, but all that follows"));
}

TEST_F(OwnSay, WhatHasALabelAgreesWithItsMessages) {
  ask_for(RecordForm::unpaired);
  const auto records = [](const std::string& before, const std::string& last) {
    const std::string asked =
        message_with("user", "a", "") + ", " + message_with("assistant", "b", before);
    const std::string user = message_with("user", "c", "");
    const std::string answer = message_with("assistant", "d", last);
    const auto twice = [](const std::string& record) { return record + "\n" + record; };
    return std::vector<std::string>{
        twice(fmt::format(R"({{"messages": [{}, {}, {}], "label": true}})", asked, user, answer)),
        twice(fmt::format(R"({{"prompt": [{}, {}], "completion": [{}], "label": true}})", asked,
                          user, answer)),
        twice(
            fmt::format(R"({{"prompt": [{0}, {1}], "completion": [{0}, {1}, {2}], "label": true}})",
                        asked, user, answer))};
  };
  for (const std::string& record : records(R"("weight": 0)", R"("weight": 1)"))
    EXPECT_EQ(shown(record), "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}") << record;
  for (const std::string& record : records(R"("weight": 1)", ""))
    EXPECT_TRUE(contains(error(record), "message 2: the field 'weight' asks to learn it"))
        << record;
  for (const std::string& record : records("", R"("weight": 0)"))
    EXPECT_TRUE(contains(error(record), "not to be learned")) << record;
}

// ORPO learns the prompt of what was chosen.
TEST_F(OwnSay, APromptThatIsLearnedMayNotRefuseIt) {
  ask_for(RecordForm::preference);
  options_.train_on_chosen_prompt = true;
  const auto pair = [](const char* field) {
    return fmt::format(R"({{"prompt": [{}, {}], "chosen": [{}], "rejected": [{}]}})",
                       message_with("user", "a", ""), message_with("assistant", "b", field),
                       message_with("assistant", "d", ""), message_with("assistant", "e", ""));
  };
  for (const char* yes : {"", R"("weight": 1)", R"("train": true)"})
    EXPECT_EQ(shown(pair(yes)), "[{user]a</s>[assistant]b</s>[assistant]d</s>}") << yes;
  EXPECT_TRUE(contains(error(pair(R"("weight": 0)")),
                       "message 2: the field 'weight' says that it is not to be learned"));
}

// Only what says what is learned by its whole name, or in words of other tools, is refused.
TEST_F(OwnSay, NamesThatOnlyBeginLikeAMarkAreNamed) {
  for (const char* field : {"train_id", "train_number", "training_step", "weight_kg", "body_weight",
                            "loss_ratio", "mask_id", "learning_goal", "trainNumber",
                            "masked_word_count", "learned_at", "final_loss"}) {
    const std::string named = fmt::format("'{}' (1 record)", field);
    EXPECT_EQ(unused(fmt::format(R"({{"text": "a", "{}": 12}})", field)), named);
    EXPECT_EQ(unused(fmt::format(R"({{"messages": [{{"role": "user", "content": "a"}},)"
                                 R"({{"role": "assistant", "content": "b", "{}": 12}}]}})",
                                 field)),
              named);
  }
  for (const char* field : {"loss",
                            "losses",
                            "weights",
                            "mask",
                            "loss_weight",
                            "lossWeight",
                            "sample_weight",
                            "example_weights",
                            "token_weights",
                            "message_weight",
                            "train_detail",
                            "train_on_turn",
                            "trainOnInput",
                            "do_train",
                            "is_trained",
                            "should_train",
                            "no_loss",
                            "ignore_loss",
                            "compute_loss",
                            "label_mask",
                            "assistant_loss_mask",
                            "my_loss_mask",
                            "response_mask",
                            "turn_mask",
                            "unmasked",
                            "train_mask",
                            "learn",
                            "to_learn",
                            "importance_weight",
                            "train_on_prompt",
                            "mask_inputs",
                            "exclude_from_loss",
                            "not-trained",
                            "loss.weight"}) {
    const std::string record = fmt::format(R"({{"text": "a", "{}": 12}})", field);
    EXPECT_TRUE(contains(error(record), fmt::format("the field '{}' (12) says", field))) << record;
  }
}

// A mark at another role's message: masked asks for it as train does; the tools that write the
// others mean the assistant's alone.
TEST_F(OwnSay, MarksOfOtherRolesAreObeyedOrNamed) {
  const auto record = [](const char* field) {
    return fmt::format(R"({{"messages": [{}, {}]}})", message_with("user", "a", field),
                       message_with("assistant", "b", ""));
  };
  EXPECT_EQ(shown(record(R"("masked": false)")), "[user]{a</s>}[assistant]{b</s>}");
  for (const char* field : {"weight", "loss", "loss_mask", "loss_scale"})
    EXPECT_EQ(unused(record(fmt::format("\"{}\": 1", field).c_str())),
              fmt::format("'{} of user messages' (1 record)", field));
  EXPECT_EQ(unused(record(R"("masked": true)")), "");
}

// Tables of data write numbers as texts.
TEST_F(OwnSay, MarksMayBeWrittenAsTexts) {
  for (const char* value : {"0.5", "0", "false", "False"})
    EXPECT_TRUE(contains(error(fmt::format(R"({{"text": "a", "weight": "{}"}})", value)),
                         "the field 'weight' "))
        << value;
  for (const char* value : {"1", "true", "heavy"})
    EXPECT_EQ(unused(fmt::format(R"({{"text": "a", "weight": "{}"}})", value)),
              "'weight' (1 record)");
}

TEST_F(OwnSay, MarksOfOnlySomeTurnsAreRefused) {
  for (const char* field : {"only_last_turn_loss", "train_last", "train_last_only", "skipLoss",
                            "noloss", "untrain", "mask_history", "train_on_last_turn"})
    EXPECT_TRUE(contains(error(fmt::format(R"({{"text": "a", "{}": true}})", field)),
                         fmt::format("the field '{}' (true) says", field)));
  EXPECT_TRUE(
      contains(error(R"({"text": "a", "learnable": 0})"), "the field 'learnable' (0) says"));
  const std::string turns =
      R"("conversations": [{"from": "User", "value": "a"}, {"from": "Assistant", "value": "b"}]})";
  EXPECT_EQ(unused(R"({"mask": ["User", "System"], )" + turns), "");
  EXPECT_TRUE(contains(error(R"({"mask": ["User", "Assistant"], )" + turns), "not to be learned"));
  EXPECT_TRUE(contains(error(R"({"mask": ["Bob"], )" + turns), "which is no role"));
}

TEST_F(OwnSay, ListsAndPlacesNextToTokensSayWhatIsLearned) {
  options_.vocabulary = 7;
  for (const char* field :
       {R"("label": [-100, 4, 5])", R"("target_ids": [4, 5, 6])", R"("targets": [4, 5, 6])",
        R"("prompt_len": 2)", R"("prompt_length": 2)", R"("num_prompt_tokens": 2)",
        R"("context_length": 1)", R"("answer_start_idx": 2)", R"("decoder_input_ids": [1, 2, 3])",
        R"("input_pos": [0, 1, 0])"}) {
    const std::string record = fmt::format(R"({{"input_ids": [4, 5, 6], {}}})", field);
    EXPECT_TRUE(contains(error(record), "the field '") && contains(error(record), "ignore_fields="))
        << record;
  }
  EXPECT_EQ(unused(R"({"input_ids": [4, 5, 6], "label": 1, "input_length": 3})"),
            "'input_length' (1 record), 'label' (1 record)");
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
