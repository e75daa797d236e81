// The conversation of a request, as ids.
#include <fmt/format.h>

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

}  // namespace

engine::Ids read_conversation(RequestFields& fields, const ServedModel& model) {
  if (model.chat() == nullptr)
    throw ApiError(kBadRequest,
                   fmt::format("this model has no chat template ({}); start the server with "
                               "chat_template=, or use /v1/completions",
                               model.why_no_chat()));
  const ordered_json* messages = fields.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty())
    fields.refuse("messages", "must be a list of messages, one at least");
  text::Conversation conversation;
  conversation.messages.reserve(messages->size());
  for (size_t i = 0; i < messages->size(); ++i)
    conversation.messages.push_back(message_of(fields, (*messages)[i], i));
  if (const ordered_json* variables = fields.find("chat_template_kwargs")) {
    if (!variables->is_object()) fields.refuse("chat_template_kwargs", "must be an object");
    for (const auto& [name, value] : variables->items())
      conversation.variables.emplace_back(name, text::jinja::value_of_json(value.dump()));
  }
  check_system_message(fields, conversation, *model.chat());
  return engine::chat_prompt(model.tokenizer(), *model.chat(), conversation);
}

}  // namespace snug::serve
