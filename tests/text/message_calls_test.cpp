// Calls and tools as data sets write them: lists, single objects, their JSON as text, and a message
// for each call.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "field_data.h"

namespace snug::text {
namespace {

using testing::contains;

constexpr const char* kCallTemplate =
    "{% for m in messages %}[{{ m.role }}]{% for t in m.tools or [] %}({{ t.name }}){% endfor %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}{% set f = c.function or c %}"
    "<{{ f.name }}>{{ f.arguments | tojson }}{% endfor %}</s>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

class CallData : public FieldData {
 protected:
  CallData() { use_template(kCallTemplate); }
};

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string answer_with(const std::string& fields) {
  return R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", )" + fields +
         "}]}\n";
}

TEST_F(CallData, CallsMayBeTextOrStandAlone) {
  const std::string call = R"({"name": "f", "arguments": {"x": 1}})";
  const std::string nested = R"({"type": "function", "function": )" + call + "}";
  for (const std::string& one : {call, nested})
    for (const std::string& calls : {one, "[" + one + "]", quoted(one), quoted("[" + one + "]"),
                                     "[" + quoted(one) + "]", quoted("[" + quoted(one) + "]")})
      EXPECT_EQ(shown(answer_with(R"("content": "", "tool_calls": )" + calls)),
                "[user]a</s>[assistant]{<f>{\"x\": 1}</s>}")
          << calls;
  for (const char* nothing : {"null", "[]", "\"\"", "\" \"", "\"null\"", "\"[]\"", "{}"})
    EXPECT_EQ(shown(answer_with(fmt::format(R"("content": "b", "tool_calls": {})", nothing))),
              "[user]a</s>[assistant]{b</s>}")
        << nothing;
}

TEST_F(CallData, CallsThatAreNoneAreNamed) {
  EXPECT_TRUE(contains(error(answer_with(R"("content": "b", "tool_calls": "f of x")")),
                       "message 2: 'tool_calls' is text that is not JSON"));
  EXPECT_TRUE(contains(error(answer_with(R"("content": "b", "tool_calls": ["f of x"])")),
                       "message 2: 'tool_calls' is text that is not JSON"));
  for (const char* wrong : {"3", "[3]", "true", "\"3\"", R"("\"f\"")"})
    EXPECT_TRUE(
        contains(error(answer_with(fmt::format(R"("content": "b", "tool_calls": {})", wrong))),
                 "message 2: 'tool_calls': expected a list of calls"))
        << wrong;
}

TEST_F(CallData, WhatACallLacksIsNamedWhereTheTemplateFails) {
  const auto call = [](const char* fields) {
    return answer_with(fmt::format(R"("content": "", "tool_calls": [{{"function": {}}}])", fields));
  };
  EXPECT_TRUE(contains(error(call(R"({"name": "f"})")),
                       "message 2: call 1 of 'tool_calls' has no 'arguments'"));
  use_template(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] "
      "%}{{ '<' + c.function.name }}{% endfor %}</s>{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}");
  EXPECT_TRUE(contains(error(call(R"({"arguments": {}})")),
                       "message 2: call 1 of 'tool_calls' has no 'name'"));
  // A template that needs no arguments refuses nothing.
  EXPECT_EQ(shown(call(R"({"name": "f"})")), "[user]a</s>[assistant]{<f</s>}");
}

TEST_F(CallData, ToolsMayBeTexts) {
  const std::string tool = R"({"name": "f"})";
  const std::string turns =
      R"({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])";
  for (const std::string& tools :
       {"[" + tool + "]", tool, quoted(tool), quoted("[" + tool + "]"), "[" + quoted(tool) + "]"})
    EXPECT_EQ(shown(R"({"messages": [{"role": "system", "content": "s", "tools": )" + tools +
                    "}, " + turns + "}"),
              "[system](f)s</s>[user]a</s>[assistant]{b</s>}")
        << tools;
  EXPECT_TRUE(
      contains(error(R"({"messages": [{"role": "system", "content": "s", "tools": "f of x"}, )" +
                     turns + "}"),
               "message 1: 'tools' is text that is not JSON"));
  use_template(
      "{{ tools[0].name }}{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}");
  for (const std::string& tools : {"[" + tool + "]", tool, quoted(tool), "[" + quoted(tool) + "]"})
    EXPECT_EQ(shown(R"({"tools": )" + tools + R"(, "messages": [)" + turns + "}"),
              "f[user]a</s>[assistant]{b</s>}")
        << tools;
  EXPECT_TRUE(contains(error(R"({"tools": [3], "messages": [)" + turns + "}"),
                       "the field 'tools': expected a list of objects"));
}

std::string call_message(const char* name, const char* more = "") {
  return fmt::format(
      R"({{"role": "tool_call", "content": "{{\"name\": \"{}\", \"arguments\": {{}}}}"{}}})", name,
      more);
}

// As ms-swift joins them before its template is written.
TEST_F(CallData, CallsOfOneTurnAreOneMessage) {
  const std::string question = R"({"messages": [{"role": "user", "content": "a"}, )";
  const std::string rest = R"({"role": "tool_response", "content": "r"},)"
                           R"({"role": "assistant", "content": "d"}]})";
  const std::string calls = call_message("f") + ", " + call_message("g") + ", ";
  EXPECT_EQ(shown(question + calls + rest),
            "[user]a</s>[assistant]{<f>{}<g>{}</s>}[tool]r</s>[assistant]{d</s>}");
  const std::string said = R"({"role": "assistant", "content": "b"}, )";
  EXPECT_EQ(shown(question + said + calls + rest),
            "[user]a</s>[assistant]{b<f>{}<g>{}</s>}[tool]r</s>[assistant]{d</s>}");
  const std::string silent = R"({"role": "assistant", "content": "b", "loss": false}, )";
  EXPECT_TRUE(contains(error(question + silent + calls + rest),
                       "message 3: it is a call in the turn of the message before it"));
  const char* unlearned = R"(, "loss": false)";
  EXPECT_EQ(shown(question + silent + call_message("f", unlearned) + ", " + rest),
            "[user]a</s>[assistant]b<f>{}</s>[tool]r</s>[assistant]{d</s>}");
}

// What two answers begin with alike is counted in turns.
TEST_F(CallData, PairsMayBeginWithCalls) {
  ask_for(RecordForm::preference);
  const auto side = [](const char* last) {
    return R"([{"role": "user", "content": "a"}, )" + call_message("f") + ", " + call_message("g") +
           R"(, {"role": "tool", "content": "r"}, {"role": "assistant", "content": ")" + last +
           "\"}]";
  };
  const std::string pair = R"({"chosen": )" + side("b") + R"(, "rejected": )" + side("c") + "}";
  const std::string prompt = "[user]a</s>[assistant]<f>{}<g>{}</s>[tool]r</s>[assistant]";
  EXPECT_EQ(shown(pair), prompt + "{b</s>}");
  EXPECT_EQ(shown(pair, 1), prompt + "{c</s>}");
}

}  // namespace
}  // namespace snug::text
