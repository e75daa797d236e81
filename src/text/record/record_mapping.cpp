#include "text/record/record_mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json_parser.h"
#include "base/nearest.h"
#include "base/shown_text.h"
#include "text/record/field_meaning.h"
#include "text/unicode/blank.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using Json = nlohmann::ordered_json;

// The fields that some form reads (record_form.h, token_record.h).
constexpr auto kFields = std::to_array<std::string_view>(
    {"messages",  "conversations", "instruction", "input",          "output",
     "prompt",    "completion",    "chosen",      "rejected",       "label",
     "text",      "system",        "history",     "tools",          "chat_template_kwargs",
     "input_ids", "labels",        "loss_mask",   "attention_mask", "rejected_response",
     "question",  "query",         "answer",      "response"});
constexpr auto kMessageFields = std::to_array<std::string_view>(
    {"role", "content", "tool_calls", "reasoning_content", "weight", "name"});
constexpr auto kMappedRoles =
    std::to_array<std::string_view>({"system", "user", "assistant", "tool", "function_call"});

// "NAME=REST".
std::pair<std::string, std::string> halves(const char* key, const std::string& item) {
  if (find_invalid_utf8(item) != std::string_view::npos)
    base::throw_user_error("'{}': '{}' is not valid UTF-8", key, base::shown_text(item));
  const size_t equals = item.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
    base::throw_user_error("'{}': expected NAME=VALUE, found '{}'", key, base::shown_text(item));
  return {item.substr(0, equals), item.substr(equals + 1)};
}

template <size_t kCount>
bool is_one_of(std::string_view name, const std::array<std::string_view, kCount>& known) {
  return std::ranges::find(known, name) != known.end();
}

template <size_t kCount>
void require_known(const char* key, std::string_view name,
                   const std::array<std::string_view, kCount>& known) {
  if (is_one_of(name, known)) return;
  const std::vector<std::string_view> names(known.begin(), known.end());
  const auto nearest = base::nearest_name(name, names);
  base::throw_user_error(
      "'{}': '{}' is none that Snug reads{}; expected one of {}", key, base::shown_text(name),
      nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "", fmt::join(names, ", "));
}

// The value at a path of names and indices; null pointer where there is none. A field whose own
// name has dots is found by it. What a list is too short for, and what lies in null, is null: a
// question without an answer has an empty list of answers.
const Json* find(const Json& value, std::string_view path) {
  static const Json kNothing;
  if (value.is_null()) return &kNothing;
  if (value.is_object()) {
    const auto whole = value.find(std::string(path));
    if (whole != value.end()) return &*whole;
  }
  const size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  const Json* found = nullptr;
  if (value.is_object()) {
    const auto at = value.find(std::string(name));
    if (at != value.end()) found = &*at;
  } else if (value.is_array()) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index = error == std::errc() && end == name.data() + name.size();
    if (is_index && index >= value.size()) return &kNothing;
    if (is_index) found = &value[index];
  }
  if (found == nullptr || dot == std::string_view::npos) return found;
  return find(*found, path.substr(dot + 1));
}

bool is_empty_value(const Json& value) {
  const auto is_null = [](const Json& item) { return item.is_null(); };
  return value.is_null() || (value.is_object() && value.empty()) ||
         (value.is_array() && std::ranges::all_of(value, is_null));
}

bool is_item_of(const Json& list, const Json* item) {
  return item != nullptr && !list.empty() && item >= &list.front() && item <= &list.back();
}

// Removes what lies at a path, and what has nothing left around it. Items of a list become null, so
// that the places of the others stay.
void remove(Json& value, std::string_view path) {
  const size_t dot = path.find('.');
  const std::string whole(path);
  const std::string name(path.substr(0, dot));
  if (value.is_object() && value.contains(whole)) {
    value.erase(whole);
  } else if (value.is_object() && value.contains(name)) {
    if (dot != std::string_view::npos) remove(value[name], path.substr(dot + 1));
    if (dot == std::string_view::npos || is_empty_value(value[name])) value.erase(name);
  } else if (const Json* item = find(value, name); value.is_array() && is_item_of(value, item)) {
    Json& taken = value[static_cast<size_t>(item - &value[0])];
    if (dot == std::string_view::npos)
      taken = nullptr;
    else
      remove(taken, path.substr(dot + 1));
    if (is_empty_value(taken)) taken = nullptr;
  }
}

// What stands next to what is taken out of an object may say that it is not learned.
void check_next_to(const Json& record, const std::string& path, const RecordMapping::Fail& fail) {
  const size_t dot = path.rfind('.');
  if (record.contains(path) || dot == std::string::npos) return;
  const Json* around = find(record, std::string_view(path).substr(0, dot));
  if (around == nullptr || !around->is_object()) return;
  for (const auto& [name, value] : around->items())
    if (const std::string why = why_refused(name, nlohmann::json(value), false); !why.empty())
      fail(fmt::format("next to '{}': {}", base::shown_text(path), why));
}

