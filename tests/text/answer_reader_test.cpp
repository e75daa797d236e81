// Answers divided into thoughts, what is said, and calls; the forms of calls that published
// templates speak; and the grammars that hold answers to them.
#include "text/answer/answer_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "golden_files.h"
#include "text/answer/answer_grammar.h"
#include "text/grammar/byte_automaton.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using nlohmann::ordered_json;

const CallFormat* format_named(std::string_view name) {
  for (const CallFormat& format : call_formats())
    if (format.name == name) return &format;
  return nullptr;
}

// The pieces as one line: {thought} content (name arguments).
std::string divided(const AnswerMarks& marks, const std::string& text, size_t step) {
  AnswerReader reader(marks);
  std::vector<AnswerPiece> pieces;
  const auto take = [&](std::vector<AnswerPiece> more) {
    for (AnswerPiece& piece : more) pieces.push_back(std::move(piece));
  };
  for (size_t at = 0; at < text.size(); at += step) take(reader.push(text.substr(at, step)));
  take(reader.finish());
  std::string shown;
  std::string content;
  for (const AnswerPiece& piece : pieces) {
    if (piece.kind == AnswerPiece::Kind::call)
      shown += fmt::format("({} {})", piece.call.name, piece.call.arguments);
    else
      (piece.kind == AnswerPiece::Kind::thought ? shown : content) += piece.text;
  }
  return shown + "|" + content;
}

TEST(AnswerReader, DividesTheSameHoweverTheTextIsCut) {
  const ThoughtMarks think{"<think>", "</think>"};
  const CallFormat* const hermes = format_named("hermes");
  const CallFormat* const llama = format_named("llama");
  const CallFormat* const mistral = format_named("mistral");
  struct Case {
    AnswerMarks marks;
    const char* text;
    const char* expected;  // thoughts and calls | content
  };
  const std::vector<Case> cases = {
      {{}, "<think>A</think> B ", "|<think>A</think> B "},
      {{.calls = hermes}, "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n</tool_ca", "(f {})|"},
      {{&think}, " \n<think>\nA b\n\n</think>\n\nB </think>", "A b|B </think>"},
      {{&think}, "\n no <think>", "|\n no <think>"},
      {{&think, true}, "A</thin</think>B", "A</thin|B"},
      {{&think, true}, "A < b \n", "A < b|"},
      {{&think}, "<think></think>\nB", "|B"},
      {{.calls = hermes, .names = {"f"}},
       "Yes.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}</tool_call>\"}}\n"
       "</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>",
       "(f {\"a\":\"}</tool_call>\"})(g {})|Yes."},
      // What is no call stays as it is.
      {{.calls = hermes}, "A \n<tool_call> none", "|A \n<tool_call> none"},
      {{.calls = hermes},
       "<tool_call>{\"name\": 1}</tool_call>",
       "|<tool_call>{\"name\": 1}</tool_call>"},
      {{.calls = hermes},
       "<tool_call>{\"name\": \"f\", \"arg",
       "|<tool_call>{\"name\": \"f\", \"arg"},
      {{.calls = hermes}, "a <tool", "|a <tool"},
      {{&think, true, hermes, {"f"}},
       "T<tool_call></think>\n<tool_call>\n{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}",
       "T<tool_call>(f {\"a\":1})|"},
      {{.calls = mistral},
       "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}, \"id\": \"x\"}, {\"name\": \"g\", "
       "\"arguments\": {\"b\": [1]}}]",
       "(f {})(g {\"b\":[1]})|"},
      {{.calls = format_named("mistral by name")},
       "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
       "(f {\"a\":1})(g {})|"},
      {{.calls = llama, .names = {"f"}},
       "\n{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"f\", \"parameters\": {}}",
       "(f {\"a\":1})(f {})|"},
      // JSON that calls nothing that there is is an answer.
      {{.calls = llama, .names = {"f"}},
       "{\"name\": \"rope\", \"parameters\": {}}",
       "|{\"name\": \"rope\", \"parameters\": {}}"},
      {{.calls = llama, .names = {"f"}}, "It is {\"name\"", "|It is {\"name\""}};
  for (const Case& one : cases)
    for (const size_t step : {1, 2, 3, 7, 1000})
      EXPECT_EQ(divided(one.marks, one.text, step), one.expected) << one.text << " by " << step;
}

TEST(CallFormat, WrittenCallsAreReadBack) {
  const std::vector<ToolCall> calls = {{"f", R"({"a":"]}"})"}, {"g", "{}"}};
  for (const CallFormat& format : call_formats())
    EXPECT_EQ(divided({.calls = &format, .names = {"f", "g"}}, written_calls(format, calls), 5),
              "(f {\"a\":\"]}\"})(g {})|")
        << format.name;
}

TEST(CallFormat, IsReadFromPublishedTemplates) {
  const std::string folder = kSharedData + "chat-templates/llama.cpp-2025-02/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const std::vector<std::pair<const char*, const char*>> formats = {
      {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama"},
      {"meta-llama-Llama-3.2-3B-Instruct", "llama"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "cohere"},
      {"meetkai-functionary-medium-v3.1", "functionary"},
      {"google-gemma-2-2b-it", "takes no tools"},
      {"microsoft-Phi-3.5-mini-instruct", "takes no tools"}};
  for (const auto& [file, expected] : formats) {
    const std::string source = contents_of(folder + file + ".jinja");
    TinyTokenizer tiny;
    tiny.config["chat_template"] = source;
    const Tokenizer tokenizer = tiny.make();
    const TemplateCalls calls = template_calls(ChatTemplate("", tokenizer), source);
    EXPECT_EQ(!calls.takes_tools        ? "takes no tools"
              : calls.format == nullptr ? "unknown"
                                        : calls.format->name,
              expected)
        << file;
  }
}

