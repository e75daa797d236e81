// Records in the forms of public data sets, and what is made of what they lack: each is read as its
// publishers or the tools that know it read it, or refused with what to do.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "field_data.h"
#include "text/record/record_mapping.h"

namespace snug::text {
namespace {

using testing::contains;
using Items = std::vector<std::string>;

class PublicSets : public FieldData {
 protected:
  void map(const Items& fields, const Items& roles = {}) {
    options_.mapping = RecordMapping(fields, roles);
  }
  // What is left of a file whose other half is as it should be.
  DatasetAudit audit(const std::string& good, const std::string& bad) {
    std::string file;
    for (int i = 0; i < 10; ++i) file += (i % 2 == 0 ? good : bad) + "\n";
    options_.skips.refuses_any = false;
    DatasetAudit seen = load(file).audit;
    options_.skips.refuses_any = true;
    return seen;
  }
};

// OpenAssistant: a message of a tree in each row.
TEST_F(PublicSets, AMessageIsNoText) {
  const std::string row = R"({"text": "a", "parent_id": null, "message_tree_id": "t", "role": )";
  for (const char* role : {"prompter", "assistant", "user", "Human", "gpt"})
    EXPECT_TRUE(contains(error(row + "\"" + role + "\"}"),
                         fmt::format("the field 'role' is '{}', so the text is one message of a "
                                     "conversation",
                                     role)))
        << role;
  EXPECT_TRUE(contains(error(row + R"("user"})"), "{\"messages\": [{\"role\": "));
  EXPECT_TRUE(contains(error(R"({"text": "a", "author_role": "assistant"})"), "'author_role'"));
  EXPECT_EQ(error(row + R"("a hero"})"), "");
  EXPECT_EQ(error(row + "3}"), "");
  options_.ignored_fields = {"role"};
  EXPECT_EQ(error(row + R"("user"})"), "");
  options_.ignored_fields.clear();
  EXPECT_TRUE(contains(error(R"({"content": "a", "role": "user"})"), "one message"));
  map({"text=content"});
  EXPECT_TRUE(contains(error(R"({"content": "a", "role": "user"})"), "the field 'role' is 'user'"));
}

// The text is longer than what is read at once.
TEST_F(PublicSets, ALongMessageIsNoTextEither) {
  const std::string text(size_t{3} << 20, 'a');
  EXPECT_TRUE(contains(error(R"({"role": "user", "text": ")" + text + "\"}"),
                       "the field 'role' is 'user', so the text is one message"));
}

// PKU-SafeRLHF, HelpSteer3, SHP, Chatbot Arena, Kaggle's, AlpacaFarm, PIQA.
TEST_F(PublicSets, AFieldThatSaysWhichAnswerIsBetterIsNotPassedOver) {
  ask_for(RecordForm::preference);
  const std::string pair = R"({"prompt": "a", "response_0": "b", "response_1": "c", )";
  map({"chosen=response_0", "rejected=response_1"});
  for (const char* field :
       {R"("better_response_id": 1)", R"("safer_response_id": 0)", R"("overall_preference": -2)",
        R"("labels": 1)", R"("label": 0)", R"("winner": "model_b")", R"("winner_model_a": 1)",
        R"("preference": 2)", R"("preferred": "B")", R"("choice": 0)", R"("best": "response_1")",
        R"("chosen_index": "1")", R"("preference_strength": -1)"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    const std::string told = error(pair + field + "}");
    EXPECT_TRUE(contains(told, "the field '" + name + "'")) << told;
    EXPECT_TRUE(contains(told, "'chosen' is always 'response_0'")) << told;
    EXPECT_TRUE(contains(told, "ignore_fields=" + name)) << told;
    options_.ignored_fields = {name};
    EXPECT_EQ(error(pair + field + "}"), "");
    options_.ignored_fields.clear();
  }
  for (const char* field :
       {R"("prompt_source": "x")", R"("is_response_0_safe": true)", R"("model": "m")", R"("n": 3)",
        R"("preference_statement": "Response 1 is longer, and so on.")", R"("label": null)"})
    EXPECT_EQ(error(pair + field + "}"), "") << field;
}

// Where the data themselves say what was chosen, that is so.
TEST_F(PublicSets, AnswersThatTheDataCallChosenAreInTheirOrder) {
  ask_for(RecordForm::preference);
  EXPECT_EQ(unused(R"({"prompt": "a", "chosen": "b", "rejected": "c", "better_response_id": 1})"),
            "'better_response_id' (1 record)");
  EXPECT_EQ(error(R"({"prompt": "a", "response_j": "b", "response_k": "c", "label": 0})"), "");
  map({"prompt=p", "chosen=chosen", "rejected=rejected"});
  EXPECT_EQ(error(R"({"p": "a", "chosen": "b", "rejected": "c", "preference_strength": 2})"), "");
  map({"chosen=chosen_answer", "rejected=rejected_answer"});
  EXPECT_EQ(
      error(R"({"prompt": "a", "chosen_answer": "b", "rejected_answer": "c", "winner": "x"})"), "");
}

// MMLU, ARC, MedQA: the letter of an answer that stands elsewhere.
TEST_F(PublicSets, ALetterIsNoAnswerWithoutItsChoices) {
  const std::string asked = R"({"question": "a", "answer": "B", )";
  EXPECT_TRUE(contains(error(asked + R"("choices": ["x", "y"]})"), "A. {choices.0}"));
  EXPECT_TRUE(contains(error(asked + R"("choices": {"text": ["x", "y"], "label": ["A", "B"]}})"),
                       "A. {choices.text.0}"));
  EXPECT_TRUE(contains(error(asked + R"("options": {"A": "x", "B": "y"}})"), "A. {options.A}"));
  EXPECT_EQ(error(R"({"question": "a", "answer": "It is y", "choices": ["x", "y"]})"), "");
  EXPECT_EQ(error(asked + R"("choices": []})"), "");
  EXPECT_EQ(error(R"({"question": "a", "answer": "42", "choices": ["40", "42"]})"), "");
  options_.ignored_fields = {"choices"};
  EXPECT_EQ(error(asked + R"("choices": ["x", "y"]})"), "");
  options_.ignored_fields.clear();
  map({"question={question} A. {choices.0} B. {choices.1}", "answer=answer"});
  EXPECT_EQ(shown(asked + R"("choices": ["x", "y"]})"), "[user]a A. x B. y</s>[assistant]{B</s>}");
}

TEST_F(PublicSets, ARoleThatIsNotKnownMayBeNamed) {
  EXPECT_TRUE(contains(error(R"({"conversations": [{"from": "bing", "value": "a"}]})"),
                       "roles={bing: assistant} says whose it is"));
}

// Magicoder, aya, SQuAD: one key makes the conversation that question and answer are.
TEST_F(PublicSets, QuestionsAndAnswersMayHaveOtherNames) {
  for (const char* asked : {"question", "query"})
    for (const char* answered : {"answer", "response"}) {
      map({fmt::format("{}=problem", asked), fmt::format("{}=solution", answered)});
      EXPECT_EQ(shown(R"({"problem": "a", "solution": "b", "n": 1})"),
                "[user]a</s>[assistant]{b</s>}");
      // What the data have under such a name by chance is not taken.
      EXPECT_EQ(shown(R"({"problem": "a", "solution": "b", "prompt": "x", "completion": "y",)"
                      R"("instruction": "i", "output": "o", "query": "q", "response": "r",)"
                      R"("input": "in", "target": "t", "question": "qu", "answer": "an"})"),
                "[user]a</s>[assistant]{b</s>}");
    }
  map({"answer=final"});
  EXPECT_EQ(shown(R"({"question": "a", "response": "x", "final": "b"})"),
            "[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"instruction": "a", "output": "x", "final": "b"})"),
            alpaca_prompt("a", "") + "{b</s>}");
  ask_for(RecordForm::preference);
  map({"question=problem"});
  EXPECT_EQ(shown(R"({"problem": "a", "prompt": "x", "chosen": "b", "rejected": "c"})"),
            "[user]a</s>[assistant]{b</s>}");
}

// A model that has a template for conversations learns texts without it, which the log says.
TEST_F(PublicSets, ATemplateThatTextsDoWithoutIsNamed) {
  const auto idle = [&](const char* record) { return load(record).audit.idle_template; };
  EXPECT_EQ(idle(R"({"prompt": "a", "completion": "b"})"), options_.chat_template);
  EXPECT_EQ(idle(R"({"instruction": "a", "output": "b"})"), options_.chat_template);
  EXPECT_EQ(idle(R"({"question": "a", "answer": "b"})"), "");
  EXPECT_EQ(idle(R"({"text": "a"})"), "");
  options_.chat_template.clear();
  EXPECT_EQ(idle(R"({"prompt": "a", "completion": "b"})"), "");
}

// pandas and datasets write null for what is empty.
TEST_F(PublicSets, NullIsEmpty) {
  const auto is_of_size = [&](const std::string& good, const std::string& bad) {
    const DatasetAudit seen = audit(good, bad);
    EXPECT_EQ(seen.bad, 5) << bad;
    EXPECT_TRUE(contains(seen.bad_told, "empty") || contains(seen.bad_told, "no message is"))
        << seen.bad_told;
  };
  is_of_size(R"({"instruction": "a", "input": null, "output": "b"})",
             R"({"instruction": "a", "input": null, "output": null})");
  is_of_size(R"({"prompt": "a", "completion": "b"})", R"({"prompt": "a", "completion": null})");
  is_of_size(R"({"question": "a", "answer": "b"})", R"({"question": "a", "answer": null})");
  const std::string chat = R"({"messages": [{"role": "user", "content": "a"}, )"
                           R"({"role": "assistant", "content": "b"}]})";
  is_of_size(chat, R"({"messages": null})");
  is_of_size(
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})",
      R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": null}]})");
  is_of_size(R"({"prompt": [{"role": "user", "content": "a"}], "completion": "b"})",
             R"({"prompt": [{"role": "user", "content": "a"}], "completion": null})");
  EXPECT_EQ(audit(R"({"text": "ab"})", R"({"text": null})").empty, 5);
  EXPECT_EQ(shown(R"({"instruction": null, "output": "b"})"), alpaca_prompt("", "") + "{b</s>}");
  ask_for(RecordForm::preference);
  is_of_size(R"({"prompt": "a", "chosen": "b", "rejected": "c"})",
             R"({"prompt": "a", "chosen": "b", "rejected": null})");
  is_of_size(
      R"({"prompt": "a", "chosen": [{"role": "assistant", "content": "b"}],)"
      R"("rejected": [{"role": "assistant", "content": "c"}]})",
      R"({"prompt": "a", "chosen": null, "rejected": [{"role": "assistant", "content": "c"}]})");
}

