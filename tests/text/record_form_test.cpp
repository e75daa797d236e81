// Which form a record is of, by its fields.
#include "text/record/record_form.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

Record parsed(const std::string& text, std::optional<RecordForm> wanted = std::nullopt) {
  RawRecord raw;
  raw.number = 1;
  raw.line = 1;
  raw.text = text;
  return parse_record(raw, "data.jsonl", {.form = wanted});
}

std::string error_of(const std::string& text) {
  return message_of<base::UserError>([&] { parsed(text); });
}

// As data sets of sequences to sequences name their fields.
TEST(RecordForm, InputAndTargetArePromptAndCompletion) {
  const std::string text = R"({"input": "Say a.", "target": "a", "id": 3})";
  for (const auto wanted :
       {std::optional<RecordForm>(), std::optional(RecordForm::prompt_completion)}) {
    const Record record = parsed(text, wanted);
    EXPECT_EQ(record.form, RecordForm::prompt_completion);
    EXPECT_EQ(record.prompt, "Say a.");
    EXPECT_EQ(record.answer, "a");
  }
  EXPECT_EQ(parsed(R"({"input": "", "target": "a"})").prompt, "");
}

TEST(RecordForm, InputAndTargetNextToAnotherFormAreLeftAlone) {
  const Record named = parsed(R"({"prompt": "p", "response": "r", "input": 1, "target": 2})");
  EXPECT_EQ(named.prompt, "p");
  EXPECT_EQ(named.answer, "r");
  EXPECT_EQ(parsed(R"({"instruction": "a", "input": "b", "output": "c", "target": 1})").form,
            RecordForm::alpaca);
  EXPECT_EQ(parsed(R"({"input_ids": [1, 2], "input": "b", "target": "c"})").form,
            RecordForm::tokens);
}

// The names of GSM8K, of LongForm, and of others.
TEST(RecordForm, APromptAndItsAnswerHaveManyNames) {
  for (const char* text :
       {R"({"question": "p", "answer": "a"})", R"({"query": "p", "answer": "a"})",
        R"({"question": "p", "answer": "short", "response": "a"})"}) {
    const Record record = parsed(text);
    EXPECT_EQ(record.form, RecordForm::prompt_completion) << text;
    ASSERT_EQ(record.conversation.messages.size(), 2U) << text;
    EXPECT_EQ(record.conversation.messages[0].content(), "p");
    EXPECT_EQ(record.conversation.messages[1].content(), "a");
  }
  for (const char* text :
       {R"({"input": "p", "output": "a"})", R"({"input": "p", "response": "a"})",
        R"({"prompt": "p", "answer": "a"})", R"({"prompt": "p", "output": "a"})"}) {
    const Record record = parsed(text);
    EXPECT_EQ(record.prompt, "p") << text;
    EXPECT_EQ(record.answer, "a") << text;
  }
  EXPECT_EQ(parsed(R"({"instruction": "p", "answer": "a"})").form, RecordForm::alpaca);
}

// What is asked about is a part of the question.
TEST(RecordForm, AQuestionMayHaveAContext) {
  const Record record = parsed(R"({"context": "c", "question": "q", "answer": "a"})");
  EXPECT_EQ(record.conversation.messages[0].content(), "q\nc");
  EXPECT_TRUE(record.unused.empty());
}

// An input next to a prompt may be a part of it.
TEST(RecordForm, APromptWithAnInputIsOfNoForm) {
  EXPECT_TRUE(testing::contains(error_of(R"({"prompt": "p", "input": "i", "output": "a"})"),
                                "fields={prompt: NAME"));
}

TEST(RecordForm, NamesWhatIsWrongWithInputAndTarget) {
  EXPECT_TRUE(testing::contains(error_of(R"({"input": "a", "target": 3})"), "'target'"));
  EXPECT_TRUE(testing::contains(error_of(R"({"input": 3, "target": "a"})"), "'input'"));
  EXPECT_TRUE(testing::contains(error_of(R"({"input": "a", "target": " "})"),
                                "the answer ('target') is empty"));
}

}  // namespace
}  // namespace snug::text
