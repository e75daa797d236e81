#include "text/unwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "text/blank.h"
#include "text/fitted_conversation.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

// One thing that a conversation says.
struct Saying {
  size_t message = 0;  // from 1; 0: the conversation's
  const char* field = "";
};

// Goes through what a conversation says, always in the same order, and puts a word at the end of
// each thing; an empty one changes nothing.
class Marker {
 public:
  using WordOf = std::function<std::string(const Saying&)>;
  explicit Marker(WordOf word_of) : word_of_(std::move(word_of)) {}

  Conversation mark(const Conversation& given) const {
    Conversation marked = given;
    for (size_t i = 0; i < given.messages.size(); ++i) marked.messages[i] = message(given, i);
    marked = with_calls(
        marked, [&](size_t index, const Dict& function) { return call(index + 1, function); });
    if (given.tools.is(Kind::list)) marked.tools = tools(given.tools.items());
    return marked;
  }

 private:
  Message message(const Conversation& given, size_t index) const {
    Message result = given.messages[index];
    for (const char* field : {"content", "reasoning_content"}) {
      const Value* value = result.find(field);
      if (value == nullptr) continue;
      Value changed = text(*value, {index + 1, field});
      result = result.with(field, changed);
      if (std::string_view(field) != "content") result = result.with("thinking", changed);
    }
    return result;
  }

  // A text, or the texts of parts. An empty one says nothing.
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

  // Its name, and its arguments, to which one is added.
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

  // By name.
  Value tools(const List& given) const {
    List result;
    for (const Value& tool : given) {
      Dict outer = tool.as_dict();
      const Value* function = outer.find(std::string_view("function"));
      const bool is_wrapped = function != nullptr && function->is(Kind::dict);
      Dict inner = is_wrapped ? function->as_dict() : outer;
      if (const Value* name = inner.find(std::string_view("name")))
        inner.set(Value::text("name"), text(*name, {0, "tools"}));
      if (!is_wrapped) {
        result.push_back(Value::dict(std::move(inner)));
        continue;
      }
      outer.set(Value::text("function"), Value::dict(std::move(inner)));
      result.push_back(Value::dict(std::move(outer)));
    }
    return Value::list(std::move(result));
  }

  WordOf word_of_;
};

std::string word(const std::string& stem, size_t index) {
  return fmt::format("{}{}q", stem, index);
}

// Those whose word is not in the text where all have one.
std::vector<size_t> suspects(const Conversation& conversation, const std::string& whole,
                             const RenderChat& render, std::vector<Saying>& sayings) {
  std::string stem = "zq";
  while (whole.find(stem) != std::string::npos) stem += "xzq";
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

bool changes_nothing(const Conversation& conversation, const std::string& whole,
                     const RenderChat& render, size_t index) {
  size_t next = 0;
  const Marker one([&](const Saying&) { return next++ == index ? "zq" : ""; });
  return try_render(one.mark(conversation), render) == whole;
}

// A word at the beginning of a text: after a mark such as <think>, which templates look for.
std::string with_word_in_front(const std::string& text) {
  size_t at = text.find_first_not_of(" \t\r\n");
  if (at == std::string::npos) return text;
  const size_t end = text[at] == '<' ? text.find('>', at) : std::string::npos;
  if (end != std::string::npos) at = end + 1;
  return text.substr(0, at) + "zq" + text.substr(at);
}

// Messages whose text is written, but not from its beginning on.
void add_cut_texts(const Conversation& conversation, const std::string& whole,
                   const RenderChat& render, std::vector<Unwritten>& found) {
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const Message& message = conversation.messages[i];
    const Value* content = message.find("content");
    if (content == nullptr || !content->is(Kind::text) || is_blank(content->as_text())) continue;
    const std::string& text = content->as_text();
    const size_t begin = text.find_first_not_of(" \t\r\n");
    const size_t end = text.find_last_not_of(" \t\r\n") + 1;
    const bool is_known = std::ranges::any_of(found, [&](const Unwritten& one) {
      return one.message == i + 1 && one.field == "content";
    });
    if (is_known || whole.find(text.substr(begin, end - begin)) != std::string::npos) continue;
    Conversation marked = conversation;
    marked.messages[i] = message.with_content(with_word_in_front(text));
    if (try_render(marked, render) != whole) continue;
    found.push_back({.message = i + 1,
                     .field = "content",
                     .role = message.role(),
                     .is_learned = message.is_learned(),
                     .is_beginning = true});
  }
}

}  // namespace

std::vector<Unwritten> find_unwritten(const Conversation& conversation, const std::string& whole,
                                      const RenderChat& render) {
  std::vector<Saying> sayings;
  std::vector<Unwritten> found;
  std::vector<size_t> left(conversation.messages.size() + 1, 0);  // that are written
  const std::vector<size_t> suspected = suspects(conversation, whole, render, sayings);
  for (const Saying& saying : sayings) ++left[saying.message];
  for (const size_t index : suspected) {
    if (!changes_nothing(conversation, whole, render, index)) continue;
    const Saying& saying = sayings[index];
    --left[saying.message];
    const bool is_known = std::ranges::any_of(found, [&](const Unwritten& one) {
      return one.message == saying.message && one.field == saying.field;
    });
    if (is_known) continue;
    const Message* message =
        saying.message == 0 ? nullptr : &conversation.messages[saying.message - 1];
    found.push_back({.message = saying.message,
                     .field = saying.field,
                     .role = message == nullptr ? "" : message->role(),
                     .is_learned = message == nullptr || message->is_learned()});
  }
  for (Unwritten& one : found) one.is_all = one.message > 0 && left[one.message] == 0;
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
