#include "text/chat/unwritten_tools.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "text/chat/cut_texts.h"
#include "text/chat/fitted_conversation.h"
#include "text/chat/jinja/values/print.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::List;
using jinja::Value;
using Kind = Value::Kind;

constexpr size_t kMaxParts = 40;

// What a part becomes; nothing: it is left out.
using ChangePart = std::function<std::optional<Value>(const std::string& path, const Value& part)>;

bool is_without_words(const Value& value) {
  if (value.is(Kind::text)) return is_blank(value.as_text());
  if (value.is(Kind::list)) return value.items().empty();
  if (value.is(Kind::dict)) return value.as_dict().size() == 0;
  return value.is(Kind::none);
}

// Goes through the parts of tools, each with the path of its keys.
class ToolParts {
 public:
  explicit ToolParts(const ChangePart& change) : change_(change) {}

  Value tools(const List& given) const {
    List result;
    for (const Value& tool : given)
      result.push_back(tool.is(Kind::dict) ? Value::dict(this->tool(tool.as_dict())) : tool);
    return Value::list(std::move(result));
  }

 private:
  // A tool, or what stands in its "function".
  Dict tool(const Dict& given) const {
    const Value* function = given.find(std::string_view("function"));
    const bool has_function = function != nullptr && function->is(Kind::dict);
    Dict result;
    for (const auto& [key, value] : given.entries()) {
      const std::string name = key.is(Kind::text) ? key.as_text() : "";
      if (has_function && name == "function")
        result.set(key, Value::dict(tool(value.as_dict())));
      else if (name.empty() || name == "name" || name == "type")
        result.set(key, value);
      else
        add(result, key, value, "tools." + name);
    }
    return result;
  }

  // Names of properties are no keys.
  Dict schema(const Dict& given, const std::string& path) const {
    Dict result;
    for (const auto& [key, value] : given.entries()) {
      const std::string inner = path + "." + (key.is(Kind::text) ? key.as_text() : "");
      if (inner.ends_with(".properties") && value.is(Kind::dict)) {
        Dict properties;
        for (const auto& [name, property] : value.as_dict().entries())
          properties.set(name, property.is(Kind::dict)
                                   ? Value::dict(schema(property.as_dict(), inner))
                                   : property);
        result.set(key, Value::dict(std::move(properties)));
      } else {
        add(result, key, value, inner);
      }
    }
    return result;
  }

  // That a schema is an object its properties say.
  static bool is_idle(const std::string& path, const Value& value) {
    return is_without_words(value) ||
           (path.ends_with(".type") && value.is(Kind::text) && value.as_text() == "object");
  }

  // Schemas stand in a tool's parameters, and in the items of a schema.
  void add(Dict& result, const Value& key, const Value& value, const std::string& path) const {
    const std::optional<Value> changed = is_idle(path, value) ? value : change_(path, value);
    if (!changed) return;
    const bool is_schema = path.ends_with(".parameters") || path.ends_with(".items");
    result.set(key, is_schema && changed->is(Kind::dict)
                        ? Value::dict(schema(changed->as_dict(), path))
                        : *changed);
  }

  const ChangePart& change_;
};

Conversation with_parts(const Conversation& given, const ChangePart& change) {
  Conversation changed = given;
  changed.tools = ToolParts(change).tools(given.tools.items());
  return changed;
}

// A word at the end of all texts, but those that a template compares.
Value text_with_word(const Value& value, const std::string& word) {
  if (value.is(Kind::text)) return Value::text(value.as_text() + word);
  if (value.is(Kind::list)) {
    List items;
    for (const Value& item : value.items()) items.push_back(text_with_word(item, word));
    return Value::list(std::move(items));
  }
  if (!value.is(Kind::dict)) return value;
  Dict fields;
  for (const auto& [key, field] : value.as_dict().entries())
    fields.set(key,
               key.is(Kind::text) && key.as_text() == "type" ? field : text_with_word(field, word));
  return Value::dict(std::move(fields));
}

// Types and names of properties decide what a template writes; schemas are gone through.
bool takes_word(std::string_view path) {
  constexpr std::array<std::string_view, 4> kOthers{".type", ".required", ".parameters", ".items"};
  return std::ranges::none_of(kOthers, [&](std::string_view end) { return path.ends_with(end); });
}

// The paths, each once, whose words are not in the text where each has one.
std::vector<std::string> not_seen(const Conversation& conversation, const std::string& whole,
                                  const RenderChat& render) {
  const std::string stem = stem_not_in(whole);
  std::vector<std::string> paths;
  const auto word = [&](size_t index) { return stem + std::to_string(index) + "q"; };
  const Conversation all =
      with_parts(conversation, [&](const std::string& path, const Value& part) {
        const auto at = static_cast<size_t>(std::ranges::find(paths, path) - paths.begin());
        if (at == paths.size() && at == kMaxParts) return part;
        if (at == paths.size()) paths.push_back(path);
        return takes_word(path) ? text_with_word(part, word(at)) : part;
      });
  const std::string text = try_render(all, render).value_or("");
  std::vector<std::string> suspects;
  for (size_t i = 0; i < paths.size(); ++i)
    if (text.find(word(i)) == std::string::npos) suspects.push_back(std::move(paths[i]));
  return suspects;
}

// Most templates write tools as JSON, all of it.
bool writes_json(const List& tools, const std::string& whole) {
  return std::ranges::all_of(tools, [&](const Value& tool) {
    return whole.find(jinja::print_json(tool, {}).as_text()) != std::string::npos;
  });
}

}  // namespace

void add_unwritten_tool_parts(const Conversation& conversation, const std::string& whole,
                              const RenderChat& render, std::vector<Unwritten>& found) {
  if (!conversation.tools.is(Kind::list)) return;
  const auto is_tools = [](const Unwritten& one) {
    return one.message == 0 && one.field == "tools";
  };
  if (std::ranges::any_of(found, is_tools) || writes_json(conversation.tools.items(), whole))
    return;
  std::vector<std::string> unwritten;
  for (const std::string& path : not_seen(conversation, whole, render)) {
    const auto is_within = [&](const std::string& outer) { return path.starts_with(outer + "."); };
    if (std::ranges::any_of(unwritten, is_within)) continue;
    const Conversation less =
        with_parts(conversation, [&](const std::string& each, const Value& part) {
          return each == path ? std::nullopt : std::optional<Value>(part);
        });
    if (try_render(less, render) == whole) unwritten.push_back(path);
  }
  for (std::string& path : unwritten) found.push_back({.message = 0, .field = std::move(path)});
}

}  // namespace snug::text
