// The conversation of a request, as ids.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/questions/prompt.h"
#include "serve/api_error.h"
#include "serve/completion_request.h"
#include "text/chat/conversation.h"
#include "text/chat/jinja/values/json_values.h"
#include "text/chat/jinja/values/print.h"

namespace snug::serve {
namespace {

using nlohmann::ordered_json;
using std::string_view_literals::operator""sv;

// OpenAI's newer name of system messages, which no template knows.
constexpr const char* kDeveloper = "developer";

void check_calls(RequestFields& fields, const std::string& name, const ordered_json& calls) {
  const auto is_call = [](const ordered_json& call) {
    if (!call.is_object() || !call.contains("function")) return false;
    const ordered_json& function = call["function"];
    if (!function.is_object() || !function.contains("name") || !function.contains("arguments"))
      return false;
    const ordered_json& arguments = function["arguments"];
    return function["name"].is_string() && (arguments.is_string() || arguments.is_object());
  };
  if (!calls.is_array() || !std::ranges::all_of(calls, is_call))
    fields.refuse(name,
                  "has tool_calls that are no list of {\"id\", \"type\": \"function\", "
                  "\"function\": {\"name\", \"arguments\"}}");
}

text::Message message_of(RequestFields& fields, ordered_json message, size_t index) {
  const std::string name = fmt::format("messages[{}]", index);
  if (!message.is_object()) fields.refuse(name, "is not an object");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string()) fields.refuse(name, "has no role, such as user");
  if (*role == kDeveloper) *role = "system";
  const auto content = message.find("content");
  const bool has_content =
      content != message.end() && (content->is_string() || content->is_array());
  if (!has_content && *role != "assistant")
    fields.refuse(name, "has no content, which is a text or a list of parts");
  if (const auto calls = message.find("tool_calls"); calls != message.end() && !calls->is_null()) {
    check_calls(fields, name, *calls);
    // Clients send null for the text that a call had none of; templates want a text.
    if (!has_content) message["content"] = "";
  }
  if (has_content && content->is_array())
    for (const ordered_json& part : *content)
      if (!part.is_object() || part.value("type", ordered_json()) != "text" ||
          !part.value("text", ordered_json()).is_string())
        fields.refuse(name, "has a part that is no text: this model reads text alone");
  return text::Message(text::jinja::value_of_json(message.dump()));
}

// Some templates leave a system message out, which would be ignored in silence.
void check_system_message(RequestFields& fields, const text::Conversation& conversation,
                          const text::ChatTemplate& chat) {
  if (conversation.messages.front().role() != "system") return;
  text::Conversation beginning{.messages = {conversation.messages.front(), {"user", "Q"}}};
  beginning.variables = conversation.variables;
  for (const text::Unwritten& one : chat.unwritten(beginning, true))
    if (one.role == "system")
      fields.refuse("messages",
                    "has a system message, which this model's chat template does not write; put it "
                    "in front of the first question");
}

// The calls of a message in its text, as the model wrote them: for a template that leaves them out.
text::Message with_written_calls(const text::Message& message, const text::CallFormat& format) {
  std::vector<text::ToolCall> calls;
  const text::jinja::List& given = message.find("tool_calls")->items();
  calls.reserve(given.size());
  for (const text::jinja::Value& one : given) {
    const text::jinja::Dict& function = one.as_dict().find("function"sv)->as_dict();
    const text::jinja::Value& arguments = *function.find("arguments"sv);
    const bool is_text = arguments.is(text::jinja::Value::Kind::text);
    calls.push_back({function.find("name"sv)->as_text(),
                     (is_text ? arguments : text::jinja::print_json(arguments, {})).as_text()});
  }
  const std::string said = message.content();
  return message.with("tool_calls", text::jinja::Value::none())
      .with_content(said + (said.empty() ? "" : "\n") + text::written_calls(format, calls));
}

// Whether a message is about calls that the template would leave out.
bool is_left_out(const text::Message& message, const text::TemplateCalls& calls) {
  const text::jinja::Value* const given = message.find("tool_calls");
  return (given != nullptr && given->is_true() && calls.leaves_out_calls) ||
         (message.role() == "tool" && calls.leaves_out_results);
}

// A message as the template writes all of it.
text::Message written_message(RequestFields& fields, const text::Message& message, size_t index,
                              const text::TemplateCalls& calls) {
  if (!is_left_out(message, calls)) return message;
  if (message.role() == "tool" || calls.format == nullptr)
    fields.refuse(fmt::format("messages[{}]", index),
                  "is about a call of a tool, which this model's chat template does not write; "
                  "say it in the content of a message");
  return with_written_calls(message, *calls.format);
}

}  // namespace

AskedConversation read_conversation(RequestFields& fields, const ServedModel& model) {
  if (model.chat() == nullptr)
    throw ApiError(kBadRequest,
                   fmt::format("this model has no chat template ({}); start the server with "
                               "chat_template=, or use /v1/completions",
                               model.why_no_chat()));
  const ordered_json* messages = fields.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty())
    fields.refuse("messages", "must be a list of messages, one at least");
  AskedConversation asked{.tools = read_tools(fields, model)};
  text::Conversation conversation;
  conversation.messages.reserve(messages->size());
  for (size_t i = 0; i < messages->size(); ++i)
    conversation.messages.push_back(
        written_message(fields, message_of(fields, (*messages)[i], i), i, model.calls()));
  if (!asked.tools.tools.empty()) {
    conversation.tools = text::jinja::value_of_json(asked.tools.tools.dump());
    if (!model.other_name_of_tools().empty())
      conversation.variables.emplace_back(model.other_name_of_tools(), conversation.tools);
  }
  if (const ordered_json* variables = fields.find("chat_template_kwargs")) {
    if (!variables->is_object()) fields.refuse("chat_template_kwargs", "must be an object");
    for (const char* name : {"messages", "tools", "add_generation_prompt"})
      if (variables->contains(name))
        fields.refuse("chat_template_kwargs",
                      fmt::format("must not hold '{}', which follows from the request", name));
    for (const auto& [name, value] : variables->items())
      conversation.variables.emplace_back(name, text::jinja::value_of_json(value.dump()));
  }
  check_system_message(fields, conversation, *model.chat());
  const std::string prompt = model.chat()->prompt(conversation);
  if (model.thought_marks() != nullptr)
    asked.thought = text::thought_place(prompt, *model.thought_marks());
  asked.ids = engine::rendered_prompt(model.tokenizer(), prompt);
  return asked;
}

}  // namespace snug::serve
