// Every field of a record is used, is known to mean nothing, is named, or is refused: the fields
// that the data of other tools have.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "field_data.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;
using Ids = std::vector<int32_t>;

// Marks answers and, by itself, the last end.
constexpr const char* kMarked =
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content }}</s>{% endgeneration %}{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
    "{% if messages[-1].role == 'assistant' %}{% generation %}</s>{% endgeneration %}{% endif %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

std::string chat(const std::string& fields_of_first, const std::string& more = "") {
  return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bad")" +
         fields_of_first +
         R"(}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "good"}])" +
         more + "}\n";
}

TEST_F(FieldData, MessagesThatSayTheyAreNotLearnedAreNot) {
  for (const char* source : {kPlainTemplate, kMarked}) {
    use_template(source);
    const std::string end = source == kMarked ? "{good</s></s>}" : "{good</s>}";
    for (const char* field :
         {"weight", "train", "training", "trainable", "loss", "loss_mask", "loss_scale"})
      for (const char* value : {"0", "0.0", "false"})
        EXPECT_EQ(shown(chat(fmt::format(R"(, "{}": {})", field, value))),
                  "[user]a</s>[assistant]bad</s>[user]c</s>[assistant]" + end)
            << field;
    for (const char* field : {R"("masked": true)", R"("weight": 0, "loss": false, "x": null)"})
      EXPECT_FALSE(contains(shown(chat(std::string(", ") + field)), "{bad")) << field;
    for (const char* field : {R"("weight": 1)", R"("train": true)", R"("loss": null)",
                              R"("loss_mask": 1.0)", R"("masked": false)"})
      EXPECT_TRUE(contains(shown(chat(std::string(", ") + field)), "{bad</s>}")) << field;
  }
}

// The last answer with its end, and one in the middle; the same in the words of sharegpt.
TEST_F(FieldData, AnyAnswerMayBeLeftOut) {
  const std::string last =
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},
          {"from": "human", "value": "c", "weight": 1}, {"from": "gpt", "value": "d", "weight": 0}]})";
  std::string line = last;
  std::erase(line, '\n');
  EXPECT_EQ(shown(line), "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]d</s>");
  use_template(kMarked);
  EXPECT_EQ(shown(line), "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]d</s></s>");
  // An answer that is not learned may be empty.
  EXPECT_EQ(shown(R"({"messages": [{"role": "assistant", "content": "", "weight": 0},)"
                  R"({"role": "assistant", "content": "d"}]})"),
            "[assistant]</s>[assistant]{d</s></s>}");
}

TEST_F(FieldData, WhatIsNotUnderstoodOfAMessageIsRefused) {
  EXPECT_TRUE(contains(error(chat(R"(, "weight": 0.5)")),
                       "data.jsonl:1: record 1: message 2: the field 'weight' is neither 0"));
  EXPECT_TRUE(contains(error(chat(R"(, "weight": 0.5)")), "ignore_fields=weight"));
  EXPECT_TRUE(contains(error(chat(R"(, "loss": "no")")), "'loss' is neither"));
  EXPECT_TRUE(contains(error(chat(R"(, "weight": 0, "train": true)")), "'train' disagrees"));
  EXPECT_TRUE(contains(error(chat(R"(, "token_weights": [0, 1])")), "'token_weights' says what"));
  EXPECT_TRUE(contains(
      error(chat(R"(, "train_detail": [{"begin_offset": 0, "end_offset": 1, "train": false}])")),
      "'train_detail' says what"));
  EXPECT_TRUE(contains(error(R"({"messages": [{"role": "user", "content": "a"},)"
                             R"({"role": "assistant", "content": "b", "weight": 0}]})"),
                       "it is not to be learned"));
  EXPECT_EQ(unused(chat(R"(, "mood": "glad", "id": 3)")), "'mood' (1 record)");
  options_.ignored_fields = {"weight"};
  EXPECT_TRUE(contains(shown(chat(R"(, "weight": 0.5)")), "{bad</s>}"));
  options_ = {.max_length = 64, .train_on_prompt = true, .chat_template = options_.chat_template};
  EXPECT_TRUE(contains(error(chat(R"(, "weight": 0)")), "message 2 says that it is not to be"));
}