// Sets a field by Snug's name. One that the data have under it is named as not used.
void set(Json& object, const std::string& name, Json value) {
  const auto own = object.find(name);
  if (own != object.end() && !is_empty_value(*own)) object[name + " (of the data)"] = *own;
  object[name] = std::move(value);
}

std::string names_of(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(base::shown_text(name));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// Calls `change` for each message of each list of messages.
void for_each_message(Json& record, const std::function<void(const std::string&, Json&)>& change) {
  for (auto& [name, value] : record.items()) {
    if (value.is_object()) change(name, value);
    if (!value.is_array()) continue;
    for (Json& item : value)
      if (item.is_object()) change(name, item);
  }
}

}  // namespace

RecordMapping::RecordMapping(std::span<const std::string> fields,
                             std::span<const std::string> roles) {
  for (const std::string& item : fields) add_field(item);
  for (const std::string& item : roles) add_role(item);
}

void RecordMapping::add_field(const std::string& item) {
  const auto [name, written] = halves("fields", item);
  std::vector<Source> sources = sources_of(item, written);
  const size_t dot = name.find('.');
  if (dot == std::string::npos) {
    if (!is_one_of(name, kFields) && is_one_of(written, kFields))
      base::throw_user_error(
          "'fields': Snug's name comes first and the data's second: {{{1}: {0}}} takes the field "
          "{0} "
          "for {1}",
          name, written);
    require_known("fields", name, kFields);
    if (makes(name))
      base::throw_user_error("'fields': '{}' is given twice; keep one of them", name);
    for (const Field& other : fields_)
      if (sources.front().is_path() && other.sources.front().written == sources.front().written)
        base::throw_user_error("'fields': '{}' and '{}' both take '{}'; what is the other's?",
                               other.name, name, base::shown_text(sources.front().written));
    fields_.push_back({name, std::move(sources)});
    return;
  }
  const std::string list = name.substr(0, dot);
  const std::string field = name.substr(dot + 1);
  require_known("fields", list,
                std::to_array<std::string_view>({"messages", "conversations", "prompt",
                                                 "completion", "chosen", "rejected", "history"}));
  require_known("fields", field, kMessageFields);
  message_fields_.push_back({list, {field, std::move(sources)}});
}

void RecordMapping::add_role(const std::string& item) {
  auto [name, role] = halves("roles", item);
  require_known("roles", role, kMappedRoles);
  const bool is_twice = std::ranges::any_of(
      roles_, [&, &given = name](const auto& each) { return each.first == given; });
  if (is_twice)
    base::throw_user_error("'roles': '{}' is given twice; keep one of them",
                           base::shown_text(name));
  roles_.emplace_back(std::move(name), std::move(role));
}

bool RecordMapping::makes(std::string_view name) const {
  return std::ranges::any_of(fields_, [&](const Field& field) { return field.name == name; });
}

const std::string* RecordMapping::taken_for(std::string_view name) const {
  const auto at = std::ranges::find(fields_, name, &Field::name);
  return at == fields_.end() ? nullptr : &at->sources.front().written;
}

std::vector<RecordMapping::Source> RecordMapping::sources_of(const std::string& item,
                                                             const std::string& written) {
  if (!written.starts_with("[\"")) return {source_of(item, written)};
  const auto fail = [&] {
    base::throw_user_error(
        "'fields': '{}': expected a list of texts such as [\"{{title}}: {{body}}\", \"title\"], of "
        "which the last alone may be empty",
        base::shown_text(item));
  };
  const nlohmann::json list =
      base::parse_json_value(written, [&](const std::string&, size_t) { fail(); });
  std::vector<Source> sources;
  for (const nlohmann::json& each : list) {
    if (!each.is_string() || (each == "" && &each != &list.back())) fail();
    sources.push_back(each == "" ? Source{} : source_of(item, each.get<std::string>()));
  }
  return sources;
}

bool RecordMapping::takes(std::string_view name) const {
  const auto lies_in = [&](std::string_view path) {
    return path.starts_with(name) && (path.size() == name.size() || path[name.size()] == '.');
  };
  return std::ranges::any_of(fields_, [&](const Field& field) {
    return std::ranges::any_of(field.sources, [&](const Source& source) {
      return std::ranges::any_of(source.paths, lies_in);
    });
  });
}

RecordMapping::Source RecordMapping::source_of(const std::string& item,
                                               const std::string& written) {
  Source source{.written = written};
  if (written.find_first_of("{}") == std::string::npos) {
    source.texts = {"", ""};
    source.paths = {written};
    return source;
  }
  const auto fail = [&](const char* what) {
    base::throw_user_error(
        "'fields': '{}': {}; a field stands in braces, as in {{title}}, and {{{{ and "
        "}}}} are braces",
        base::shown_text(item), what);
  };
  std::string text;
  for (size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    const bool is_double = i + 1 < written.size() && written[i + 1] == c;
    if (c == '\\' && i + 1 < written.size() && (written[i + 1] == 'n' || written[i + 1] == 't')) {
      text += written[++i] == 'n' ? '\n' : '\t';  // as a shell and single quotes leave them
      continue;
    }
    if ((c == '{' || c == '}') && is_double) {
      text += c;
      ++i;
    } else if (c == '{') {
      const size_t end = written.find('}', i);
      if (end == std::string::npos) fail("a brace is not closed");
      if (end == i + 1) fail("no field stands in its braces");
      source.texts.push_back(std::exchange(text, ""));
      source.paths.push_back(written.substr(i + 1, end - i - 1));
      i = end;
    } else if (c == '}') {
      fail("a brace is closed that is not open");
    } else {
      text += c;
    }
  }
  if (source.paths.empty()) fail("no field stands in it");
  source.texts.push_back(text);
  return source;
}

