#include "generate/chat/chat_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace snug::generate {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void throw_no_record(const std::filesystem::path& path, const std::string& what) {
  base::throw_user_error(
      "{}: {}; expected one line, {{\"messages\": [{{\"role\": \"user\", \"content\": \"...\"}}, "
      "...]}}",
      path.string(), what);
}

// The file is written anew after each answer, and would lose them.
void refuse_other_fields(const std::filesystem::path& path, const nlohmann::json& object,
                         const char* what, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      throw_no_record(path, fmt::format("{} has the field '{}', which a chat would not keep; give "
                                        "a copy without it",
                                        what, key));
}

text::Message message_of(const std::filesystem::path& path, const nlohmann::json& message) {
  const auto is_text = [&](const char* key) {
    return message.is_object() && message.contains(key) && message.at(key).is_string();
  };
  if (!is_text("role") || !is_text("content"))
    throw_no_record(path, "a message has no role or no content that is a text");
  refuse_other_fields(path, message, "a message", {"role", "content"});
  return {message.at("role").get<std::string>(), message.at("content").get<std::string>()};
}

}  // namespace

std::string chat_record(const std::vector<text::Message>& messages) {
  ordered_json list = ordered_json::array();
  for (const text::Message& message : messages)
    list.push_back({{"role", message.role()}, {"content", message.content()}});
  return ordered_json{{"messages", std::move(list)}}.dump(-1, ' ', false,
                                                          ordered_json::error_handler_t::replace) +
         "\n";
}

std::vector<text::Message> read_chat_record(const std::filesystem::path& path) {
  std::vector<text::Message> messages;
  if (!base::is_there(path)) return messages;
  const std::string text = base::read_text_file(path);
  const size_t end = text.find('\n');
  if (end != std::string::npos && text.find_first_not_of(" \t\r\n", end) != std::string::npos)
    throw_no_record(path, "it has several lines");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return messages;
  const nlohmann::json record = base::parse_json(text, path.string());
  if (!record.is_object() || !record.contains("messages") || !record.at("messages").is_array())
    throw_no_record(path, "it holds no list of messages");
  refuse_other_fields(path, record, "the conversation", {"messages"});
  for (const nlohmann::json& message : record.at("messages"))
    messages.push_back(message_of(path, message));
  return messages;
}

void append_chat_record(const std::filesystem::path& path,
                        const std::vector<text::Message>& messages) {
  base::File file = base::File::open_for_update(path);
  const std::string line = chat_record(messages);
  const int64_t size = file.size();
  char last = '\n';
  if (size > 0) file.read_at(size - 1, &last, 1);
  const std::string added = (last == '\n' ? "" : "\n") + line;
  file.write_at(size, added.data(), std::ssize(added));
  file.close();
}

}  // namespace snug::generate
