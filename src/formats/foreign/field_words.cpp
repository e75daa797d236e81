#include "formats/foreign/field_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace snug::formats {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// Roles that need no word of a recipe (text/record/message_role.h).
constexpr auto kUsualRoles = std::to_array<Pair>({{"human", "user"},
                                                  {"gpt", "assistant"},
                                                  {"bot", "assistant"},
                                                  {"observation", "tool"},
                                                  {"tool_response", "tool"},
                                                  {"function_call", "function_call"},
                                                  {"tool_call", "function_call"}});

}  // namespace

std::string in_template(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '{' || c == '}') result += c;
    result += c;
  }
  return result;
}

std::string field_in_template(std::string_view name) { return fmt::format("{{{}}}", name); }

void take_field(DataEntry& entry, std::string_view name, std::string_view source) {
  if (name == source || source.empty()) return;
  entry.fields.push_back(fmt::format("{}={}", name, source));
}

void take_first_of(DataEntry& entry, std::string_view name,
                   const std::vector<std::string>& sources) {
  if (sources.size() == 1) return take_field(entry, name, sources.front());
  take_field(entry, name, nlohmann::json(sources).dump());
}

void take_if_there(DataEntry& entry, std::string_view name, std::string_view source) {
  if (name != source && !source.empty()) take_first_of(entry, name, {std::string(source), ""});
}

std::string take_messages(DataEntry& entry, const std::string& list, bool says_form) {
  const bool is_sharegpt = list == "conversations";
  if (says_form) entry.data_format = is_sharegpt ? DataFormat::sharegpt : DataFormat::messages;
  if (is_sharegpt) return list;
  take_field(entry, "messages", list);
  return "messages";
}

void take_message_fields(DataEntry& entry, const std::vector<std::string>& lists,
                         const MessageWords& words) {
  for (const std::string& list : lists) {
    if (words.role != "role" && words.role != "from") take_field(entry, list + ".role", words.role);
    if (words.content != "content" && words.content != "value")
      take_field(entry, list + ".content", words.content);
  }
}

void take_role(DataEntry& entry, std::string_view word, std::string_view role) {
  if (word.empty() || word == role ||
      std::ranges::find(kUsualRoles, Pair(word, role)) != kUsualRoles.end())
    return;
  entry.roles.push_back(fmt::format("{}={}", word, role));
}

}  // namespace snug::formats
