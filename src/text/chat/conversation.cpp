#include "text/chat/conversation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace snug::text {
namespace {

using jinja::Dict;
using jinja::Value;
using Kind = Value::Kind;

// The names under which data sets store an assistant's thoughts; the first that is present is used.
constexpr std::array<const char*, 3> kReasoning{"reasoning_content", "thinking", "reasoning"};

Dict without_nulls(const Dict& fields) {
  Dict kept;
  for (const auto& [key, value] : fields.entries())
    if (!value.is(Kind::none)) kept.set(key, value);
  return kept;
}

// Stores the thought under every name that templates may read.
Dict with_reasoning(Dict fields) {
  const auto* const name = std::find_if(kReasoning.begin(), kReasoning.end(), [&](const char* key) {
    return fields.find(std::string_view(key)) != nullptr;
  });
  if (name == kReasoning.end()) return fields;
  const Value reasoning = *fields.find(std::string_view(*name));
  Dict named;
  named.set(Value::text("thinking"), reasoning);
  for (const auto& [key, value] : fields.entries()) named.set(key, value);
  named.set(Value::text("reasoning_content"), reasoning);
  return named;
}

// The text of a part; null if it has none.
const Value* text_of_part(const Value& part) {
  const Value* text = part.is(Kind::dict) ? part.as_dict().find(std::string_view("text")) : &part;
  return text != nullptr && text->is(Kind::text) ? text : nullptr;
}

}  // namespace

Message::Message(std::string_view role, std::string content) {
  Dict fields;
  fields.set(Value::text("role"), Value::text(std::string(role)));
  fields.set(Value::text("content"), Value::text(std::move(content)));
  fields_ = Value::dict(std::move(fields));
  is_learned_ = is_assistant();
}

Message::Message(const Value& fields)
    : fields_(Value::dict(with_reasoning(without_nulls(fields.as_dict())))),
      is_learned_(is_assistant()) {}

const std::string& Message::role() const {
  static const std::string kNone;
  const Value* role = fields_.as_dict().find(std::string_view("role"));
  return role != nullptr && role->is(Kind::text) ? role->as_text() : kNone;
}

std::string Message::content() const {
  const Value* content = find("content");
  if (content == nullptr) return "";
  if (content->is(Kind::text)) return content->as_text();
  std::vector<std::string> texts;
  if (content->is(Kind::list))
    for (const Value& part : content->items())
      if (const Value* text = text_of_part(part)) texts.push_back(text->as_text());
  return fmt::format("{}", fmt::join(texts, "\n"));
}

bool Message::has(std::string_view field) const { return find(field) != nullptr; }

const Value* Message::find(std::string_view field) const { return fields_.as_dict().find(field); }

Message Message::with(std::string_view field, Value value) const {
  Dict fields = fields_.as_dict();
  fields.set(Value::text(std::string(field)), std::move(value));
  Message other(Value::dict(std::move(fields)));
  other.is_learned_ = is_learned_;
  other.own_say_ = own_say_;
  return other;
}

Message Message::with_content(std::string content) const {
  const Value* own = find("content");
  if (own == nullptr || !own->is(Kind::list))
    return with("content", Value::text(std::move(content)));
  Dict part;
  part.set(Value::text("type"), Value::text("text"));
  part.set(Value::text("text"), Value::text(std::move(content)));
  return with("content", Value::list({Value::dict(std::move(part))}));
}

}  // namespace snug::text
