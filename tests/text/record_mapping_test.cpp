// Records whose fields have other names than Snug's.
#include "text/record/record_mapping.h"

#include <gtest/gtest.h>

#include <optional>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/record/record_form.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;
using Items = std::vector<std::string>;

Record parsed(const std::string& text, const Items& fields, const Items& roles = {},
              std::optional<RecordForm> wanted = std::nullopt) {
  const RecordMapping mapping(fields, roles);
  RawRecord raw;
  raw.number = 1;
  raw.line = 1;
  raw.text = text;
  return parse_record(raw, "data.jsonl", {.form = wanted, .mapping = &mapping});
}

std::string error_of(const std::string& text, const Items& fields, const Items& roles = {}) {
  return message_of<UserError>([&] { parsed(text, fields, roles); });
}

TEST(RecordMapping, TakesAFieldForAnother) {
  const Record record = parsed(R"({"q": "Why?", "a": "Because.", "id": 3, "note": "x"})",
                               {"prompt=q", "completion=a"});
  EXPECT_EQ(record.form, RecordForm::prompt_completion);
  EXPECT_EQ(record.prompt, "Why?");
  EXPECT_EQ(record.answer, "Because.");
  EXPECT_EQ(record.unused, Items{"note"});  // what was taken is used
}

// As in the seed tasks of Stanford Alpaca.
TEST(RecordMapping, TakesWhatLiesAtAPath) {
  const std::string text =
      R"({"instruction": "Add.", "instances": [{"input": "1 1", "output": "2"}], "a.b": "dotted"})";
  const Record record = parsed(text, {"input=instances.0.input", "output=instances.0.output"});
  EXPECT_EQ(record.form, RecordForm::alpaca);
  EXPECT_TRUE(contains(record.prompt, "### Input:\n1 1\n"));
  EXPECT_EQ(record.answer, "2");
  EXPECT_EQ(record.unused, Items{"a.b"});
  EXPECT_EQ(parsed(text, {"text=a.b"}).answer, "dotted");
}

TEST(RecordMapping, FillsATemplate) {
  const Record record =
      parsed(R"({"title": "T", "body": {"text": "B"}, "n": 3, "none": null, "answer": "A"})",
             {"prompt={title} ({n}): {body.text}{none} {{x}}", "completion=answer"});
  EXPECT_EQ(record.prompt, "T (3): B {x}");
  EXPECT_EQ(record.answer, "A");
  EXPECT_TRUE(record.unused.empty());
}

TEST(RecordMapping, RenamesFieldsAndRolesOfMessages) {
  const Record record = parsed(
      R"({"dialog": [{"speaker": "bot manager", "say": "Be kind."}, {"speaker": "customer", "say": "Hi"},
          {"speaker": "agent", "say": "Hello", "n": 1.5}]})",
      {"messages=dialog", "messages.role=speaker", "messages.content=say"},
      {"bot manager=system", "customer=user", "agent=assistant"});
  ASSERT_EQ(record.conversation.messages.size(), 3U);
  EXPECT_EQ(record.conversation.messages[0].role(), "system");
  EXPECT_EQ(record.conversation.messages[1].role(), "user");
  EXPECT_EQ(record.conversation.messages[2].role(), "assistant");
  EXPECT_EQ(record.conversation.messages[2].content(), "Hello");
}

// A form that the mapping makes counts, whatever else a record has.
// A shell and single quotes leave a backslash as it is.
TEST(RecordMapping, WritesLineBreaksInATemplate) {
  EXPECT_EQ(parsed(R"({"q": "a", "b": "c"})", {R"(prompt=Q:\t{q}\n)", "completion=b"}).prompt,
            "Q:\ta\n");
}

TEST(RecordMapping, RefusesAMessageThatWouldBeReadInAnotherWay) {
  const std::string text =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  EXPECT_TRUE(contains(error_of(text, {"messages.role=rolle"}), "has no 'rolle'"));
  EXPECT_TRUE(contains(error_of(text, {"messages.content=text"}), "has no 'text'"));
}

TEST(RecordMapping, RefusesARecordWhosePromptIsLeftOpen) {
  EXPECT_TRUE(contains(error_of(R"({"prompt": "a", "q": "b", "a": "c"})", {"input=q", "output=a"}),
                       "leave open what is its prompt"));
}

