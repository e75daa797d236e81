// What a chat template leaves out of names, variables, tools without a name, and the middle of
// texts; the counts that users are told.
#include "text/chat/unwritten.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "../base/temporary_folder.h"
#include "field_data.h"
#include "golden_files.h"
#include "text/chat/chat_template.h"
#include "text/chat/unwritten_counts.h"
#include "text/record/record_form.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using testing::contains;
using Names = std::vector<std::string>;

std::string each_message(const std::string& body, const std::string& before = "") {
  return before + "{% for m in messages %}<{{ m.role }}>" + body + "{{ eos_token }}{% endfor %}";
}

// "2 content (a part of)" for what the template leaves out of a record of messages.
Names unwritten_of(const std::string& source, const std::string& record) {
  TinyTokenizer tiny;
  tiny.config["chat_template"] = source;
  const Tokenizer tokenizer = tiny.make();
  RawRecord raw;
  raw.text = record;
  const Conversation conversation =
      parse_record(raw, "data.jsonl", {.form = RecordForm::messages}).conversation;
  Names names;
  for (const Unwritten& one : ChatTemplate("", tokenizer).unwritten(conversation))
    names.push_back(fmt::format("{} {}{}{}", one.message, one.field, one.is_all ? "!" : "",
                                one.extent.empty() ? "" : " (" + one.extent + ")"));
  return names;
}

std::string chat_with(const std::string& in_question, const std::string& next_to = "") {
  return R"({"messages": [{"role": "user", )" + in_question +
         R"(}, {"role": "assistant", "content": "a"}])" + next_to + "}";
}
std::string asked(const std::string& text) { return chat_with(R"("content": ")" + text + '"'); }

TEST(UnwrittenNames, OfMessages) {
  const std::string record = chat_with(R"("content": "q", "name": "Ann")");
  EXPECT_EQ(unwritten_of(each_message("{{ m.content }}"), record), Names{"1 name"});
  EXPECT_EQ(unwritten_of(each_message("{{ m.name }}{{ m.content }}"), record), Names{});
  EXPECT_EQ(
      unwritten_of(each_message("{% if m.name != 'Bob' %}{{ m.content }}{% endif %}"), record),
      Names{"1 name"});
  // A name is not what somebody says.
  const std::string named_answer = R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "name": "Bot", "content": "a"}]})";
  EXPECT_EQ(unwritten_of("{% for m in messages %}{{ m.name }}{% endfor %}", named_answer),
            (Names{"1 content!", "2 content!"}));
}

TEST(UnwrittenNames, OfVariables) {
  const auto with = [](const std::string& variables) {
    return chat_with(R"("content": "q")", R"(, "chat_template_kwargs": )" + variables);
  };
  const std::string unread = each_message("{{ m.content }}");
  for (const char* value : {"true", "false", "3", "0.5", R"("x")", "[1]", "{}", "null"})
    EXPECT_EQ(unwritten_of(unread, with(fmt::format(R"({{"mode": {}}})", value))),
              Names{"0 chat_template_kwargs.mode"})
        << value;
  const std::string read = each_message("{{ m.content }}", "{% if mode %}[m]{% endif %}");
  for (const char* value : {"true", "false", "3", R"("x")", "[1]"})
    EXPECT_EQ(unwritten_of(read, with(fmt::format(R"({{"mode": {}}})", value))), Names{}) << value;
  // A value that is the template's own all the same says something.
  EXPECT_EQ(unwritten_of(each_message("{{ m.content }}", "[{{ effort | default('low') }}]"),
                         with(R"({"effort": "low"})")),
            Names{});
  // These are always the conversation's.
  EXPECT_EQ(unwritten_of("{{ messages | length }}" + unread, with(R"({"messages": []})")),
            Names{"0 chat_template_kwargs.messages"});
}

TEST(UnwrittenNames, DocumentsAreAVariable) {
  EXPECT_EQ(unwritten_of(each_message("{{ m.content }}",
                                      "{% for d in documents or [] %}{{ d.text }}{% endfor %}"),
                         chat_with(R"("content": "q")",
                                   R"(, "chat_template_kwargs": {"documents": [{"text": "d"}]})")),
            Names{});
}

