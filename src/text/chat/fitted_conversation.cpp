#include "text/chat/fitted_conversation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_parser.h"
#include "text/chat/jinja/allowance.h"
#include "text/chat/jinja/values/json_values.h"
#include "text/chat/jinja/values/print.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

const std::string* text_in(const Dict& dict, std::string_view key) {
  const Value* value = dict.find(key);
  return value != nullptr && value->is(Kind::text) ? &value->as_text() : nullptr;
}

[[noreturn]] void refuse_part(size_t message, const Value& part) {
  const std::string* type =
      part.is(Kind::dict) ? text_in(part.as_dict(), "type") : static_cast<std::string*>(nullptr);
  base::throw_user_error(
      "message {}: its 'content' holds a part {}, and only text is learned; remove the part or the "
      "record",
      message + 1, type != nullptr ? fmt::format("of the type '{}'", *type) : "without text");
}

// The key of a part's content: its text or its thought.
const char* key_of(const Value& part) {
  return *text_in(part.as_dict(), "type") == "thinking" ? "thinking" : "text";
}

// The part with its type and without null fields, which tabular data adds; a plain text is a part
// as well. Throws for a part that is not text.
Value checked_part(size_t message, const Value& part) {
  constexpr std::array<std::string_view, 4> kTypes{"text", "input_text", "output_text", "thinking"};
  Dict fields;
  const bool is_text = part.is(Kind::text);
  if (!is_text && !part.is(Kind::dict)) refuse_part(message, part);
  if (is_text || text_in(part.as_dict(), "type") == nullptr)
    fields.set(Value::text("type"), Value::text("text"));
  if (is_text) fields.set(Value::text("text"), part);
  if (!is_text)
    for (const auto& [key, value] : part.as_dict().entries())
      if (!value.is(Kind::none)) fields.set(key, value);
  const std::string* type = text_in(fields, "type");
  if (type == nullptr || std::ranges::find(kTypes, *type) == kTypes.end())
    refuse_part(message, part);
  Value checked = Value::dict(std::move(fields));
  if (text_in(checked.as_dict(), key_of(checked)) == nullptr) refuse_part(message, part);
  return checked;
}

// The content of the parts with type "thinking".
std::optional<std::string> thought_in_parts(const Message& message) {
  std::vector<std::string> thoughts;
  for (const Value& part : message.find("content")->items())
    if (key_of(part) == std::string_view("thinking"))
      thoughts.push_back(*text_in(part.as_dict(), "thinking"));
  if (thoughts.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(thoughts, "\n"));
}

Message joined(const Message& message) {
  const Message result = message.with("content", Value::text(message.content()));
  const auto thought = thought_in_parts(message);
  if (!thought || message.has("reasoning_content")) return result;
  return result.with("reasoning_content", Value::text(*thought));
}

// A message may have its thought as a part or in a field of its own, but not two different ones.
void check_thoughts(size_t index, const Message& message) {
  const std::string* own = text_in(message.fields().as_dict(), "reasoning_content");
  const auto thought = thought_in_parts(message);
  if (own != nullptr && thought && !is_blank(*own) && *own != *thought)
    base::throw_user_error(
        "message {}: its 'reasoning_content' and the parts of the type 'thinking' in its 'content' "
        "say different things; leave out one of them",
        index + 1);
}

bool has_parts(const Message& message) {
  const Value* content = message.find("content");
  return content != nullptr && content->is(Kind::list);
}

Conversation each_with_parts(const Conversation& given,
                             const std::function<Message(size_t, const Message&)>& change) {
  Conversation result = given;
  for (size_t i = 0; i < given.messages.size(); ++i)
    if (has_parts(given.messages[i])) result.messages[i] = change(i, given.messages[i]);
  return result;
}

// Words that occur nowhere else: one for the texts of a message's parts, and one for a field that
// is added to each part, which only a template that prints whole parts would write.
std::string text_word(size_t message) { return fmt::format("zq0text{}qz", message); }
std::string field_word(size_t message) { return fmt::format("zq0field{}qz", message); }

Message with_words(size_t index, const Message& message) {
  List parts;
  for (const Value& part : message.find("content")->items()) {
    Dict fields = part.as_dict();
    const char* key = key_of(part);
    fields.set(Value::text(key), Value::text(*text_in(fields, key) + text_word(index)));
    fields.set(Value::text(field_word(index)), Value::text(""));
    parts.push_back(Value::dict(std::move(fields)));
  }
  return message.with("content", Value::list(std::move(parts)));
}