TEST_F(FieldData, ASystemMessageNextToAConversationComesFirst) {
  const std::string turns =
      R"("messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])";
  const std::string shared =
      R"("conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}])";
  for (const std::string& list : {turns, shared})
    for (const char* field : {"system", "system_prompt", "system_message"}) {
      EXPECT_EQ(shown(fmt::format(R"({{"{}": "be kind", {}}})", field, list)),
                "[system]be kind</s>[user]a</s>[assistant]{b</s>}");
      for (const char* nothing : {"null", "\"\"", "\" \""})
        EXPECT_EQ(shown(fmt::format(R"({{"{}": {}, {}}})", field, nothing, list)),
                  "[user]a</s>[assistant]{b</s>}");
    }
  const std::string own = R"({"messages": [{"role": "system", "content": "be kind"},)"
                          R"({"role": "assistant", "content": "b"}], "system": )";
  EXPECT_EQ(shown(own + R"("be kind"})"), "[system]be kind</s>[assistant]{b</s>}");
  EXPECT_TRUE(contains(error(own + R"("be rude"})"), "ignore_fields=system"));
  options_.ignored_fields = {"system"};
  EXPECT_EQ(shown(own + R"("be rude"})"), "[system]be kind</s>[assistant]{b</s>}");
}

TEST_F(FieldData, ConversationsHaveRolesInEitherWords) {
  EXPECT_EQ(shown(R"({"conversations": [{"role": "user", "content": "a"},)"
                  R"({"role": "assistant", "content": "b"}]})"),
            "[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(
      shown(R"({"messages": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})"),
      "[user]a</s>[assistant]{b</s>}");
  use_template(
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
      "</s>{% endgeneration %}{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"
      "{{ tools | length }}");
  EXPECT_EQ(shown(R"({"conversations": [{"from": "human", "value": "a"},)"
                  R"({"from": "gpt", "value": "b"}], "tools": "[{\"name\": \"f\"}]"})"),
            "a</s>{b</s>}1");
}

// Tools write roles in other cases (NeMo: User), and in words of their own.
TEST_F(FieldData, RolesAreReadInAnyCase) {
  const std::string shows = "[system]s</s>[user]a</s>[assistant]{b</s>}";
  const auto turns = [](const char* system, const char* user, const char* assistant) {
    return fmt::format(R"({{"from": "{}", "value": "s"}}, {{"from": "{}", "value": "a"}},)"
                       R"({{"from": "{}", "value": "b"}})",
                       system, user, assistant);
  };
  for (const char* user : {"User", "USER", "Human", "human", "prompter"})
    for (const char* assistant :
         {"Assistant", "ASSISTANT", "GPT", "Gpt", "Bot", "model", "AI", "ChatGPT", "Chatbot"}) {
      const std::string all = turns("System", user, assistant);
      EXPECT_EQ(shown(R"({"conversations": [)" + all + "]}"), shows) << all;
      EXPECT_EQ(shown(R"({"messages": [)" + all + "]}"), shows) << all;
    }
  EXPECT_EQ(shown(R"({"mask": "User", "system": "s", "type": "VALUE_TO_TEXT", "conversations": [)"
                  R"({"from": "User", "value": "a", "label": null},)"
                  R"({"from": "Assistant", "value": "b", "label": "c"}]})"),
            shows);
  EXPECT_EQ(shown(R"({"prompt": [{"role": "USER", "content": "a"}], "completion":)"
                  R"([{"role": "Assistant", "content": "b"}], "system": "s"})"),
            shows);
  EXPECT_EQ(shown(R"({"messages": [{"role": "Tool_Response", "content": "a"},)"
                  R"({"role": "Bot", "content": "b"}]})"),
            "[tool]a</s>[assistant]{b</s>}");
  ask_for(RecordForm::preference);
  EXPECT_EQ(
      shown(R"({"prompt": "a", "system": "s", "chosen": [{"role": "Assistant", "content": "b"}],)"
            R"("rejected": [{"role": "Bot", "content": "c"}]})"),
      shows);
  ask_for(RecordForm::messages);
  EXPECT_TRUE(contains(error(R"({"messages": [{"role": "Moderator", "content": "a"}]})"),
                       "the role 'Moderator' is not known"));
}

// LLaMA-Factory and ms-swift write a call as a message of its own.
TEST_F(FieldData, CallsMayBeMessages) {
  use_template(
      "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}{{ "
      "m.content or m.tool_calls | tojson }}</s>{% endgeneration %}{% else %}{{ m.content }}</s>"
      "{% endif %}{% endfor %}");
  const std::string turns =
      R"({"conversations": [{"from": "human", "value": "a"},)"
      R"({"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": 2}}"},)"
      R"({"from": "observation", "value": "r"}, {"from": "gpt", "value": "c"}]})";
  EXPECT_EQ(shown(turns),
            "[user]a</s>[assistant]{[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
            "\"arguments\": {\"b\": 1, \"a\": 2}}}]</s>}[tool]r</s>[assistant]{c</s>}");
  EXPECT_TRUE(contains(error(R"({"messages": [{"role": "tool_call", "content": "f 1"}]})"),
                       "message 1: the call is text that is not JSON"));
  EXPECT_TRUE(contains(error(R"({"messages": [{"role": "tool_call", "content": "[3]"}]})"),
                       "message 1: expected a call to be an object"));
}