const RecordMapping::Source& RecordMapping::source_for(const Json& object, const Field& field) {
  const auto says_something = [&](const std::string& path) {
    const Json* value = find(object, path);
    if (value == nullptr || is_empty_value(*value)) return false;
    return !value->is_string() || !is_blank(value->get_ref<const std::string&>());
  };
  for (const Source& source : field.sources)
    if (std::ranges::all_of(source.paths, says_something)) return source;
  return field.sources.back();
}

std::optional<Json> RecordMapping::value_of(const Json& object, const std::string& name,
                                            const Source& source, std::string& why) {
  if (source.is_nothing()) return Json();
  bool says_something = source.paths.empty();
  std::string text = source.texts[0];
  for (size_t i = 0; i < source.paths.size(); ++i) {
    const std::string path = base::shown_text(source.paths[i]);
    const Json* value = find(object, source.paths[i]);
    if (value == nullptr) {
      why = fmt::format("has no '{}', which fields takes for '{}'; found: {}", path, name,
                        names_of(object));
      return std::nullopt;
    }
    if (source.is_path()) return *value;
    if (value->is_structured()) {
      why = fmt::format(
          "'{}' is {}, which the text that fields makes for '{}' cannot hold; without braces it is "
          "taken as it is",
          path, value->is_array() ? "a list" : "an object", name);
      return std::nullopt;
    }
    std::string part;
    if (value->is_string())
      part = value->get<std::string>();
    else if (!value->is_null())
      part = value->dump();
    says_something = says_something || !part.empty();
    text += part + source.texts[i + 1];
  }
  // The words of a template alone are no answer.
  return says_something ? text : std::string();
}

void RecordMapping::map_fields(Json& record, const Fail& fail) const {
  std::vector<Json> values;
  std::set<std::string> taken;
  std::string why;
  for (const Field& field : fields_) {
    const Source& source = source_for(record, field);
    std::optional<Json> value = value_of(record, field.name, source, why);
    if (!value) fail(why);
    values.push_back(std::move(*value));
    taken.insert(source.paths.begin(), source.paths.end());
  }
  for (const std::string& path : taken) check_next_to(record, path, fail);
  for (const std::string& path : taken) remove(record, path);
  for (size_t i = 0; i < fields_.size(); ++i) set(record, fields_[i].name, std::move(values[i]));
}

// A message may lack a field, as one that only calls has no text.
void RecordMapping::map_message_fields(const std::string& list, Json& message,
                                       const Fail& fail) const {
  std::vector<std::pair<std::string, Json>> values;
  std::set<std::string> taken;
  std::string why;
  for (const auto& [of_list, field] : message_fields_) {
    if (of_list != list) continue;
    const Source& source = source_for(message, field);
    std::optional<Json> value = value_of(message, field.name, source, why);
    // One that has the field by Snug's own name would be read in another way than was asked for.
    const bool has_own = field.name == "role" ? message.contains("role") || message.contains("from")
                         : field.name == "content"
                             ? message.contains("content") || message.contains("value")
                             : false;
    if (!value && has_own) fail("a message " + why);
    if (!value) continue;
    values.emplace_back(field.name, std::move(*value));
    taken.insert(source.paths.begin(), source.paths.end());
  }
  for (const std::string& path : taken) remove(message, path);
  for (auto& [name, value] : values) set(message, name, std::move(value));
}

void RecordMapping::map_messages(Json& record, const Fail& fail) const {
  for_each_message(record, [&](const std::string& list, Json& message) {
    map_message_fields(list, message, fail);
    map_role(message);
  });
}

void RecordMapping::map_role(Json& message) const {
  for (const char* key : {"role", "from"}) {
    const auto role = message.find(key);
    if (role == message.end() || !role->is_string()) continue;
    const auto is_named = [&](const auto& each) { return *role == each.first; };
    const auto meant = std::ranges::find_if(roles_, is_named);
    if (meant != roles_.end()) *role = meant->second;
  }
}

std::string RecordMapping::rewritten(const std::string& record, const Fail& fail) const {
  Json document;
  try {
    document = base::parse_ordered_json(
        record, [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); });
  } catch (const base::UserError&) {
    return record;
  }
  if (!document.is_object()) return record;
  map_fields(document, fail);
  map_messages(document, fail);
  return document.dump();
}

std::string RecordMapping::with_renamed_messages(const std::string& record) const {
  Json document = base::parse_ordered_json(
      record, [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); });
  map_messages(document, [](const std::string&) {});  // made here, they have Snug's own names
  return document.dump();
}

}  // namespace snug::text
