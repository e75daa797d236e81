// What a template is handed, and what is said of that which it leaves out. The texts are those that
// jinja2 writes of the same messages, once they have the form that the template expects.
#include "text/chat/fitted_conversation.h"

#include <gtest/gtest.h>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "text/chat/chat_template.h"
#include "text/chat/unwritten_counts.h"
#include "text/record/record_form.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using base::UserError;
using testing::contains;

const std::string kRoles =
    "{% for m in messages %}<{{ m.role }}>{% if m.content %}{{ m.content }}{% endif %}";
const std::string kEnd =
    "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

// Templates by how they write a call: as an object, as a text, as either, argument by argument, and
// not at all.
const std::string kObjects = kRoles +
                             "{% for c in m.tool_calls %}[{{ c.function.name }} "
                             "{{ c.function.arguments | tojson }}]{% endfor %}" +
                             kEnd;
const std::string kTexts = kRoles +
                           "{% for c in m.tool_calls %}{{ '[' + c.function.name + ' ' + "
                           "c.function.arguments + ']' }}{% endfor %}" +
                           kEnd;
const std::string kEither = kRoles +
                            "{% for c in m.tool_calls %}[{{ c.function.name }} "
                            "{{ c.function.arguments if c.function.arguments is string else "
                            "c.function.arguments | tojson }}]{% endfor %}" +
                            kEnd;
const std::string kItems = kRoles +
                           "{% for c in m.tool_calls %}[{{ c.function.name }}"
                           "{% for k, v in c.function.arguments | items %} {{ k }}={{ v }}"
                           "{% endfor %}]{% endfor %}" +
                           kEnd;
const std::string kMappings = kRoles +
                              "{% for c in m.tool_calls %}[{{ c.function.name }}"
                              "{% if c.function.arguments is mapping %}"
                              "{% for k, v in c.function.arguments | items %} {{ k }}={{ v }}"
                              "{% endfor %}{% endif %}]{% endfor %}" +
                              kEnd;
const std::string kNone = kRoles + kEnd;
const std::string kParts =
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}" +
    kEnd;
const std::string kAdded =
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content + eos_token }}{% endfor %}";

Tokenizer tokenizer_of(const std::string& source) {
  TinyTokenizer tiny;
  tiny.config["chat_template"] = source;
  return tiny.make();
}

Conversation conversation_of(const std::string& json) {
  RawRecord raw;
  raw.text = json;
  return parse_record(raw, "data.jsonl", {.form = RecordForm::messages}).conversation;
}