// TRL's conversational prompt and completion: of the one conversation the completion is learned.
TEST_F(FieldData, APromptAndACompletionMayBeMessages) {
  const std::string prompt =
      R"("prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},)"
      R"({"role": "user", "content": "c"}], )";
  for (const char* source : {kPlainTemplate, kMarked}) {
    use_template(source);
    const std::string end = source == kMarked ? "</s>" : "";
    EXPECT_EQ(shown("{" + prompt + R"("completion": [{"role": "assistant", "content": "d"}]})"),
              "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>" + end + "}");
  }
  use_template(kPlainTemplate);
  EXPECT_TRUE(contains(shown("{" + prompt + R"("completion": "d", "system": "s"})"),
                       "[system]s</s>[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}"));
  EXPECT_TRUE(contains(error("{" + prompt + R"("completion": []})"), "must each have a message"));
  EXPECT_TRUE(contains(
      error("{" + prompt + R"("completion": [{"role": "assistant", "content": " "}]})"), "empty"));
  EXPECT_TRUE(contains(error("{" + prompt + R"("completion": "d"})" + "\n" +
                             R"({"prompt": "a", "completion": "b"})"),
                       "data.jsonl:2: record 2: some records hold texts, others messages"));
}

TEST_F(FieldData, ASystemMessageOrAHistoryMakesAConversationOfTexts) {
  EXPECT_EQ(shown(R"({"instruction": "a", "input": "i", "output": "b", "system": "s"})"),
            "[system]s</s>[user]a\ni</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"prompt": "a", "response": "b", "history": [["q", "r"]]})"),
            "[user]q</s>[assistant]{r</s>}[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"query": "a", "response": "b", "system": "s", "history": []})"),
            "[system]s</s>[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"system_prompt": "", "question": "a", "response": "b"})"),
            "[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"instruction": "a", "output": "b", "history": )"
                  R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]})"),
            "[user]q</s>[assistant]{r</s>}[user]a</s>[assistant]{b</s>}");
  // Where it says nothing, texts stay texts.
  EXPECT_EQ(shown(R"({"prompt": "a", "completion": "b", "system": null, "history": []})"),
            "a{b</s>}");
  EXPECT_TRUE(contains(error(R"({"instruction": "a", "output": ["b", "c"]})"),
                       "expected the field 'output' to be a string, found array"));
  EXPECT_TRUE(contains(error(R"({"prompt": "a", "completion": "b", "history": ["q"]})"),
                       "'history' to be a list of [question, answer]"));
  options_.ignored_fields = {"system"};
  EXPECT_EQ(shown(R"({"prompt": "a", "completion": "b", "system": "s"})"), "a{b</s>}");
}