// SQuAD v2: a third of the questions has no answer.
TEST_F(PublicSets, WhatAListIsTooShortForIsEmpty) {
  map({"prompt=question", "completion=answers.text.0"});
  const std::string good = R"({"question": "a", "answers": {"text": ["b"], "answer_start": [1]}})";
  EXPECT_EQ(shown(good), "a{b</s>}");
  for (const char* text : {"[]", "null", "[null]"}) {
    const std::string bad =
        fmt::format(R"({{"question": "a", "answers": {{"text": {}, "answer_start": []}}}})", text);
    EXPECT_EQ(audit(good, bad).bad, 5);
    EXPECT_TRUE(contains(error(bad), "the answer ('completion') is empty"));
  }
  EXPECT_TRUE(contains(error(R"({"question": "a", "answers": null})"), "is empty"));
  EXPECT_TRUE(contains(error(R"({"question": "a", "answers": {"texts": ["b"]}})"),
                       "has no 'answers.text.0'"));
  EXPECT_TRUE(
      contains(error(R"({"question": "a", "answers": {"text": "b"}})"), "has no 'answers.text.0'"));
  map({"prompt=question", "completion=answers.1.text"});
  EXPECT_TRUE(contains(error(R"({"question": "a", "answers": [{"text": "b"}]})"), "is empty"));
  map({"prompt=question", "completion=Answer: {answers.1}"});
  EXPECT_TRUE(contains(error(R"({"question": "a", "answers": ["b"]})"), "is empty"));
}