Conversation with_call(const std::string& arguments, const std::string& content = "") {
  return conversation_of(R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "content": ")" +
                         content + R"(", "tool_calls": [
        {"type": "function", "function": {"name": "f", "arguments": )" +
                         arguments + R"(}}]}]})");
}

std::string text_of(const std::string& source, const Conversation& conversation) {
  return ChatTemplate("", tokenizer_of(source)).text(conversation);
}

std::string refusal_of(const std::string& source, const Conversation& conversation) {
  return message_of<UserError>([&] { text_of(source, conversation); });
}

constexpr const char* kObject = R"({"a": 1, "b": "x"})";
constexpr const char* kText = R"("{\"a\": 1, \"b\": \"x\"}")";

TEST(FittedConversation, ArgumentsHaveTheFormThatTheTemplateWrites) {
  const std::string json = R"(<user>q</s><assistant>[f {"a": 1, "b": "x"}]</s>)";
  const std::string listed = "<user>q</s><assistant>[f a=1 b=x]</s>";
  for (const char* given : {kObject, kText}) {
    for (const std::string& source : {kObjects, kTexts, kEither})
      EXPECT_EQ(text_of(source, with_call(given)), json) << source << given;
    for (const std::string& source : {kItems, kMappings})
      EXPECT_EQ(text_of(source, with_call(given)), listed) << source << given;
  }
  // What somebody wrote with other spaces is left to a template that takes texts.
  EXPECT_TRUE(contains(text_of(kEither, with_call(R"("{\"a\":1}")")), R"([f {"a":1}])"));
  EXPECT_TRUE(contains(text_of(kObjects, with_call(R"("{\"a\":1}")")), R"([f {"a": 1}])"));
}

TEST(FittedConversation, ArgumentsMayBeEmpty) {
  for (const char* given : {R"("{}")", R"("")", "{}", "null", R"(" ")"})
    for (const std::string& source : {kObjects, kTexts, kEither})
      EXPECT_TRUE(contains(text_of(source, with_call(given)), "[f {}]")) << source << given;
  for (const char* given : {R"("{}")", R"("")", "{}", "null"})
    EXPECT_TRUE(contains(text_of(kItems, with_call(given)), "[f]")) << given;
}

TEST(FittedConversation, NamesArgumentsThatAreNoJson) {
  const Conversation conversation = with_call(R"("city=Oslo")");
  for (const std::string& source : {kObjects, kItems}) {
    const std::string error = refusal_of(source, conversation);
    EXPECT_TRUE(contains(error, "message 2: the 'arguments' of the call 'f' are text that is no "))
        << error;
  }
  EXPECT_TRUE(contains(text_of(kTexts, conversation), "[f city=Oslo]"));
  EXPECT_TRUE(contains(text_of(kEither, conversation), "[f city=Oslo]"));
  // What the template refuses for another reason has its own words.
  const std::string other = refusal_of("{{ raise_exception('no tools') }}" + kItems, conversation);
  EXPECT_TRUE(contains(other, "no tools")) << other;
}

TEST(FittedConversation, EveryCallIsRead) {
  const Conversation conversation = conversation_of(
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "f", "arguments": "{\"a\": 1}"}}, {"name": "g", "arguments": "{\"b\": 2}"}]}]})");
  EXPECT_EQ(text_of("{% for c in messages[1].tool_calls %}{% set c = c.function or c %}"
                    "{{ c.name }}{{ c.arguments | tojson }}{% endfor %}",
                    conversation),
            R"(f{"a": 1}g{"b": 2})");
}

Conversation with_parts(const std::string& parts) {
  return conversation_of(
      R"({"messages": [{"role": "user", "content": )" + parts +
      R"(}, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}]})");
}

TEST(FittedConversation, PartsBecomeATextWhereTheTemplateWritesTexts) {
  const Conversation conversation = with_parts(
      R"([{"type": "text", "text": "Qne", "image": null}, {"type": "text", "text": "two"}])");
  EXPECT_EQ(text_of(kParts, conversation), "<user>Qnetwo</s><assistant>a</s>");
  // The one prints a list, the other refuses it.
  for (const std::string& source : {kNone, kAdded})
    EXPECT_EQ(text_of(source, conversation), "<user>Qne\ntwo</s><assistant>a</s>") << source;
  const std::string only_strings =
      "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% endif "
      "%}" +
      kEnd;
  EXPECT_EQ(text_of(only_strings, conversation), "<user>Qne\ntwo</s><assistant>a</s>");
  for (const char* parts : {R"(["b", "c"])", R"([{"text": "b"}, {"text": "c"}])"}) {
    Conversation others = with_parts(parts);
    EXPECT_EQ(text_of(kParts, others), "<user>bc</s><assistant>a</s>") << parts;
    others.messages.pop_back();
    EXPECT_EQ(text_of(kNone, others), "<user>b\nc</s>") << parts;
  }
}

// As those of models that see images may.
TEST(FittedConversation, TextsBecomePartsWhereTheTemplateWritesPartsOnly) {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{% for p in m.content if p.type == 'text' %}"
      "{{ p.text }}{% endfor %}" +
      kEnd;
  const Conversation conversation = conversation_of(
      R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "Qa"}]})");
  EXPECT_EQ(text_of(source, conversation), "<user>Q</s><assistant>Qa</s>");
  const Tokenizer tokenizer = tokenizer_of(source);
  const std::vector<Part> parts = ChatTemplate("", tokenizer).render(conversation);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1].text, "Qa</s>");
}

TEST(FittedConversation, PartsThatAreNoTextAreNamed) {
  for (const char* part :
       {R"({"type": "image_url", "image_url": {"url": "x"}})", R"({"type": "image", "text": null})",
        R"({"type": "input_audio", "input_audio": {}})", R"({"type": "text"})", R"({"type": 5})",
        "5"}) {
    const Conversation conversation =
        with_parts(std::string(R"([{"type": "text", "text": "b"}, )") + part + "]");
    for (const std::string& source : {kParts, kNone}) {
      const std::string error = refusal_of(source, conversation);
      EXPECT_TRUE(contains(error, "message 1: its 'content' holds a part ")) << part << error;
    }
  }
  EXPECT_TRUE(contains(refusal_of(kParts, with_parts(R"([{"type": "video", "video": "x"}])")),
                       "of the type 'video', and only text is learned"));
}