// The first records of the file may have none.
TEST_F(FieldData, OneSystemMessageMakesConversationsOfAllRecords) {
  const std::string file =
      "{\"prompt\": \"a\", \"completion\": \"b\"}\n"
      "{\"prompt\": \"c\", \"completion\": \"d\", \"system\": \"s\"}\n";
  EXPECT_EQ(shown(file, 0), "[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(file, 1), "[system]s</s>[user]c</s>[assistant]{d</s>}");
  EXPECT_EQ(load(file).audit.chat_field, "system");
  const std::string turned =
      "{\"prompt\": \"c\", \"completion\": \"d\", \"history\": [[\"q\", \"r\"]]}\n"
      "{\"prompt\": \"a\", \"completion\": \"b\", \"system\": \"\"}\n";
  EXPECT_EQ(shown(turned, 0), "[user]q</s>[assistant]{r</s>}[user]c</s>[assistant]{d</s>}");
  EXPECT_EQ(shown(turned, 1), "[user]a</s>[assistant]{b</s>}");
  options_.chat_template.clear();
  EXPECT_TRUE(contains(error(file), "ignore_fields=system"));
}

TEST_F(FieldData, PairsTakeTheirPromptFromAnyOfItsNames) {
  ask_for(RecordForm::preference);
  const std::string answers = R"("chosen": "b", "rejected": "c"})";
  EXPECT_EQ(shown(R"({"system": "s", "question": "a", )" + answers),
            "[system]s</s>[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"system": "s", "question": "a", )" + answers, 1),
            "[system]s</s>[user]a</s>[assistant]{c</s>}");
  EXPECT_EQ(shown(R"({"system": "s", "prompt": "a", )" + answers),
            "[system]s</s>[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"query": "a", "history": [["q", "r"]], )" + answers),
            "[user]q</s>[assistant]r</s>[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"instruction": "a", "input": "i", )" + answers),
            alpaca_prompt("a", "i") + "{b</s>}");
  EXPECT_EQ(shown(R"({"conversations": [{"from": "human", "value": "a"}], "system": "s",)"
                  R"("chosen": {"from": "gpt", "value": "b"}, )"
                  R"("rejected": {"from": "gpt", "value": "c"}})"),
            "[system]s</s>[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"messages": [{"role": "user", "content": "a"},)"
                  R"({"role": "assistant", "content": "b"}], "rejected_response": "c"})",
                  1),
            "[user]a</s>[assistant]{c</s>}");
  // As a text next to conversations that have it already, and to answers alone.
  const std::string asked = R"({"role": "user", "content": "a"}, )";
  for (const std::string& own : {asked, std::string()})
    EXPECT_EQ(shown(R"({"prompt": "a", "chosen": [)" + own +
                    R"({"role": "assistant", "content": "b"}], "rejected": [)" + own +
                    R"({"role": "assistant", "content": "c"}]})"),
              "[user]a</s>[assistant]{b</s>}");
  EXPECT_TRUE(contains(error(R"({"prompt": "x", "chosen": [)" + asked +
                             R"({"role": "assistant", "content": "b"}], "rejected": [)" + asked +
                             R"({"role": "assistant", "content": "c"}]})"),
                       "ignore_fields=prompt"));
  EXPECT_TRUE(contains(error(R"({"system": "s", )" + answers), "'system' stands before a prompt"));
  EXPECT_TRUE(
      contains(error(R"({"prompt": "a", "chosen": [{"role": "assistant", "content": "b",)"
                     R"("weight": 0}], "rejected": [{"role": "assistant", "content": "c"}]})"),
               "message 2: the field 'weight' says that it is not to be learned"));
}

TEST_F(FieldData, PairsOfEitherKindDoNotMix) {
  ask_for(RecordForm::preference);
  const std::string alone = R"({"chosen": "a b", "rejected": "a c"})"
                            "\n";
  const std::string asked = R"({"system": "s", "prompt": "a", "chosen": "b", "rejected": "c"})";
  EXPECT_TRUE(contains(error(alone + asked), "some records hold texts, others messages"));
  EXPECT_EQ(unused(R"({"prompt": [{"role": "user", "content": "a"}], "history": [["q", "r"]],)"
                   R"("chosen": [{"role": "assistant", "content": "b"}],)"
                   R"("rejected": [{"role": "assistant", "content": "c"}]})"),
            "'history' (1 record)");
}

TEST_F(FieldData, NoAnswerOfAPairIsEmpty) {
  ask_for(RecordForm::preference);
  for (const char* empty : {R"("")", R"([{"role": "assistant", "content": " "}])"}) {
    const bool is_text = empty[0] == '"';
    const std::string prompt = is_text ? R"("a")" : R"([{"role": "user", "content": "a"}])";
    const std::string good = is_text ? R"("b")" : R"([{"role": "assistant", "content": "b"}])";
    for (const char* side : {"chosen", "rejected"}) {
      const bool is_chosen = side == std::string("chosen");
      const std::string message =
          error(fmt::format(R"({{"prompt": {}, "chosen": {}, "rejected": {}}})", prompt,
                            is_chosen ? empty : good.c_str(), is_chosen ? good.c_str() : empty));
      EXPECT_TRUE(contains(message, "empty") && contains(message, std::string("'") + side + "'"))
          << message;
    }
  }
}

TEST_F(FieldData, RecordsOfASplitThatIsHeldOutAreNamed) {
  for (const char* split : {R"("train")", R"("train_sft")", "null"})
    EXPECT_EQ(unused(chat("", fmt::format(R"(, "split": {})", split))), "") << split;
  for (const char* split : {R"("test")", R"("validation")", "2"})
    EXPECT_EQ(unused(chat("", fmt::format(R"(, "split": {})", split))), "'split' (1 record)")
        << split;
}

