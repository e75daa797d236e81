// What a message says twice, in parts, or in the fields of other tools.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "field_data.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;
using Ids = std::vector<int32_t>;

class MessageData : public FieldData {};

std::string chat_of(const std::string& answer, const std::string& question = "") {
  return R"({"messages": [{"role": "user", "content": "a")" + question +
         R"(}, {"role": "assistant", )" + answer + "}]}\n";
}

TEST_F(MessageData, PartsHaveNoSayInWhatIsLearned) {
  const auto part = [](const std::string& field) {
    return chat_of(R"("content": [{"type": "text", "text": "b", )" + field +
                   R"(}, {"type": "text", "text": "c"}])");
  };
  for (const char* field : {R"("train": false)", R"("weight": 0)", R"("masked": true)",
                            R"("loss": 0.5)", R"("token_weights": [0, 1])"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    const std::string message = error(part(field));
    EXPECT_TRUE(contains(message, "message 2: the field '" + name + "'")) << message;
    EXPECT_TRUE(contains(message, "ignore_fields=" + name)) << message;
    options_.ignored_fields = {name};
    EXPECT_EQ(error(part(field)), "");
    options_.ignored_fields.clear();
  }
  EXPECT_TRUE(contains(error(part(R"("train": false)")), "let it stand on the message"));
  EXPECT_EQ(shown(part(R"("train": true)")), "[user]a</s>[assistant]{b\nc</s>}");
  EXPECT_EQ(unused(part(R"("mood": "glad")")), "'mood' (1 record)");
  EXPECT_EQ(unused(part(R"("cache_control": {"type": "ephemeral"}, "x": null)")), "");
  EXPECT_TRUE(contains(error(part(R"("image": "a.png")")), "the field 'image' stands in a part"));
}

// What other tools keep next to the text of a part is named; torchtune calls the text 'content'.
TEST_F(MessageData, FieldsOfPartsAreNamed) {
  EXPECT_EQ(unused(chat_of(R"("content": [{"type": "text", "text": "b", "citations": [{"x": 1}],)"
                           R"("annotations": ["c"]}])")),
            "'citations' (1 record), 'annotations' (1 record)");
  EXPECT_EQ(unused(chat_of(R"("content": [{"type": "text", "text": "b", "citations": []}])")), "");
  for (const char* part : {R"({"type": "text", "content": "b"})", R"({"content": "b"})"})
    EXPECT_EQ(shown(chat_of(fmt::format(R"("content": [{}])", part))),
              "[user]a</s>[assistant]{b</s>}");
  EXPECT_TRUE(
      contains(error(chat_of(R"("content": [{"type": "text", "content": "b", "train": false}])")),
               "the field 'train' stands in a part"));
}

// Bedrock's and Anthropic's form.
TEST_F(MessageData, ASystemMessageMayBeParts) {
  const std::string turns = R"("messages": [{"role": "user", "content": [{"text": "a"}]},)"
                            R"({"role": "assistant", "content": [{"text": "b"}]}]})";
  for (const char* system : {R"([{"text": "s"}, {"type": "text", "text": "t"}])", R"(["s", "t"])"})
    EXPECT_EQ(shown(fmt::format(R"({{"system": {}, )", system) + turns),
              "[system]s\nt</s>[user]a</s>[assistant]{b</s>}");
  EXPECT_EQ(shown(R"({"system": [], )" + turns), "[user]a</s>[assistant]{b</s>}");
  for (const char* wrong : {R"([{"image": "s"}])", "[3]", "3"})
    EXPECT_TRUE(contains(error(fmt::format(R"({{"system": {}, )", wrong) + turns),
                         "expected the field 'system' to be a"));
}

TEST_F(MessageData, PartsThatSayNothingAreAnEmptyAnswer) {
  for (const char* parts :
       {R"([{"type": "text", "text": ""}])", R"([{"text": " "}, {"text": ""}])", R"([""])", "[]"})
    EXPECT_TRUE(contains(error(chat_of(fmt::format(R"("content": {})", parts))),
                         "message 2: the assistant's text is empty"))
        << parts;
}

TEST_F(MessageData, APartHasOneText) {
  EXPECT_EQ(shown(chat_of(R"("content": [{"type": "text", "value": "b"}])")),
            "[user]a</s>[assistant]{b</s>}");
  for (const char* other : {"content", "value", "thinking", "role"})
    EXPECT_EQ(unused(chat_of(fmt::format(
                  R"("content": [{{"type": "text", "text": "b", "{}": "c"}}])", other))),
              fmt::format("'{}' (1 record)", other));
}

TEST_F(MessageData, FieldsOfCallsAreNamedOrRefused) {
  use_template(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}"
      "<{{ c.function.name }}{{ c.function.arguments | tojson }}>{% endfor %}</s>{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  const auto call = [](const std::string& outside, const std::string& inside) {
    return chat_of(R"("content": "b", "tool_calls": [{"id": "1", "type": "function", "function": )"
                   R"({"name": "f", "arguments": {})" +
                   inside + "}" + outside + "}]");
  };
  EXPECT_EQ(unused(call("", "")), "");
  EXPECT_EQ(unused(call(R"(, "weight": 1)", "")), "");
  EXPECT_EQ(unused(call(R"(, "result": "5")", R"(, "output": "6")")),
            "'output' (1 record), 'result' (1 record)");
  for (const std::string& record : {call(R"(, "weight": 0)", ""), call("", R"(, "train": false)")})
    EXPECT_TRUE(contains(error(record), "stands in a call and says something else"));
}

