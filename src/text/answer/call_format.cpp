#include "text/answer/call_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/answer/answer_reader.h"
#include "text/chat/jinja/values/json_values.h"

namespace snug::text {
namespace {

// The one without marks is last: it would read what others mark.
constexpr std::array<CallFormat, 7> kCallFormats = {{
    {.name = "hermes",  // Qwen2.5, Qwen3, Hermes, SmolLM3
     .begin = "<tool_call>",
     .end = "</tool_call>",
     .name_key = "name",
     .arguments_key = "arguments"},
    {.name = "mistral",
     .begin = "[TOOL_CALLS]",
     .end = "",
     .is_list = true,
     .name_key = "name",
     .arguments_key = "arguments"},
    {.name = "mistral by name", .begin = "[TOOL_CALLS]", .end = "", .after_name = "[ARGS]"},
    {.name = "cohere",
     .begin = "<|START_ACTION|>",
     .end = "<|END_ACTION|>",
     .is_list = true,
     .name_key = "tool_name",
     .arguments_key = "parameters"},
    {.name = "granite",
     .begin = "<|tool_call|>",
     .end = "",
     .is_list = true,
     .name_key = "name",
     .arguments_key = "arguments"},
    {.name = "functionary", .begin = "<function=", .end = "</function>", .after_name = ">"},
    {.name = "llama",  // Llama 3.1 to 3.3
     .begin = "",
     .end = "",
     .name_key = "name",
     .arguments_key = "parameters"},
}};

// What a template is asked to write.
constexpr const char* kProbedTool =
    R"({"type": "function", "function": {"name": "probed_tool", "description": "D", "parameters":)"
    R"( {"type": "object", "properties": {"key": {"type": "string", "description": "P"}},)"
    R"( "required": ["key"]}}})";
constexpr const char* kProbedCall =
    R"({"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefg12", "type": "function",)"
    R"( "function": {"name": "probed_tool", "arguments": {"key": "value"}}}]})";
constexpr const char* kProbedResult =
    R"({"role": "tool", "tool_call_id": "abcdefg12", "name": "probed_tool", "content": "Result"})";
constexpr const char* kProbedWord = "Result";
constexpr const char* kProbedName = "probed_tool";
constexpr const char* kProbedArguments = R"({"key":"value"})";
constexpr std::string_view kXmlTools = "xml_tools";  // SmolLM3

// Nothing where the template refuses.
std::optional<std::string> written_by(const ChatTemplate& chat, const Conversation& conversation,
                                      bool is_prompt) {
  try {
    return is_prompt ? chat.prompt(conversation) : chat.text(conversation);
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

// What a whole conversation has after its prompt. A prompt may open a thought that the conversation
// does not have, and that mark may begin as the answer's does.
std::string_view answer_in(std::string_view whole, std::string_view prompt) {
  const auto* const end = std::ranges::mismatch(whole, prompt).in1;
  auto begin = static_cast<size_t>(end - whole.begin());
  constexpr std::string_view kBorders = " \n>]";
  if (begin < prompt.size())
    while (begin > 0 && kBorders.find(whole[begin - 1]) == std::string_view::npos) --begin;
  return whole.substr(begin);
}

bool reads_back(const CallFormat& format, std::string_view answer) {
  AnswerReader reader({.calls = &format, .names = {kProbedName}});
  std::vector<AnswerPiece> pieces = reader.push(answer);
  std::ranges::move(reader.finish(), std::back_inserter(pieces));
  std::vector<ToolCall> calls;
  for (AnswerPiece& piece : pieces)
    if (piece.kind == AnswerPiece::Kind::call) calls.push_back(std::move(piece.call));
  return calls == std::vector<ToolCall>{{kProbedName, kProbedArguments}};
}

bool is_named_in(std::string_view source, const CallFormat& format) {
  return !format.begin.empty() && source.find(format.begin) != std::string_view::npos &&
         source.find(format.after_name) != std::string_view::npos;
}

}  // namespace

std::span<const CallFormat> call_formats() { return kCallFormats; }

std::string written_calls(const CallFormat& format, std::span<const ToolCall> calls) {
  const bool is_named = !format.after_name.empty();
  std::string text;
  for (size_t i = 0; i < calls.size(); ++i) {
    const ToolCall& call = calls[i];
    const std::string one =
        is_named ? fmt::format("{}{}{}", call.name, format.after_name, call.arguments)
                 : fmt::format("{{\"{}\": \"{}\", \"{}\": {}}}", format.name_key, call.name,
                               format.arguments_key, call.arguments);
    if (format.is_list)
      text += fmt::format("{}{}", i > 0 ? ", " : "", one);
    else if (is_named || format.begin.empty())
      text += fmt::format("{}{}{}{}", i > 0 ? "\n" : "", format.begin, one, format.end);
    else
      text += fmt::format("{}{}\n{}\n{}", i > 0 ? "\n" : "", format.begin, one, format.end);
  }
  return format.is_list ? fmt::format("{}[{}]{}", format.begin, text, format.end) : text;
}

std::string_view other_name_of_tools(std::string_view source) {
  return source.find(kXmlTools) == std::string_view::npos ? std::string_view() : kXmlTools;
}

TemplateCalls template_calls(const ChatTemplate& chat, std::string_view source) {
  const auto value = [](const char* json) { return jinja::value_of_json(json); };
  Conversation conversation{.messages = {{"user", "Q"}}};
  TemplateCalls found;
  conversation.messages.emplace_back(value(kProbedCall));
  const auto plain = written_by(chat, conversation, false);
  found.leaves_out_calls = plain && plain->find(kProbedName) == std::string::npos;
  conversation.messages.emplace_back(value(kProbedResult));
  const auto answered = written_by(chat, conversation, true);
  found.leaves_out_results = answered && answered->find(kProbedWord) == std::string::npos;

  conversation.messages.resize(1, {"user", ""});
  conversation.tools = jinja::Value::list({value(kProbedTool)});
  if (const std::string_view name = other_name_of_tools(source); !name.empty())
    conversation.variables.emplace_back(std::string(name), conversation.tools);
  const auto prompt = written_by(chat, conversation, true);
  found.takes_tools = prompt && prompt->find(kProbedName) != std::string::npos;
  if (!found.takes_tools) return found;
  conversation.messages.emplace_back(value(kProbedCall));
  const auto whole = written_by(chat, conversation, false);
  const std::string_view answer = whole ? answer_in(*whole, *prompt) : "";
  const auto is_spoken = [&](const CallFormat& format) {
    // What a template does not write it may still ask for.
    return answer.find(kProbedName) != std::string_view::npos ? reads_back(format, answer)
                                                              : is_named_in(source, format);
  };
  const auto formats = call_formats();
  const auto at = std::ranges::find_if(formats, is_spoken);
  if (at != formats.end()) found.format = &*at;
  return found;
}

}  // namespace snug::text