TEST(RecordMapping, SaysWhichFormCounts) {
  const std::string text =
      R"({"messages": [{"role": "user", "content": "x"}], "q": "Why?", "a": "Because."})";
  const Record record = parsed(text, {"prompt=q", "completion=a"});
  EXPECT_EQ(record.form, RecordForm::prompt_completion);
  EXPECT_EQ(record.unused, Items{"messages"});
}

TEST(RecordMapping, NamesWhatARecordLacks) {
  EXPECT_TRUE(
      contains(error_of(R"({"a": "b"})", {"prompt=q", "completion=a"}),
               "data.jsonl:1: record 1: has no 'q', which fields takes for 'prompt'; found: a"));
  EXPECT_TRUE(contains(error_of(R"({"q": ["x"], "a": "b"})", {"prompt={q}.", "completion=a"}),
                       "'q' is a list, which the text that fields makes for 'prompt' cannot hold"));
  EXPECT_TRUE(contains(error_of(R"({"q": "x)", {"prompt=q"}), "broken JSON in record 1"));
  EXPECT_TRUE(contains(error_of("[]", {"prompt=q"}), "expected an object"));
}

// What stands next to what is taken is judged, or named.
TEST(RecordMapping, LeavesWhatItDoesNotTake) {
  const Items both{"prompt=x.q", "completion=x.a"};
  EXPECT_EQ(parsed(R"({"x": {"q": "Q", "a": "A", "more": "M"}})", both).unused, Items{"x"});
  EXPECT_TRUE(parsed(R"({"x": {"q": "Q", "a": "A"}})", both).unused.empty());
  EXPECT_TRUE(
      contains(error_of(R"({"x": {"q": "Q", "a": "A", "train": false}})", both), "next to 'x.a'"));
  EXPECT_EQ(parsed(R"({"q": "Q", "a": ["x", "y"]})", {"prompt=q", "completion=a.0"}).unused,
            Items{"a"});
  EXPECT_TRUE(parsed(R"({"q": "Q", "a": ["x"]})", {"prompt=q", "completion=a.0"}).unused.empty());
  // A field of the data under the name that another one gets.
  EXPECT_EQ(parsed(R"({"prompt": "own", "q": "Q", "a": "A"})", {"prompt=q", "completion=a"}).unused,
            Items{"prompt (of the data)"});
}

TEST(RecordMapping, TakesNoTemplateWithoutAWordOfTheData) {
  EXPECT_TRUE(contains(error_of(R"({"q": "Q", "a": null})", {"prompt=q", "completion=X {a}"}),
                       "the answer ('completion') is empty"));
  EXPECT_EQ(
      parsed(R"({"q": "Q", "a": null, "b": "B"})", {"prompt=q", "completion=X {a}{b}"}).answer,
      "X B");
}

// The first whose fields all say something, else the last.
TEST(RecordMapping, TakesTheFirstThatSaysSomething) {
  const Items fields{R"(prompt=["[I] {q} {c} [/I]", "[I] {q} [/I]"])", "completion=a"};
  EXPECT_EQ(parsed(R"({"q": "Q", "c": "C", "a": "A"})", fields).prompt, "[I] Q C [/I]");
  EXPECT_EQ(parsed(R"({"q": "Q", "c": "", "a": "A"})", fields).prompt, "[I] Q [/I]");
  EXPECT_EQ(parsed(R"({"q": "Q", "c": null, "a": "A"})", fields).prompt, "[I] Q [/I]");
  EXPECT_EQ(parsed(R"({"q": "Q", "a": "A"})", fields).prompt, "[I] Q [/I]");
  EXPECT_TRUE(contains(error_of(R"({"c": "C", "a": "A"})", fields), "has no 'q', which fields"));
  // What is not taken is named.
  const Record record =
      parsed(R"({"q": "Q", "a": "A", "b": "B"})", {"prompt=q", R"(completion=["a", "b"])"});
  EXPECT_EQ(record.answer, "A");
  EXPECT_EQ(record.unused, Items{"b"});
}

TEST(RecordMapping, TakesAFieldThatARecordMayLack) {
  const Items fields{"question=q", "completion=a", R"(system=["s", ""])"};
  const Record with = parsed(R"({"q": "Q", "a": "A", "s": "Be kind."})", fields);
  ASSERT_EQ(with.conversation.messages.size(), 3U);
  EXPECT_EQ(with.conversation.messages[0].content(), "Be kind.");
  for (const char* without : {R"({"q": "Q", "a": "A"})", R"({"q": "Q", "a": "A", "s": null})"})
    EXPECT_EQ(parsed(without, fields).conversation.messages.size(), 2U) << without;
}

// A question is asked in a conversation, whatever the data call it.
TEST(RecordMapping, MakesAQuestionOfAnInstruction) {
  const Items fields{R"(question=["{instruction}\n{input}", "instruction"])", "completion=output"};
  const Record record = parsed(R"({"instruction": "I", "input": "N", "output": "O"})", fields);
  ASSERT_EQ(record.conversation.messages.size(), 2U);
  EXPECT_EQ(record.conversation.messages[0].content(), "I\nN");
  EXPECT_EQ(
      parsed(R"({"instruction": "I", "output": "O"})", fields).conversation.messages[0].content(),
      "I");
  const Record pair = parsed(R"({"instruction": "I", "chosen": "C", "rejected": "R"})",
                             {"question=instruction"}, {}, RecordForm::preference);
  EXPECT_EQ(pair.conversation.messages.size(), 2U);
  EXPECT_EQ(pair.prompt_messages, 1U);
  const Record unpaired =
      parsed(R"({"instruction": "I", "output": "O", "good": true})",
             {"question=instruction", "completion=output", "label=good"}, {}, RecordForm::unpaired);
  EXPECT_TRUE(unpaired.is_desirable);
  EXPECT_EQ(unpaired.conversation.messages.size(), 2U);
}

TEST(RecordMapping, RefusesWhatSnugDoesNotRead) {
  const auto error = [](const Items& fields, const Items& roles = {}) {
    return message_of<UserError>([&] { RecordMapping(fields, roles); });
  };
  EXPECT_TRUE(
      contains(error({"promt=q"}), "'promt' is none that Snug reads (did you mean 'prompt'?)"));
  EXPECT_TRUE(contains(error({"prompt"}), "expected NAME=VALUE"));
  EXPECT_TRUE(contains(error({"text=\xFF{a}"}), "is not valid UTF-8"));
  EXPECT_TRUE(contains(error({"prompt=a", "prompt=b"}), "'prompt' is given twice"));
  for (const char* list : {R"(prompt=["", "a"])", R"(prompt=["a")", R"(prompt=["a", 1])"})
    EXPECT_TRUE(contains(error({list}), "expected a list of texts such as")) << list;
  EXPECT_TRUE(contains(error({"chosen=a", "rejected=a"}), "'chosen' and 'rejected' both take 'a'"));
  EXPECT_TRUE(contains(error({"prompt={a"}), "a brace is not closed"));
  EXPECT_TRUE(contains(error({"prompt={{a}}"}), "no field stands in it"));
  EXPECT_TRUE(contains(error({"frage=prompt"}), "{prompt: frage} takes the field frage"));
  EXPECT_TRUE(contains(error({"prompt=a}"}), "a brace is closed that is not open"));
  EXPECT_TRUE(contains(error({"prompt=a{}"}), "no field stands in its braces"));
  EXPECT_TRUE(contains(error({"messages.speaker=role"}), "'speaker' is none that Snug reads"));
  EXPECT_TRUE(contains(error({}, {"bot=asistant"}), "did you mean 'assistant'?"));
  EXPECT_TRUE(contains(error({}, {"a=user", "a=tool"}), "'a' is given twice"));
}

TEST(RecordMapping, SaysWhichFieldsItTakes) {
  const RecordMapping mapping(std::array<std::string, 2>{"prompt=a.b", "completion={c}: {d.0.e}"},
                              {});
  for (const char* taken : {"a", "a.b", "c", "d"}) EXPECT_TRUE(mapping.takes(taken)) << taken;
  for (const char* left : {"b", "a.", "prompt", "e", ""}) EXPECT_FALSE(mapping.takes(left)) << left;
}

TEST(RecordMapping, ReadsWellKnownPairs) {
  RawRecord raw;
  raw.text = R"({"question": "Q", "response_j": "good", "response_k": "bad"})";
  const Record record = parse_record(raw, "data.jsonl", {.form = RecordForm::preference});
  EXPECT_EQ(record.conversation.messages.back().content(), "good");
  EXPECT_EQ(record.rejected_conversation.messages.back().content(), "bad");
}

}  // namespace
}  // namespace snug::text