TEST(UnwrittenNames, ToolsWithoutAName) {
  const std::string ignores = each_message("{{ m.content }}");
  const std::string names = each_message(
      "{{ m.content }}", "{% for t in tools or [] %}{{ t.function.name or '' }}{% endfor %}");
  const std::string dumps = each_message("{{ m.content }}", "{{ tools | tojson }}");
  for (const char* tools :
       {R"([{"type": "function"}])", "[{}]", R"([{"type": "function", "function": {}}])",
        R"([{"type": "function", "function": {"name": ""}}])", R"([{"type": "web_search"}])"}) {
    const std::string record =
        chat_with(R"("content": "q")", fmt::format(R"(, "tools": {})", tools));
    EXPECT_EQ(unwritten_of(ignores, record), Names{"0 tools"}) << tools;
    EXPECT_EQ(unwritten_of(dumps, record), Names{}) << tools;
  }
  EXPECT_EQ(unwritten_of(names, chat_with(R"("content": "q")",
                                          R"(, "tools": [{"name": "f", "function": {}},
                                                         {"function": {"name": "g"}}])")),
            Names{"0 tools"});
  EXPECT_EQ(unwritten_of(ignores, chat_with(R"("content": "q", "tools": [{"name": "f"}])")),
            Names{"1 tools"});
}

const std::string kWithTool = chat_with(R"("content": "q")", R"(, "tools": [{"type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object",
    "properties": {"p": {"type": "string", "description": "pd", "enum": ["e"], "default": "x"},
                   "o": {"type": "object", "properties": {"description": {"type": "integer",
                         "description": "od"}}}},
    "required": ["p"]}, "strict": true, "returns": {"type": "object", "description": "rd"}}}])");

TEST(UnwrittenNames, PartsOfTools) {
  const auto of = [&](const std::string& of_function) {
    return unwritten_of(each_message("{{ m.content }}",
                                     "{% for t in tools or [] %}"
                                     "{% set f = t.function %}{{ f.name }}" +
                                         of_function + "{% endfor %}"),
                        kWithTool);
  };
  EXPECT_EQ(of("{{ f | tojson }}"), Names{});
  EXPECT_EQ(of("{{ f | tojson(indent=2) }}"), Names{});
  EXPECT_EQ(of(""), (Names{"0 tools.description", "0 tools.parameters", "0 tools.strict",
                           "0 tools.returns"}));
  EXPECT_EQ(of("{{ f.description }}{{ f.parameters | tojson }}{% if f.strict %}!{% endif %}"),
            Names{"0 tools.returns"});
  EXPECT_EQ(of("{{ f.description }}{{ f.strict }}{{ f.returns }}{{ f.parameters.required }}"
               "{% for k, p in f.parameters.properties.items() %}{{ k }}"
               "{% if p.type == 'string' %}text{% endif %}{{ p.description or '' }}{% endfor %}"),
            (Names{"0 tools.parameters.properties.enum", "0 tools.parameters.properties.default",
                   "0 tools.parameters.properties.properties.type",
                   "0 tools.parameters.properties.properties.description"}));
}

