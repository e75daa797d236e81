#include "text/chat/unwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "base/error.h"
#include "text/chat/cut_texts.h"
#include "text/chat/fitted_conversation.h"
#include "text/chat/unwritten_tools.h"
#include "text/unicode/blank.h"
#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

// One item of a conversation's content.
struct Saying {
  size_t message = 0;  // counted from 1; 0: belongs to the conversation as a whole
  const char* field = "";
};

// Whether the item is an answer (text or call), rather than a name that says who answers.
bool is_text_or_call(const Saying& saying) {
  const std::string_view field = saying.field;
  return field != "name" && field != "tools";
}

// A tool's description: its "function", or the tool itself.
const Dict& description_of(const Value& tool) {
  const Value* function = tool.as_dict().find(std::string_view("function"));
  return function != nullptr && function->is(Kind::dict) ? function->as_dict() : tool.as_dict();
}

bool has_name(const Value& tool) {
  if (!tool.is(Kind::dict)) return false;
  const Value* name = description_of(tool).find(std::string_view("name"));
  return name != nullptr && name->is(Kind::text) && !is_blank(name->as_text());
}

// Goes through the items of a conversation, always in the same order, and appends a word to each;
// an empty word changes nothing.
class Marker {
 public:
  using WordOf = std::function<std::string(const Saying&)>;
  explicit Marker(WordOf word_of) : word_of_(std::move(word_of)) {}

  Conversation mark(const Conversation& given) const {
    Conversation marked = given;
    for (size_t i = 0; i < given.messages.size(); ++i) marked.messages[i] = message(given, i);
    marked = with_calls(
        marked, [&](size_t index, const Dict& function) { return call(index + 1, function); });
    if (given.tools.is(Kind::list)) marked.tools = tools(given.tools.items(), 0);
    return marked;
  }

 private:
  Message message(const Conversation& given, size_t index) const {
    Message result = given.messages[index];
    for (const char* field : {"content", "reasoning_content", "name"}) {
      const Value* value = result.find(field);
      if (value == nullptr) continue;
      const Value changed = text(*value, {index + 1, field});
      result = result.with(field, changed);
      if (std::string_view(field) == "reasoning_content") result = result.with("thinking", changed);
    }
    const Value* own = result.find("tools");
    return own != nullptr && own->is(Kind::list)
               ? result.with("tools", tools(own->items(), index + 1))
               : result;
  }

  // A text, or the texts of parts. An empty text is not an item.
  Value text(const Value& value, const Saying& saying) const {
    if (value.is(Kind::text))
      return is_blank(value.as_text()) ? value : Value::text(value.as_text() + word_of_(saying));
    if (!value.is(Kind::list)) return value;
    List parts;
    for (const Value& part : value.items()) parts.push_back(this->part(part, saying));
    return Value::list(std::move(parts));
  }

  Value part(const Value& value, const Saying& saying) const {
    if (!value.is(Kind::dict)) return text(value, saying);
    Dict fields = value.as_dict();
    for (const char* key : {"text", "thinking"})
      if (const Value* own = fields.find(std::string_view(key)); own != nullptr)
        fields.set(Value::text(key), text(*own, saying));
    return Value::dict(std::move(fields));
  }

  // A call's name, and its arguments, to which one is added.
  Dict call(size_t number, const Dict& function) const {
    Dict result = function;
    const Saying saying{number, "tool_calls"};
    if (const Value* name = function.find(std::string_view("name")))
      result.set(Value::text("name"), text(*name, saying));
    const Value* given = function.find(std::string_view("arguments"));
    if (given == nullptr) return result;
    if (given->is(Kind::text)) result.set(Value::text("arguments"), text(*given, saying));
    if (!given->is(Kind::dict)) return result;
    Dict arguments = given->as_dict();
    if (const std::string word = word_of_(saying); !word.empty())
      arguments.set(Value::text(word), Value::text(word));
    result.set(Value::text("arguments"), Value::dict(std::move(arguments)));
    return result;
  }

  // Tools, by name.
  Value tools(const List& given, size_t message) const {
    List result;
    for (const Value& tool : given)
      result.push_back(has_name(tool) ? this->tool(tool, message) : tool);
    return Value::list(std::move(result));
  }

  Value tool(const Value& given, size_t message) const {
    Dict inner = description_of(given);
    const Value name = *inner.find(std::string_view("name"));
    inner.set(Value::text("name"), text(name, {message, "tools"}));
    if (&description_of(given) == &given.as_dict()) return Value::dict(std::move(inner));
    Dict outer = given.as_dict();
    outer.set(Value::text("function"), Value::dict(std::move(inner)));
    return Value::dict(std::move(outer));
  }

  WordOf word_of_;
};

std::string word(const std::string& stem, size_t index) {
  return fmt::format("{}{}q", stem, index);
}

// The items whose words are missing in the output when all items have one.
std::vector<size_t> suspects(const Conversation& conversation, const std::string& whole,
                             const RenderChat& render, std::vector<Saying>& sayings) {
  const std::string stem = stem_not_in(whole);
  const Marker all([&](const Saying& saying) {
    sayings.push_back(saying);
    return word(stem, sayings.size() - 1);
  });
  const auto text = try_render(all.mark(conversation), render);
  std::vector<size_t> found;
  for (size_t i = 0; i < sayings.size(); ++i)
    if (!text || text->find(word(stem, i)) == std::string::npos) found.push_back(i);
  return found;
}