// LIMA and UltraChat: turns in a list, the user's first.
TEST_F(PublicSets, AListOfTextsIsAConversation) {
  const std::string shows = "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}";
  EXPECT_EQ(shown(R"({"conversations": ["a", "b", "c", "d"], "source": "x"})"), shows);
  EXPECT_EQ(shown(R"({"messages": ["a", "b", "c", "d"], "system": "s"})"), "[system]s</s>" + shows);
  EXPECT_EQ(shown(R"({"messages": ["System: s", "Human: a", "ASSISTANT:b", "human: c",)"
                  R"("Assistant:  d"]})"),
            "[system]s</s>" + shows);
  EXPECT_EQ(shown(R"({"messages": ["Note: a", "User: b"]})"),
            "[user]Note: a</s>[assistant]{User: b</s>}");
  EXPECT_TRUE(contains(error(R"({"messages": ["User: a", "Bot:"]})"), "text is empty"));
  EXPECT_TRUE(contains(error(R"({"conversations": ["a"]})"), "no message is the assistant's"));
  EXPECT_TRUE(contains(error(R"({"conversations": ["a", {"from": "gpt", "value": "b"}]})"),
                       "expected the strings 'role' and 'content'"));
  EXPECT_TRUE(contains(error(R"({"conversations": ["a", 3]})"), "expected the strings"));
  EXPECT_TRUE(contains(error(R"({"conversations": ["a", ""]})"), "empty"));
  map({"messages=data"});
  EXPECT_EQ(shown(R"({"id": "0", "data": ["a", "b", "c", "d"]})"), shows);
}

