#include "text/record/record_spelling.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_parser.h"
#include "base/lower_case.h"

namespace snug::text {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr auto kListFields =
    std::to_array<const char*>({"messages", "conversations", "conversation", "history", "prompt",
                                "completion", "chosen", "rejected"});

// Nothing where a text is no JSON.
std::optional<OrderedJson> json_of(const std::string& text) {
  try {
    return base::parse_ordered_json(
        text, [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); });
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

bool is_list_of_messages(const OrderedJson& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, [](const auto& item) {
           return item.is_object() && (item.contains("role") || item.contains("from"));
         });
}

// The JSON in a text that begins with `bracket`.
std::optional<OrderedJson> json_in(const nlohmann::json& value, char bracket) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == bracket ? json_of(text) : std::nullopt;
}

// The messages in the text of a field, or in each text of its list; nothing where these are texts
// of their own.
std::optional<OrderedJson> list_in(const RecordFields& fields, const char* key) {
  if (!fields.has(key)) return std::nullopt;
  const nlohmann::json& value = fields.document().at(key);
  std::optional<OrderedJson> list = json_in(value, '[');
  if (value.is_array()) {
    list = OrderedJson::array();
    for (const nlohmann::json& item : value) {
      std::optional<OrderedJson> message = json_in(item, '{');
      if (!message) return std::nullopt;
      list->push_back(std::move(*message));
    }
  }
  return list && is_list_of_messages(*list) ? list : std::nullopt;
}

}  // namespace

std::optional<std::string> with_messages_of_texts(const RecordFields& fields,
                                                  const std::string& text) {
  std::optional<OrderedJson> record;
  for (const char* key : kListFields) {
    std::optional<OrderedJson> list = list_in(fields, key);
    if (!list) continue;
    if (!record) record = json_of(text);
    (*record)[key] = std::move(*list);
  }
  return record ? std::optional(record->dump()) : std::nullopt;
}

std::optional<std::string> with_small_names(const RecordFields& fields, const std::string& text) {
  const nlohmann::json& document = fields.document();
  bool changes = false;
  for (const auto& [name, value] : document.items()) {
    const std::string small = base::lower_case(name);
    if (small == name) continue;
    if (document.contains(small)) return std::nullopt;
    changes = true;
  }
  const std::optional<OrderedJson> record = changes ? json_of(text) : std::nullopt;
  if (!record) return std::nullopt;
  OrderedJson renamed = OrderedJson::object();
  for (const auto& [name, value] : record->items()) {
    const bool is_ignored = !document.contains(name);
    const std::string small = is_ignored ? name : base::lower_case(name);
    if (renamed.contains(small)) return std::nullopt;
    renamed[small] = value;
  }
  return renamed.dump();
}

}  // namespace snug::text