bool change_nothing(const Conversation& conversation, const std::string& whole,
                    const RenderChat& render, std::span<const size_t> indices) {
  size_t next = 0;
  const Marker some(
      [&](const Saying&) { return std::ranges::binary_search(indices, next++) ? "zq" : ""; });
  return try_render(some.mark(conversation), render) == whole;
}

// The suspects, in ascending order, whose words have no effect. Usually that is all of them or
// none, so they are first tried together.
std::vector<size_t> unwritten_among(const Conversation& conversation, const std::string& whole,
                                    const RenderChat& render, std::span<const size_t> suspected) {
  if (suspected.empty()) return {};
  if (change_nothing(conversation, whole, render, suspected))
    return {suspected.begin(), suspected.end()};
  if (suspected.size() == 1) return {};
  const size_t half = suspected.size() / 2;
  auto found = unwritten_among(conversation, whole, render, suspected.first(half));
  const auto rest = unwritten_among(conversation, whole, render, suspected.subspan(half));
  found.insert(found.end(), rest.begin(), rest.end());
  return found;
}

bool is_known(const std::vector<Unwritten>& found, size_t message, std::string_view field) {
  return std::ranges::any_of(
      found, [&](const Unwritten& one) { return one.message == message && one.field == field; });
}

// Adds tools that are not written. A tool without a name cannot carry a word, so it is removed
// instead.
void add_silent_tools(const Conversation& conversation, const std::string& whole,
                      const RenderChat& render, std::vector<Unwritten>& found) {
  if (!conversation.tools.is(Kind::list) || is_known(found, 0, "tools")) return;
  const List& tools = conversation.tools.items();
  List named;
  std::ranges::copy_if(tools, std::back_inserter(named), has_name);
  if (named.size() == tools.size()) return;
  Conversation less = conversation;
  less.tools = Value::list(std::move(named));
  if (try_render(less, render) == whole) found.push_back({.message = 0, .field = "tools"});
}

Value another_value(const Value& value) {
  switch (value.kind()) {
    case Kind::text:
      return Value::text(value.as_text() + "zq");
    case Kind::boolean:
      return Value::boolean(!value.as_boolean());
    default:
      return value.is_true() ? Value::none() : Value::text("zq");
  }
}

// Adds variables without effect: neither removing them nor changing their value changes the output.
void add_idle_variables(const Conversation& conversation, const std::string& whole,
                        const RenderChat& render, std::vector<Unwritten>& found) {
  constexpr size_t kMostShown = 60;
  for (size_t i = 0; i < conversation.variables.size(); ++i) {
    const auto& [name, value] = conversation.variables[i];
    Conversation changed = conversation;
    changed.variables.erase(changed.variables.begin() + static_cast<std::ptrdiff_t>(i));
    if (try_render(changed, render) != whole) continue;
    changed.variables.emplace_back(name, another_value(value));
    if (try_render(changed, render) != whole) continue;
    found.push_back(
        {.message = 0,
         .field = fmt::format("chat_template_kwargs.{}", first_bytes(name, kMostShown))});
  }
}

}  // namespace

std::vector<Unwritten> find_unwritten(const Conversation& conversation, const std::string& whole,
                                      const RenderChat& render) {
  std::vector<Saying> sayings;
  std::vector<Unwritten> found;
  std::vector<size_t> left(conversation.messages.size() + 1, 0);  // by message: its texts and calls
                                                                  // that are written
  const std::vector<size_t> suspected = suspects(conversation, whole, render, sayings);
  for (const Saying& saying : sayings)
    if (is_text_or_call(saying)) ++left[saying.message];
  for (const size_t index : unwritten_among(conversation, whole, render, suspected)) {
    const Saying& saying = sayings[index];
    if (is_text_or_call(saying)) --left[saying.message];
    if (is_known(found, saying.message, saying.field)) continue;
    const Message* message =
        saying.message == 0 ? nullptr : &conversation.messages[saying.message - 1];
    found.push_back({.message = saying.message,
                     .field = saying.field,
                     .role = message == nullptr ? "" : message->role(),
                     .is_learned = message == nullptr || message->is_learned()});
  }
  for (Unwritten& one : found)
    one.is_all = is_text_or_call({one.message, one.field.c_str()}) && one.message > 0 &&
                 left[one.message] == 0;
  add_silent_tools(conversation, whole, render, found);
  add_unwritten_tool_parts(conversation, whole, render, found);
  add_idle_variables(conversation, whole, render, found);
  add_cut_texts(conversation, whole, render, found);
  return found;
}

void refuse_unwritten_answers(const std::vector<Unwritten>& unwritten) {
  for (const Unwritten& one : unwritten) {
    const bool is_call = one.field == "tool_calls";
    if (one.role != "assistant" || !one.is_learned || !(is_call || one.is_all)) continue;
    base::throw_user_error(
        "message {}: the chat template does not write its '{}', so that a model would learn to {}; "
        "choose a template that writes them with chat_template=, or remove the record",
        one.message, one.field, one.is_all ? "answer with nothing" : "end its turn without them");
  }
}

}  // namespace snug::text
