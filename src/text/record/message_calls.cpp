#include "text/record/message_calls.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/json_parser.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/values/json_values.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

// A field that holds objects, and the message that has it.
struct ObjectField {
  const RecordFields& fields;
  std::string name;       // "message 2: 'tool_calls'"
  std::string complaint;  // of what is no object
};

std::string name_of_field(std::string_view field, size_t number) {
  return number == 0 ? fmt::format("the field '{}'", field)
                     : fmt::format("message {}: '{}'", number, field);
}

Value value_of_text(const ObjectField& field, const std::string& text) {
  base::parse_json_value(text, [&](const std::string& problem, size_t) {
    field.fields.fail(fmt::format("{} is text that is not JSON: {}", field.name, problem));
  });
  try {
    return jinja::value_of_json(text);
  } catch (const jinja::TemplateError& error) {
    field.fields.fail(fmt::format("{}: {}", field.name, error.what()));
  }
}

// The objects of a list or a single one, each of which may be written as text, as may be the list.
// None for null and a blank text.
Value objects_of(const ObjectField& field, const Value& written) {
  if (written.is(Kind::text)) {
    if (is_blank(written.as_text())) return Value::none();
    const Value read = value_of_text(field, written.as_text());
    if (read.is(Kind::text)) field.fields.fail(field.complaint);
    return objects_of(field, read);
  }
  if (written.is(Kind::none)) return written;
  if (!written.is_true()) return Value::list({});
  const List alone{written};
  List objects;
  for (const Value& item : written.is(Kind::list) ? written.items() : alone) {
    const Value object = item.is(Kind::text) ? value_of_text(field, item.as_text()) : item;
    if (!object.is(Kind::dict)) field.fields.fail(field.complaint);
    objects.push_back(object);
  }
  return Value::list(std::move(objects));
}

bool call_lacks(const Dict& function, std::string_view key) {
  const Value* value = function.find(key);
  return value == nullptr || value->is(Kind::none);
}

}  // namespace

Value read_calls(const RecordFields& fields, const Value& written, size_t number) {
  const ObjectField field{
      fields, fmt::format("message {}: the call", number),
      fmt::format("message {}: expected a call to be an object with a name and arguments", number)};
  const Value objects = objects_of(field, written);
  List calls;
  for (const Value& call : objects.is(Kind::list) ? objects.items() : List()) {
    if (call.as_dict().find(std::string_view("name")) == nullptr) fields.fail(field.complaint);
    Dict entry;
    entry.set(Value::text("type"), Value::text("function"));
    entry.set(Value::text("function"), call);
    calls.push_back(Value::dict(std::move(entry)));
  }
  return Value::list(std::move(calls));
}

Value read_tool_calls(const RecordFields& fields, const Value& written, size_t number) {
  const std::string name = name_of_field("tool_calls", number);
  return objects_of({fields, name,
                     fmt::format("{}: expected a list of calls, each an object, or their JSON as "
                                 "text",
                                 name)},
                    written);
}

Value read_tool_list(const RecordFields& fields, const Value& written, size_t number) {
  const std::string name = name_of_field("tools", number);
  return objects_of(
      {fields, name,
       fmt::format("{}: expected a list of objects, or their JSON as text; ignore_fields=tools "
                   "reads the records without it",
                   name)},
      written);
}

Value read_tools(const RecordFields& fields) {
  if (!fields.holds("tools")) return Value::none();
  return read_tool_list(fields, fields.value_of("tools"), 0);
}

std::string incomplete_calls(const Conversation& conversation) {
  std::string found;
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const Value* calls = conversation.messages[i].find("tool_calls");
    if (calls == nullptr || !calls->is(Kind::list)) continue;
    for (size_t number = 1; number <= calls->items().size(); ++number) {
      const Value& call = calls->items()[number - 1];
      const Value* inner = call.is(Kind::dict) ? call.as_dict().find("function") : nullptr;
      const Value& function = inner != nullptr ? *inner : call;
      for (const char* key : {"name", "arguments"})
        if (!function.is(Kind::dict) || call_lacks(function.as_dict(), key))
          found +=
              fmt::format("; message {}: call {} of 'tool_calls' has no '{}'", i + 1, number, key);
    }
  }
  return found;
}

}  // namespace snug::text