std::optional<Value> parsed(const Value& arguments) {
  if (arguments.is(Kind::none)) return Value::dict({});
  if (!arguments.is(Kind::text)) return std::nullopt;
  const std::string& text = arguments.as_text();
  if (is_blank(text)) return Value::dict({});
  try {
    base::parse_json_value(
        text, [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); });
    Value value = jinja::value_of_json(text);
    if (value.is(Kind::dict) || value.is(Kind::list)) return value;
  } catch (const std::exception&) {  // not JSON, or with a number that templates cannot handle
  }
  return std::nullopt;
}

// The arguments of all calls, in order.
struct CallArguments {
  size_t message = 0;
  std::string name;
  Value value;
};

std::vector<CallArguments> arguments_of(const Conversation& conversation) {
  std::vector<CallArguments> all;
  with_calls(conversation, [&](size_t message, const Dict& function) {
    const std::string* name = text_in(function, "name");
    if (const Value* value = function.find("arguments"))
      all.push_back({message, name != nullptr ? *name : "", *value});
    return function;
  });
  return all;
}

Conversation with_arguments(const Conversation& conversation,
                            const std::function<std::optional<Value>(const Value&)>& change) {
  return with_calls(conversation, [&](size_t, const Dict& function) {
    const Value* arguments = function.find("arguments");
    std::optional<Value> changed = arguments != nullptr ? change(*arguments) : std::nullopt;
    Dict result = function;
    if (changed) result.set(Value::text("arguments"), std::move(*changed));
    return result;
  });
}

size_t quoted(const std::string& text, const std::vector<CallArguments>& all) {
  size_t count = 0;
  for (const CallArguments& one : all)
    if (one.value.is(Kind::text))
      count += occurrences(text, jinja::print_json(one.value, {}).as_text());
  return count;
}

bool writes_as_they_are(const std::string& text, const std::vector<CallArguments>& all) {
  return std::ranges::all_of(all, [&](const CallArguments& one) {
    return !one.value.is(Kind::text) || text.find(one.value.as_text()) != std::string::npos;
  });
}

using Text = std::optional<std::string>;

bool prints_parts(const Text& text, size_t message) {
  return text && text->find(field_word(message)) != std::string::npos;
}

// The messages whose parts should be joined into one text: those whose parts the template would
// print as a list, and those of which it writes more texts when they are joined. A template that
// refuses all messages with joined texts expects parts.
std::vector<bool> joined_messages(const Conversation& marked, const Text& as_parts,
                                  const Text& as_text) {
  std::vector<bool> joins;
  for (size_t i = 0; i < marked.messages.size(); ++i) {
    const size_t of_parts = as_parts ? occurrences(*as_parts, text_word(i)) : 0;
    const size_t of_text = as_text ? occurrences(*as_text, text_word(i)) : 0;
    joins.push_back(!as_parts || prints_parts(as_parts, i) || of_text > of_parts);
  }
  return joins;
}

// Throws if the template would print parts as a list, which no model should see.
void refuse_printed_parts(const Conversation& marked, const Text& text) {
  for (size_t i = 0; i < marked.messages.size(); ++i)
    if (prints_parts(text, i))
      base::throw_user_error(
          "message {}: its 'content' is a list of parts, which the chat template prints as it is, "
          "with brackets and names of fields; and it does not take the text alone. Choose another "
          "template with chat_template=, or give the 'content' as a text",
          i + 1);
}

Conversation with_fitted_parts(const Conversation& given, const RenderChat& render) {
  if (std::ranges::none_of(given.messages, has_parts)) return given;
  const Conversation checked = each_with_parts(given, [](size_t index, const Message& message) {
    List parts;
    for (const Value& part : message.find("content")->items())
      parts.push_back(checked_part(index, part));
    Message result = message.with("content", Value::list(std::move(parts)));
    check_thoughts(index, result);
    return result;
  });
  const Conversation marked = each_with_parts(checked, with_words);
  const auto join = [](size_t, const Message& message) { return joined(message); };
  // Renders with parsed arguments if the template accepts them, else with the given ones. How calls
  // are to be written is decided separately.
  const auto written = [&](const Conversation& conversation) {
    auto text = try_render(with_arguments(conversation, parsed), render);
    return text ? text : try_render(conversation, render);
  };
  const Text as_parts = written(marked);
  const Text as_text = written(each_with_parts(marked, join));
  const std::vector<bool> joins = joined_messages(marked, as_parts, as_text);
  const auto join_some = [&](size_t index, const Message& message) {
    return joins[index] ? joined(message) : message;
  };
  const bool is_mixed = as_parts && !as_text && std::ranges::find(joins, true) != joins.end();
  if (is_mixed && !written(each_with_parts(marked, join_some)))
    refuse_printed_parts(marked, as_parts);
  return each_with_parts(checked, join_some);
}