TEST_F(MessageData, CallsUnderAnotherNameAreRefused) {
  for (const char* name : {"tool_call", "function_calls", "toolCalls", "tool_uses"})
    EXPECT_TRUE(
        contains(error(chat_of(fmt::format(R"("content": "b", "{}": [{{"name": "f"}}])", name))),
                 fmt::format("message 2: the field '{}' holds calls under a name", name)));
}

TEST_F(MessageData, AFunctionCallIsACall) {
  use_template(
      "{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "<{{ c.function.name }}>{{ c.function.arguments | tojson }}{% endfor %}</s>{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  for (const char* content : {"null", "\"b\""})
    for (const char* calls : {"", R"(, "tool_calls": null)", R"(, "tool_calls": [])"})
      EXPECT_EQ(shown(chat_of(fmt::format(
                    R"("content": {}, "function_call": {{"name": "f", "arguments": "{{}}"}}{})",
                    content, calls))),
                fmt::format("[user]a</s>[assistant]{{{}<f>{{}}</s>}}", *content == 'n' ? "" : "b"));
  EXPECT_TRUE(contains(error(chat_of(R"("content": "b", "function_call": {"name": "f"},)"
                                     R"("tool_calls": [{"function": {"name": "g"}}])")),
                       "'tool_calls' and 'function_call'"));
  EXPECT_TRUE(contains(error(chat_of(R"("content": "b", "function_call": [3])")),
                       "message 2: expected a call to be an object"));
}

TEST_F(MessageData, ARefusalIsNamed) {
  for (const char* answer : {R"("content": "b", "refusal": "no")", R"("refusal": "no")",
                             R"("content": null, "refusal": "no")"})
    EXPECT_TRUE(contains(error(chat_of(answer)), "message 2: the field 'refusal' holds what"));
  EXPECT_EQ(shown(chat_of(R"("content": "b", "refusal": null)")), "[user]a</s>[assistant]{b</s>}");
}

TEST_F(MessageData, SaysOneThing) {
  EXPECT_TRUE(contains(error(chat_of(R"("content": "b", "value": "c")")),
                       "message 2: 'content' and 'value' are there"));
  EXPECT_TRUE(contains(error(chat_of(R"("content": "b")", R"(, "from": "gpt")")),
                       "message 1: 'role' and 'from' are there"));
  for (const char* same : {R"("content": "b", "value": "b", "from": "gpt")",
                           R"("content": null, "value": "b")", R"("content": "b", "from": "Bob")"})
    EXPECT_EQ(shown(chat_of(same)), "[user]a</s>[assistant]{b</s>}") << same;
  EXPECT_EQ(unused(chat_of(R"("content": "b", "from": "Bob")")), "'from' (1 record)");
  for (const char* wrong : {"5", "true", "{}"})
    EXPECT_TRUE(contains(error(chat_of(fmt::format(R"("content": {})", wrong))),
                         "message 2: expected 'content' to be a text or a list of parts"));
}

TEST_F(MessageData, PairsHoldTheirPromptOnce) {
  ask_for(RecordForm::preference);
  const std::string user = R"({"role": "user", "content": "a"})";
  const auto answer = [](const char* text) {
    return fmt::format(R"({{"role": "assistant", "content": "{}"}})", text);
  };
  const auto pair = [](const std::string& prompt, const std::string& chosen,
                       const std::string& rejected) {
    return fmt::format(R"({{"prompt": {}, "chosen": [{}], "rejected": [{}]}})", prompt, chosen,
                       rejected);
  };
  const std::string prompt = "[" + user + "]";
  for (const std::string& own : {user + ", ", std::string()})
    EXPECT_EQ(shown(pair(prompt, own + answer("b"), own + answer("c")), 1),
              "[user]a</s>[assistant]{c</s>}");
  EXPECT_TRUE(contains(error(pair(prompt, user + ", " + answer("b"), answer("c"))),
                       "only 'chosen' begins with the messages of the prompt"));
  const std::string system = R"({"role": "system", "content": "s"}, )";
  EXPECT_TRUE(contains(
      error(pair("[" + system + user + "]", user + ", " + answer("b"), user + ", " + answer("c"))),
      "'chosen' repeats a message of the user's"));
  EXPECT_TRUE(contains(error(pair("\"a\"", "\"b\"", "\"c\"")), "three lists of messages"));
}

// A completion that repeats its prompt, as answers of pairs may.
TEST_F(MessageData, CompletionsHoldTheirPromptOnce) {
  const std::string user = R"({"role": "user", "content": "a"})";
  const std::string answer = R"({"role": "assistant", "content": "b"})";
  const auto record = [](const std::string& prompt, const std::string& completion) {
    return fmt::format(R"({{"prompt": {}, "completion": {}}})", prompt, completion);
  };
  for (const std::string& prompt : {"[" + user + "]", user, std::string("\"a\"")})
    for (const std::string& completion :
         {"[" + user + ", " + answer + "]", "[" + answer + "]", answer})
      EXPECT_EQ(shown(record(prompt, completion)), "[user]a</s>[assistant]{b</s>}")
          << prompt << completion;
  // What the prompt's assistant said stays the prompt's.
  const std::string before = answer + ", " + user;
  EXPECT_EQ(shown(record("[" + user + ", " + before + "]",
                         "[" + user + ", " + before + ", " + answer + "]")),
            "[user]a</s>[assistant]b</s>[user]a</s>[assistant]{b</s>}");
  const std::string system = R"({"role": "system", "content": "s"}, )";
  EXPECT_TRUE(contains(error(record("[" + system + user + "]", "[" + user + ", " + answer + "]")),
                       "'completion' repeats a message of the user's from the prompt"));
}

TEST_F(MessageData, AnObjectOverSeveralLinesIsOneReason) {
  const std::string message = error("{\n  \"text\": \"a\",\n  \"id\": 1\n}\n");
  EXPECT_TRUE(contains(message, "data.jsonl:1: it begins with a JSON object over several lines"));
  EXPECT_FALSE(contains(message, "broken JSON"));
}

TEST_F(MessageData, WhatIsIgnoredIsAsIfItWereNotThere) {
  for (const char* key : {"role", "content"}) {
    options_.ignored_fields = {key};
    const std::string message = error(chat_of(R"("content": "b")"));
    EXPECT_TRUE(contains(message, fmt::format("message 1: expected the strings 'role' and 'content'"
                                              "; ignore_fields leaves '{}' out",
                                              key)))
        << message;
  }
  options_.ignored_fields = {"content"};
  EXPECT_EQ(shown(R"({"messages": [{"role": "user", "content": "x", "value": "a"},)"
                  R"({"role": "assistant", "value": "b"}]})"
                  "\n"),
            "[user]a</s>[assistant]{b</s>}");
  options_.ignored_fields = {"value"};
  EXPECT_TRUE(contains(error(R"({"conversations": [{"from": "human", "value": "a"},)"
                             R"({"from": "gpt", "value": "b"}]})"
                             "\n"),
                       "ignore_fields leaves 'value' out"));
}

}  // namespace
}  // namespace snug::text