// WildChat and LMSYS-Chat have `conversation` for `messages`.
TEST_F(PublicSets, AConversationMayBeCalledSo) {
  EXPECT_EQ(shown(R"({"conversation_id": "x", "model": "m", "conversation": [)"
                  R"({"role": "user", "content": "a", "toxic": false},)"
                  R"({"role": "assistant", "content": "b", "toxic": false}]})"),
            "[user]a</s>[assistant]{b</s>}");
  EXPECT_TRUE(contains(error(R"({"conversation": "a: b"})"), "found: conversation"));
  map({}, {"customer=user"});
  EXPECT_EQ(shown(R"({"conversation": [{"role": "customer", "content": "a"},)"
                  R"({"role": "assistant", "content": "b"}]})"),
            "[user]a</s>[assistant]{b</s>}");
}

// Capybara's input and output, ms-swift's human and assistant, and their like.
TEST_F(PublicSets, ATurnMayBeAQuestionWithItsAnswer) {
  const std::string shows = "[user]a</s>[assistant]{b</s>}[user]c</s>[assistant]{d</s>}";
  const auto turns = [](const char* asked, const char* answered) {
    return fmt::format(R"([{{"{0}": "a", "{1}": "b"}}, {{"{1}": "d", "{0}": "c"}}])", asked,
                       answered);
  };
  for (const auto& [asked, answered] : {std::pair{"input", "output"},
                                        {"human", "assistant"},
                                        {"Human", "Assistant"},
                                        {"user", "assistant"},
                                        {"question", "answer"},
                                        {"prompt", "response"},
                                        {"instruction", "output"},
                                        {"query", "response"}}) {
    EXPECT_EQ(shown(R"({"conversation": )" + turns(asked, answered) + "}"), shows) << asked;
    EXPECT_EQ(shown(R"({"instruction": "c", "output": "d", "history": [{")" + std::string(asked) +
                    R"(": "a", ")" + answered + R"(": "b"}]})"),
              shows)
        << asked;
  }
  EXPECT_EQ(shown(R"({"messages": [{"user": "a"}, {"assistant": "b"}, {"user": "c"},)"
                  R"({"assistant": "d"}]})"),
            shows);
  // What stands next to an answer is that of its message.
  EXPECT_EQ(shown(R"({"conversation": [{"input": "a", "output": "b", "train": false},)"
                  R"({"input": "c", "output": "d"}]})"),
            "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}");
  EXPECT_TRUE(
      contains(error(R"({"conversation": [{"input": "a", "output": null}]})"), "text is empty"));
  EXPECT_TRUE(contains(error(R"({"conversation": [{"input": "a", "target": "b"}]})"),
                       "expected the strings 'role' and 'content'"));
}