TEST(FittedConversation, ThoughtsInPartsStayThoughts) {
  const Conversation conversation = conversation_of(
      R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]}]})");
  EXPECT_EQ(
      text_of("{% for m in messages %}{{ '<' + (m.reasoning_content or '') + '>' + m.content }}"
              "{% endfor %}",
              conversation),
      "<>q<t>a");
}

// Of each message by itself: the user's parts are gone through, a tool's are printed.
TEST(FittedConversation, PartsThatAreNotPrintedAsTheyAre) {
  const Conversation conversation = conversation_of(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "b"}]},
                       {"role": "tool", "content": [{"type": "text", "text": "c"}]},
                       {"role": "assistant", "content": "a"}]})");
  const std::string mixed =
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'user' %}"
      "{% for p in m.content %}{{ p.text }}{% endfor %}{% else %}{{ m.content }}{% endif %}" +
      kEnd;
  EXPECT_EQ(text_of(mixed, conversation), "<user>b</s><tool>c</s><assistant>a</s>");
  // A template that wants a list, and prints it.
  const std::string refusal = refusal_of(
      "{% for m in messages %}{% if m.role != 'assistant' and m.content is string %}"
      "{{ raise_exception('parts please') }}{% endif %}<{{ m.role }}>{{ m.content }}" +
          kEnd,
      conversation);
  EXPECT_TRUE(contains(refusal, "message 1: its 'content' is a list of parts, which the chat "))
      << refusal;
}

TEST(FittedConversation, ThoughtsThatStandTwiceAreTheSame) {
  const auto conversation = [](const std::string& thought) {
    return conversation_of(
        R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant",
            "reasoning_content": ")" +
        thought + R"(", "content": [{"type": "thinking", "thinking": "t"},
                                    {"type": "text", "text": "a"}]}]})");
  };
  const std::string source =
      "{% for m in messages %}{{ '<' + (m.reasoning_content or '') + '>' + m.content }}"
      "{% endfor %}";
  EXPECT_EQ(text_of(source, conversation("t")), "<>q<t>a");
  EXPECT_TRUE(contains(refusal_of(source, conversation("u")),
                       "message 2: its 'reasoning_content' and the parts of the type 'thinking'"));
}

std::vector<std::string> left_out(const std::string& source, const Conversation& conversation) {
  std::vector<std::string> names;
  for (const Unwritten& one : ChatTemplate("", tokenizer_of(source)).unwritten(conversation))
    names.push_back(fmt::format("{} {}{}", one.message, one.field, one.is_all ? "!" : ""));
  return names;
}

using Names = std::vector<std::string>;

TEST(Unwritten, NothingWhereAllIsWritten) {
  for (const std::string& source : {kObjects, kEither, kItems, kMappings})
    for (const char* given : {kObject, kText})
      EXPECT_EQ(left_out(source, with_call(given, "well")), Names{}) << source;
  EXPECT_EQ(left_out(kParts, with_parts(R"([{"type": "text", "text": "b"}])")), Names{});
  // Words that are changed on the way are written.
  EXPECT_EQ(left_out("{% for m in messages %}{{ m.role }}{{ m.content | upper | replace('Z', '') }}"
                     "{{ eos_token }}{% endfor %}",
                     conversation_of(R"({"messages": [{"role": "user", "content": "q"},
                                         {"role": "assistant", "content": "a"}]})")),
            Names{});
}

TEST(Unwritten, CallsAndTheirArguments) {
  EXPECT_EQ(left_out(kNone, with_call(kObject)), Names{"2 tool_calls!"});
  EXPECT_EQ(left_out(kNone, with_call(kObject, "well")), Names{"2 tool_calls"});
  const std::string only_names =
      kRoles + "{% for c in m.tool_calls %}[{{ c.function.name }}]{% endfor %}" + kEnd;
  EXPECT_EQ(left_out(only_names, with_call(kObject)), Names{"2 tool_calls"});
  const std::string only_first = kRoles +
                                 "{% if m.tool_calls %}[{{ m.tool_calls[0].function.name }} {{ "
                                 "m.tool_calls[0].function.arguments | tojson }}]{% endif %}" +
                                 kEnd;
  EXPECT_EQ(left_out(only_first, with_call(kObject)), Names{});
  EXPECT_EQ(left_out(only_first, conversation_of(
                                     R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}},
                                           {"function": {"name": "g", "arguments": {}}}]}]})")),
            Names{"2 tool_calls"});
}