TEST(ThoughtMarks, AreThoseOfTheTemplateOrTheTokenizer) {
  TinyTokenizer tiny;
  EXPECT_EQ(find_thought_marks("{{ messages }}", tiny.make()), nullptr);
  ASSERT_NE(find_thought_marks("a</think>", tiny.make()), nullptr);
  tiny.added.insert(tiny.added.end(), {"[THINK]", "[/THINK]"});
  Tokenizer tokenizer = tiny.make();
  const ThoughtMarks* const marks = find_thought_marks("", tokenizer);
  ASSERT_NE(marks, nullptr);
  EXPECT_EQ(marks->open, "[THINK]");
  EXPECT_EQ(thought_place("A[THINK]\n", *marks), ThoughtPlace::within);
  EXPECT_EQ(thought_place("A[THINK]\n[/THINK]\n", *marks), ThoughtPlace::after);
  EXPECT_EQ(thought_place("A[THINK]\nA", *marks), ThoughtPlace::before);
  // A special token is not shown until it is a mark, and then it is a part of texts.
  const std::vector<int32_t> ids = tokenizer.encode("A[THINK]", false);
  EXPECT_EQ(tokenizer.decode(ids), "A");
  tokenizer.show_special("[THINK]");
  EXPECT_EQ(tokenizer.decode(ids), "A[THINK]");
  EXPECT_EQ(tokenizer.bytes_of(ids.back()), "[THINK]");
}

bool is_held(const ByteGrammar& grammar, const std::string& text) {
  ByteAutomaton automaton(grammar);
  ByteAutomaton::State state = automaton.start();
  for (const char byte : text) {
    state = automaton.next(state, static_cast<uint8_t>(byte));
    if (state == ByteAutomaton::kDead) return false;
  }
  return automaton.may_end(state);
}

TEST(AnswerGrammar, HoldsAnswersToCalls) {
  const ThoughtMarks think{"<think>", "</think>"};
  const ordered_json of_f = ordered_json::parse(
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a"],
          "$defs": {"n": {"type": "integer"}}})");
  const std::vector<CalledFunction> functions = {{"f", of_f}, {"g"}};
  const auto held = [&](const char* format, bool is_optional, bool is_single,
                        const AnswerBeginning& beginning = {}) {
    return answer_calls_grammar(beginning, {.format = format_named(format),
                                            .functions = functions,
                                            .is_optional = is_optional,
                                            .is_single = is_single});
  };
  const std::string f = R"({"name": "f", "arguments": {"a": 7}})";
  const std::string call = "<tool_call>\n" + f + "\n</tool_call>";
  const ByteGrammar required = held("hermes", false, false);
  EXPECT_TRUE(is_held(required, call));
  EXPECT_TRUE(is_held(required, call + "\n<tool_call>{\"name\": \"g\", \"arguments\": "
                                       "{\"any\": [1]}}</tool_call>"));
  EXPECT_FALSE(is_held(required, "Well, " + call));
  EXPECT_FALSE(
      is_held(required, R"(<tool_call>{"name": "f", "arguments": {"a": "7"}}</tool_call>)"));
  EXPECT_FALSE(is_held(required, R"(<tool_call>{"name": "h", "arguments": {}}</tool_call>)"));
  EXPECT_FALSE(is_held(held("hermes", false, true), call + "\n" + call));

  const ByteGrammar optional = held("hermes", true, true);
  EXPECT_TRUE(is_held(optional, "Just a <tool text"));
  EXPECT_TRUE(is_held(optional, "Well, <<tool_call>" + f + "</tool_call>"));
  EXPECT_FALSE(is_held(optional, "Well, <tool_call>no</tool_call>"));

  const ByteGrammar mistral = held("mistral", false, false);
  EXPECT_TRUE(is_held(mistral, "[TOOL_CALLS] [" + f + ", " + f + "]"));
  EXPECT_FALSE(is_held(held("mistral", false, true), "[TOOL_CALLS][" + f + ", " + f + "]"));
  EXPECT_TRUE(is_held(held("mistral by name", false, false), "[TOOL_CALLS]f[ARGS]{\"a\": 1}"));
  const ByteGrammar llama = held("llama", true, false);
  EXPECT_TRUE(is_held(llama, R"({"name": "f", "parameters": {"a": 7}})"));
  EXPECT_FALSE(is_held(llama, R"({"name": "f", "parameters": {}})"));
  EXPECT_TRUE(is_held(llama, "text {"));

  // A thought may come first, and one that is open has to be closed.
  EXPECT_TRUE(is_held(held("hermes", false, true, {&think}), "<think>t < </think>\n\n" + call));
  EXPECT_TRUE(is_held(held("hermes", false, true, {&think}), call));
  EXPECT_TRUE(is_held(held("hermes", false, true, {&think, true}), "t</think>" + call));
  EXPECT_FALSE(is_held(held("hermes", false, true, {&think, true}), call));
  EXPECT_TRUE(is_held(answer_schema_grammar({&think, true}, of_f), "t</think>\n{\"a\": 1}"));
  EXPECT_TRUE(is_held(answer_regex_grammar({}, "ab?"), "a"));
}

}  // namespace
}  // namespace snug::text