// glaive-function-calling: a text with the marks of its turns.
TEST_F(PublicSets, MarksInATextTellItsTurns) {
  const std::string record =
      R"({"system": "SYSTEM: s", "chat": "USER: a\n\nb\n\n\nASSISTANT: <functioncall> {\"name\": \"f\"} )"
      R"(<|endoftext|>\n\n\nFUNCTION RESPONSE: {\"r\": 1}\n\n\nASSISTANT: c <|endoftext|>\n\n\n"})";
  EXPECT_EQ(shown(record),
            "[system]s</s>[user]a\n\nb</s>[assistant]{<functioncall> {\"name\": \"f\"}</s>}"
            "[tool]{\"r\": 1}</s>[assistant]{c</s>}");
  EXPECT_TRUE(contains(error(R"({"chat": "a: b"})"), "found: chat"));
  EXPECT_TRUE(contains(error(R"({"chat": "USER: a"})"), "no message is the assistant's"));
  EXPECT_TRUE(contains(error(R"({"chat": "USER: a\n\nASSISTANT: "})"), "text is empty"));
  map({"messages=said"});
  EXPECT_EQ(shown(R"({"said": "USER: a\n\nASSISTANT: b"})"), "[user]a</s>[assistant]{b</s>}");
  EXPECT_TRUE(contains(error(R"({"said": "a"})"), "to be a list of messages"));
}