TEST(Unwritten, ToolsSystemTextsAndThoughts) {
  const Conversation conversation = conversation_of(
      R"({"tools": [{"type": "function", "function": {"name": "f"}}],
          "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
                       {"role": "assistant", "content": "a", "reasoning_content": "t"}]})");
  EXPECT_EQ(left_out("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}",
                     conversation),
            (Names{"1 content!", "3 reasoning_content", "0 tools"}));
  EXPECT_EQ(left_out("{{ tools | tojson }}{{ messages | tojson }}", conversation), Names{});
}

// What models that think write in one text with their answer.
TEST(Unwritten, TextsThatAreCutOff) {
  const Conversation conversation = conversation_of(
      R"({"messages": [{"role": "user", "content": "q"},
                       {"role": "assistant", "content": "<think>abc</think>good "}]})");
  const auto writes = [](const std::string& text) {
    return "{% for m in messages %}{{ m.role }}{{ " + text + " }}{{ eos_token }}{% endfor %}";
  };
  const std::string cut = writes("m.content.split('</think>')[-1]");
  EXPECT_EQ(left_out(cut, conversation), Names{"2 content"});
  UnwrittenCounts counts;
  counts.add(ChatTemplate("", tokenizer_of(cut)).unwritten(conversation), 1);
  EXPECT_TRUE(contains(counts.text(), "the beginning of 'content' of assistant messages in 1"));
  for (const char* text :
       {"m.content", "m.content | trim", "m.content | upper",
        "m.content.split('</think>')[0].split('<think>')[-1] + m.content.split('</think>')[-1]"})
    EXPECT_EQ(left_out(writes(text), conversation), Names{}) << text;
}

// A template that refuses the words (here it wants short texts) is asked one by one.
TEST(Unwritten, WhereTheTemplateRefusesTheWords) {
  const Conversation conversation = conversation_of(
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
                       {"role": "assistant", "content": "a"}]})");
  EXPECT_EQ(left_out("{% for m in messages %}{% if m.content | length > 3 %}"
                     "{{ raise_exception('long') }}{% endif %}{% endfor %}"
                     "{{ messages[1].content }}{{ messages[2].content }}",
                     conversation),
            Names{"1 content!"});
}

TEST(Unwritten, AnswersOfNothingAreRefused) {
  const auto refusal = [](const std::string& source, const Conversation& conversation) {
    return message_of<UserError>([&] {
      refuse_unwritten_answers(ChatTemplate("", tokenizer_of(source)).unwritten(conversation));
    });
  };
  EXPECT_TRUE(contains(refusal(kNone, with_call(kObject)),
                       "message 2: the chat template does not write its 'tool_calls', so that a "
                       "model would learn to answer with nothing"));
  EXPECT_TRUE(contains(refusal(kNone, with_call(kObject, "well")), "end its turn without them"));
  const Conversation thought = conversation_of(
      R"({"messages": [{"role": "user", "content": "q"},
                       {"role": "assistant", "content": "", "reasoning_content": "t"}]})");
  EXPECT_TRUE(contains(refusal(kNone, thought), "'reasoning_content'"));
  EXPECT_EQ(refusal(kObjects, with_call(kObject)), "");
  Conversation given = with_call(kObject);
  given.messages[1].set_learned(false);
  EXPECT_EQ(refusal(kNone, given), "");
}

TEST(Unwritten, IsCounted) {
  UnwrittenCounts counts;
  EXPECT_EQ(counts.text(), "");
  counts.add({{0, "tools", "", false}}, 2);
  counts.add({{1, "content", "system", true}, {3, "content", "system", true}}, 3);
  counts.add({{0, "tools", "", false}}, 4);
  EXPECT_EQ(counts.text(),
            "the chat template does not write 'content' of system messages in 1 record (the first "
            "is 3), 'tools' in 2 records (the first is 2)");
}

}  // namespace
}  // namespace snug::text