// Without what is named jinja2 writes the same as with it.
TEST(UnwrittenNames, PartsOfToolsInPublishedTemplates) {
  const std::string folder = kSharedData + "chat-templates/llama.cpp-2025-02/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const std::string record = chat_with(R"("content": "q")", R"(, "tools": [{"type": "function",
      "function": {"name": "f", "description": "d", "parameters": {"type": "object",
      "properties": {"p": {"type": "string", "description": "pd", "enum": ["e"], "default": "x"}},
      "required": ["p"]}, "strict": true, "returns": {"type": "object", "description": "rd"}}}])");
  const Names few{"0 tools.strict", "0 tools.returns"};
  const Names more{"0 tools.parameters.properties.enum", "0 tools.parameters.properties.default",
                   "0 tools.strict", "0 tools.returns"};
  for (const auto& [file, expected] : std::vector<std::pair<std::string, Names>>{
           {"CohereForAI-c4ai-command-r-plus-tool_use", more},
           {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", few},
           {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", few},
           {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", few}})
    EXPECT_EQ(unwritten_of(contents_of(folder + file + ".jinja"), record), expected) << file;
}

TEST(UnwrittenMiddle, OfATextIsNamed) {
  for (const char* body :
       {"{{ m.content | replace('secret ', '') }}", "{{ m.content.split('secret ') | join }}",
        "{{ m.content.split('secret')[0] }}{{ m.content.split('secret')[-1] }}",
        "{{ m.content | replace('secret ', '') | upper }}", "{{ m.content[:4] + m.content[11:] }}"})
    EXPECT_EQ(unwritten_of(each_message(body), asked("The secret word is <x> & 'y'")),
              Names{"1 content (a part of)"})
        << body;
  // Escapes hide what is written of it; words between its own tell.
  EXPECT_EQ(unwritten_of(each_message("{% if '(' in m.content %}{{ (m.content.split('(')[0] + "
                                      "m.content.split(')')[-1]) | e }}{% else %}{{ m.content }}"
                                      "{% endif %}"),
                         asked("Tom & Ann (they are old friends) 'met' again")),
            Names{"1 content (a part of)"});
}

TEST(UnwrittenMiddle, WhatIsOnlyChangedIsNotNamed) {
  for (const char* body :
       {"{{ m.content | e }}", "{{ m.content | tojson }}", "{{ m.content | upper }}",
        "{{ m.content | trim }}", "{{ m.content | replace('  ', ' ') }}",
        "{{ m.content.split() | join('\n') }}", "{{ m.content | replace('secret', '[secret]') }}"})
    EXPECT_EQ(unwritten_of(each_message(body), asked(R"( The  secret \"word\" is <x> & 'y'\n)")),
              Names{})
        << body;
}

TEST(UnwrittenMiddle, OfPartsIsNamed) {
  const std::string record = chat_with(
      R"("content": [{"type": "text", "text": "one two three"}, {"type": "text", "text": "four"}])");
  const auto parts = [](const std::string& text) {
    return each_message(
        "{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}" +
        text + "{% endfor %}{% endif %}");
  };
  EXPECT_EQ(unwritten_of(parts("{{ p.text }}"), record), Names{});
  // As a text all of it is written.
  EXPECT_EQ(unwritten_of(parts("{% if loop.first %}{{ p.text }}{% endif %}"), record), Names{});
  EXPECT_EQ(unwritten_of(each_message("{{ m.content if m.role == 'assistant' else "
                                      "m.content[0].text }}"),
                         record),
            Names{"1 content"});
  EXPECT_EQ(unwritten_of(parts("{{ p.text | replace('two ', '') }}"), record),
            Names{"1 content (a part of)"});
}

// Of many that are left out and few that are written, too.
TEST(UnwrittenNames, OfManyMessages) {
  std::string messages;
  for (int i = 0; i < 30; ++i)
    messages +=
        fmt::format(R"({{"role": "user", "content": "q", "name": "{}"}},)", i == 7 ? "Ann" : "Bob");
  const std::string record =
      R"({"messages": [)" + messages + R"({"role": "assistant", "content": "a"}]})";
  Names expected;
  for (int i = 0; i < 30; ++i)
    if (i != 7) expected.push_back(fmt::format("{} name", i + 1));
  EXPECT_EQ(unwritten_of(each_message("{{ m.content }}{% if loop.index == 8 %}"
                                      "{{ m.name | upper }}{% endif %}"),
                         record),
            expected);
}

class UnwrittenData : public FieldData {};

TEST_F(UnwrittenData, IsToldWithTheRecordsOfIt) {
  const std::string records =
      chat_with(R"("content": "q", "name": "Ann")", R"(, "chat_template_kwargs": {"mode": 1})") +
      "\n" + chat_with(R"("content": "q", "name": "Bob")") + "\n";
  EXPECT_EQ(load(records).audit.unwritten.text(),
            "the chat template does not write 'chat_template_kwargs.mode' in 1 record (the first "
            "is 1), 'name' of user messages in 2 records (the first is 1)");
  UnwrittenCounts many;
  for (int64_t i = 1; i <= 100; ++i)
    many.add({{.field = fmt::format("chat_template_kwargs.{:03}", i)}}, i);
  EXPECT_TRUE(contains(many.text(), ", and others in 60 records"));
}

}  // namespace
}  // namespace snug::text