// Tables hold a list as its JSON, and name columns as people write.
TEST_F(PublicSets, MessagesMayBeJsonAsText) {
  const std::string list = R"("[{\"role\": \"user\", \"content\": \"a\"}, )"
                           R"({\"role\": \"assistant\", \"content\": \"b\"}]")";
  const std::string shows = "[user]a</s>[assistant]{b</s>}";
  for (const char* key : {"messages", "conversations", "conversation"})
    EXPECT_EQ(shown("{\"" + std::string(key) + "\": " + list + "}"), shows) << key;
  EXPECT_EQ(shown(R"({"messages": ["{\"role\": \"user\", \"content\": \"a\"}", )"
                  R"("{\"role\": \"assistant\", \"content\": \"b\"}"]})"),
            shows);
  const std::string asked = R"("[{\"role\": \"user\", \"content\": \"a\"}]")";
  EXPECT_EQ(shown("{\"prompt\": " + asked + R"(, "completion": "b"})"), shows);
  // An answer in JSON is a text.
  EXPECT_EQ(shown(R"({"prompt": "a", "completion": "[{\"name\": \"f\"}]"})"),
            "a{[{\"name\": \"f\"}]</s>}");
  EXPECT_TRUE(contains(error(R"({"messages": "[{'role': 'user', 'content': 'a'}]"})"),
                       "to be a list of messages, or its JSON as text"));
  map({"messages=said", "messages.content=text"}, {"customer=user"});
  EXPECT_EQ(shown(R"({"said": "[{\"role\": \"customer\", \"text\": \"a\"}, )"
                  R"({\"role\": \"assistant\", \"text\": \"b\"}]"})"),
            shows);
}

TEST_F(PublicSets, NamesMayHaveCapitals) {
  EXPECT_EQ(shown(R"({"Question": "a", "Answer": "b"})"), "[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"PROMPT": "a", "Completion": "b", "Id": 3})"), "a{b</s>}");
  EXPECT_EQ(shown(R"({"Conversation": [{"Human": "a", "Assistant": "b"}]})"),
            "[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(unused(R"({"text": "a", "Prompt": "x", "Score": 1})"),
            "'Prompt' (1 record), 'Score' (1 record)");
  EXPECT_TRUE(contains(error(R"({"Frage": "a", "Answer": "b"})"), "found: Answer, Frage"));
  EXPECT_TRUE(contains(error(R"({"Question": "a", "QUESTION": "c", "Answer": "b"})"), "found: "));
  options_.ignored_fields = {"Notes"};
  EXPECT_EQ(load(R"({"Question": "a", "Answer": "b", "Notes": "c"})").audit.unmet, Items{});
}

// xlam: what the assistant may call.
TEST_F(PublicSets, ToolsMakeAConversationOfTexts) {
  use_template(
      "{% if tools %}[tools]{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
      "{{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}");
  const std::string pair = R"({"prompt": "a", "completion": "b", "tools": )";
  for (const char* tools : {R"([{"name": "f"}])", R"("[{\"name\": \"f\"}]")", R"({"name": "f"})"})
    EXPECT_EQ(shown(pair + tools + "}"), "[tools][{\"name\": \"f\"}][user]a</s>[assistant]{b</s>}")
        << tools;
  for (const char* none : {"null", "[]", R"("")", R"("[]")", R"(" [ ] ")"})
    EXPECT_EQ(shown(pair + none + "}"), "a{b</s>}") << none;
  EXPECT_EQ(load(pair + R"([{"name": "f"}]})").audit.chat_field, "tools");
  ask_for(RecordForm::preference);
  EXPECT_TRUE(contains(
      shown(R"({"prompt": "a", "chosen": "b", "rejected": "c", "tools": [{"name": "f"}]})"),
      "[tools]"));
}

// HelpSteer3: the answers to a conversation are texts.
TEST_F(PublicSets, AnAnswerToMessagesMayBeAText) {
  const std::string prompt = R"({"prompt": [{"role": "user", "content": "a"},)"
                             R"({"role": "assistant", "content": "b"},)"
                             R"({"role": "user", "content": "c"}], )";
  ask_for(RecordForm::preference);
  const std::string pair = prompt + R"("chosen": "d", "rejected": "e"})";
  EXPECT_EQ(shown(pair), "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}");
  EXPECT_EQ(shown(pair, 1), "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{e</s>}");
  EXPECT_TRUE(contains(error(prompt + R"("chosen": "d", "rejected": ""})"), "empty"));
  ask_for(RecordForm::unpaired);
  const std::string labelled = prompt + R"("completion": "d", "label": true})";
  EXPECT_EQ(shown(labelled + "\n" + labelled),
            "[user]a</s>[assistant]b</s>[user]c</s>[assistant]{d</s>}");
}

// BoolQ: the answers are true and false.
TEST_F(PublicSets, ATemplateIsAText) {
  map({"prompt={question}", "completion={answer}"});
  EXPECT_EQ(shown(R"({"question": "a", "answer": true})"), "a{true</s>}");
  EXPECT_EQ(shown(R"({"question": 3, "answer": 1.5})"), "3{1.5</s>}");
  EXPECT_TRUE(contains(error(R"({"question": "a", "answer": null})"), "is empty"));
  EXPECT_TRUE(contains(error(R"({"question": "a", "answer": ["b"]})"),
                       "'answer' is a list, which the text that fields makes for 'completion' "
                       "cannot hold"));
  map({"prompt=question", "completion=answer"});
  EXPECT_TRUE(contains(error(R"({"question": "a", "answer": true})"),
                       "expected the field 'completion' to be a string, found boolean"));
}

// hh-rlhf: a transcript that ends where the answer should begin.
TEST_F(PublicSets, AnAnswerIsEmptyAfterTheMarkOfItsTurn) {
  ask_for(RecordForm::preference);
  const std::string good = R"({"chosen": "\n\nHuman: a\n\nAssistant: b",)"
                           R"("rejected": "\n\nHuman: a\n\nAssistant: c"})";
  for (const char* end : {"", " ", "\\n"}) {
    for (const bool is_chosen : {false, true}) {
      const std::string mark = std::string(R"("\n\nHuman: a\n\nAssistant:)") + end + "\"";
      const std::string full = R"("\n\nHuman: a\n\nAssistant:)" + std::string(end) + "b\"";
      const std::string bad = fmt::format(R"({{"chosen": {}, "rejected": {}}})",
                                          is_chosen ? mark : full, is_chosen ? full : mark);
      EXPECT_TRUE(contains(audit(good, bad).bad_told, is_chosen
                                                          ? "the answer ('chosen') is empty"
                                                          : "the answer ('rejected') is empty"))
          << bad;
    }
  }
  EXPECT_EQ(error(R"({"chosen": "Water is wet", "rejected": "Water is wet and cold"})"), "");
}

}  // namespace
}  // namespace snug::text
