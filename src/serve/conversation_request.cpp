// The conversation of a request, as ids.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/questions/prompt.h"
#include "serve/api_error.h"
#include "serve/completion_request.h"
#include "text/chat/conversation.h"
#include "text/chat/jinja/values/json_values.h"

namespace snug::serve {
namespace {

using nlohmann::ordered_json;

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

// The same of what tools were called and what they gave back.
void check_tool_messages(RequestFields& fields, const text::Conversation& conversation,
                         const text::TemplateCalls& calls) {
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const text::Message& message = conversation.messages[i];
    const bool is_lost = (message.has("tool_calls") && calls.leaves_out_calls) ||
                         (message.role() == "tool" && calls.leaves_out_results);
    if (is_lost)
      fields.refuse(fmt::format("messages[{}]", i),
                    "is about a call of a tool, which this model's chat template does not write; "
                    "say it in the content of a message");
  }
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
    conversation.messages.push_back(message_of(fields, (*messages)[i], i));
  if (!asked.tools.tools.empty()) {
    conversation.tools = text::jinja::value_of_json(asked.tools.tools.dump());
    if (!model.other_name_of_tools().empty())
      conversation.variables.emplace_back(model.other_name_of_tools(), conversation.tools);
  }
  if (const ordered_json* variables = fields.find("chat_template_kwargs")) {
    if (!variables->is_object()) fields.refuse("chat_template_kwargs", "must be an object");
    for (const auto& [name, value] : variables->items())
      conversation.variables.emplace_back(name, text::jinja::value_of_json(value.dump()));
  }
  check_system_message(fields, conversation, *model.chat());
  check_tool_messages(fields, conversation, model.calls());
  const std::string prompt = model.chat()->prompt(conversation);
  asked.ends_in_thought =
      model.thought_marks() != nullptr && text::ends_in_thought(prompt, *model.thought_marks());
  asked.ids = engine::rendered_prompt(model.tokenizer(), prompt);
  return asked;
}

}  // namespace snug::serve