// Arguments of null or a blank text are those of a call that has none.
Conversation without_empty_arguments(const Conversation& written) {
  return with_arguments(written, [](const Value& value) {
    const bool is_empty =
        value.is(Kind::none) || (value.is(Kind::text) && is_blank(value.as_text()));
    return is_empty ? std::optional(Value::text("{}")) : std::nullopt;
  });
}

Conversation with_fitted_arguments(const Conversation& written, const RenderChat& render) {
  const Conversation given = without_empty_arguments(written);
  const std::vector<CallArguments> all = arguments_of(given);
  if (all.empty()) return given;
  const auto is_object = [](const CallArguments& one) { return one.value.is(Kind::dict); };
  const bool has_texts = !std::ranges::all_of(all, is_object);
  const auto as_given = try_render(given, render);
  if (!has_texts) {
    if (as_given) return given;
    Conversation printed =
        with_arguments(given, [](const Value& value) { return jinja::print_json(value, {}); });
    return try_render(printed, render) ? printed : given;
  }
  // Arguments that are not an object are replaced by an empty object, to see what the template
  // writes around them.
  Conversation objects = with_arguments(given, [](const Value& value) {
    std::optional<Value> object = parsed(value);
    return object || !value.is(Kind::text) ? object : Value::dict({});
  });
  const auto as_objects = try_render(objects, render);
  const bool takes_texts = as_given && writes_as_they_are(*as_given, all) &&
                           (!as_objects || quoted(*as_given, all) <= quoted(*as_objects, all));
  if (takes_texts || !as_objects) return given;
  for (const CallArguments& one : all)
    if (one.value.is(Kind::text) && !parsed(one.value))
      base::throw_user_error(
          "message {}: the 'arguments' of the call '{}' are text that is no JSON object, and the "
          "chat template writes an object; mend them or remove the record",
          one.message + 1, one.name);
  return objects;
}

}  // namespace

std::optional<std::string> try_render(const Conversation& conversation, const RenderChat& render) {
  try {
    return render(conversation);
  } catch (const base::UserError&) {
    if (jinja::Allowance::is_spent()) throw;
    return std::nullopt;
  }
}

size_t occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

Conversation with_calls(const Conversation& conversation, const ChangeCall& change) {
  Conversation result = conversation;
  for (size_t i = 0; i < result.messages.size(); ++i) {
    const Value* calls = result.messages[i].find("tool_calls");
    if (calls == nullptr || !calls->is(Kind::list)) continue;
    List changed;
    for (const Value& call : calls->items()) {
      const Value* function = call.is(Kind::dict) ? call.as_dict().find("function") : nullptr;
      if (function != nullptr && function->is(Kind::dict)) {
        Dict outer = call.as_dict();
        outer.set(Value::text("function"), Value::dict(change(i, function->as_dict())));
        changed.push_back(Value::dict(std::move(outer)));
      } else {
        changed.push_back(call.is(Kind::dict) ? Value::dict(change(i, call.as_dict())) : call);
      }
    }
    result.messages[i] = result.messages[i].with("tool_calls", Value::list(std::move(changed)));
  }
  return result;
}

Conversation with_texts_as_parts(const Conversation& conversation) {
  Conversation result = conversation;
  for (Message& message : result.messages)
    if (const Value* content = message.find("content"); content && content->is(Kind::text))
      message = message.with("content", Value::list({})).with_content(message.content());
  return result;
}

bool takes_parts_only(const RenderChat& render) {
  const std::string word = text_word(0);
  const Conversation texts{.messages = {{"user", word}, {"assistant", word}}};
  const auto writes = [&](const Conversation& conversation) {
    return occurrences(try_render(conversation, render).value_or(""), word) == 2;
  };
  return !writes(texts) && writes(with_texts_as_parts(texts));
}

Conversation fitted_conversation(const Conversation& given, const RenderChat& render) {
  return with_fitted_arguments(with_fitted_parts(given, render), render);
}

}  // namespace snug::text