TEST_F(FieldData, LabelsGoWithEveryFormThatHasAnAnswer) {
  const std::string good = R"({"prompt": "p", "completion": "q", "label": true})"
                           "\n";
  for (const char* record :
       {R"({"instruction": "a", "output": "b", "kto_tag": false, "system": "s"})",
        R"({"prompt": "a", "completion": "b", "label": false, "system": "s"})"}) {
    EXPECT_TRUE(contains(error(record), "' is false: its answer is not desirable")) << record;
    options_.form = RecordForm::unpaired;
    EXPECT_EQ(shown(std::string(record) + "\n" + record),
              "[system]s</s>[user]a" + std::string("</s>[assistant]{b</s>}"));
    options_.form.reset();
  }
  const std::string labelled = R"({"messages": [{"role": "user", "content": "a"},)"
                               R"({"role": "assistant", "content": "b"}], "label": false})";
  EXPECT_TRUE(contains(error(labelled), "objective=kto"));
  options_.form = RecordForm::unpaired;
  EXPECT_EQ(load(labelled + "\n" + labelled).audit.desirable, 0);
  options_.form.reset();
  options_.ignored_fields = {"label"};
  EXPECT_EQ(shown(labelled), "[user]a</s>[assistant]{b</s>}");
  options_.ignored_fields.clear();
  EXPECT_EQ(shown(good), "p{q</s>}");
  EXPECT_EQ(unused(R"({"text": "a", "label": false})"), "'label' (1 record)");
  EXPECT_EQ(unused(R"({"prompt": "a", "completion": "b", "label": 0})"), "'label' (1 record)");
}

TEST_F(FieldData, WhatIsNotUsedIsNamedWithItsCount) {
  EXPECT_EQ(unused("{\"text\": \"a\", \"score\": 1}\n{\"text\": \"b\", \"id\": 3, \"url\": \"u\"}\n"
                   "{\"text\": \"b\", \"score\": 2, \"x\": \"\", \"y\": null, \"z\": [1]}\n"),
            "'score' (2 records), 'z' (1 record)");
  EXPECT_EQ(unused(R"({"prompt": "a", "completion": "b", "instruction": "c"})"),
            "'instruction' (1 record)");
  EXPECT_EQ(unused(chat("", R"(, "rejected_response": "x", "metadata": {"a": 1})")),
            "'rejected_response' (1 record)");
}

TEST_F(FieldData, WhatWouldChangeLearningIsRefused) {
  for (const char* field :
       {R"("weight": 0.5)", R"("sample_weight": 2)", R"("train": false)", R"("loss_mask": [0, 1])",
        R"("mask": [true])", R"("lossMask": 0)", R"("noLoss": 1)", R"("images": ["a.png"])",
        R"("seq_lengths": [1, 2])"}) {
    const std::string record = fmt::format(R"({{"text": "a", {}}})", field);
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_TRUE(contains(error(record), "the field '" + name + "'")) << record;
    EXPECT_TRUE(contains(error(record), "ignore_fields=" + name)) << record;
    options_.ignored_fields = {name};
    EXPECT_EQ(shown(record), "a{</s>}");
    options_.ignored_fields.clear();
  }
  for (const char* field : {R"("weight": 1)", R"("train": true)", R"("mask": "User")",
                            R"("images": [])", R"("training_source": "web")"})
    EXPECT_EQ(error(fmt::format(R"({{"text": "a", {}}})", field)), "") << field;
}

TEST_F(FieldData, FieldsToBeIgnoredThatNoRecordHasAreNamed) {
  options_.ignored_fields = {"weight", "scores", "mood", "wieght"};
  const Dataset data = load(R"({"messages": [{"role": "user", "content": "a", "mood": null}, )"
                            R"({"role": "assistant", "content": "b", "weight": 0.5}]})"
                            "\n"
                            R"({"scores": [1], "messages": [{"role": "user", "content": "a"}, )"
                            R"({"role": "assistant", "content": "b"}]})");
  EXPECT_EQ(data.audit.unmet, std::vector<std::string>{"wieght"});
  EXPECT_EQ(unmet_text(data.audit.unmet), "no record has 'wieght', which ignore_fields names");
  EXPECT_EQ(unmet_text({}), "");
}

}  // namespace
}  // namespace snug::text
