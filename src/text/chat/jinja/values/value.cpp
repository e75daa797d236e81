#include "text/chat/jinja/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/shown_text.h"
#include "text/chat/jinja/limits.h"
#include "text/chat/jinja/values/compare.h"

namespace snug::text::jinja {
namespace {

bool can_be_key(const Value& value) {
  if (value.is(Value::Kind::tuple)) {
    charge_steps(static_cast<int64_t>(value.items().size()));
    return std::all_of(value.items().begin(), value.items().end(), can_be_key);
  }
  return !value.is_sequence() && !value.is(Value::Kind::dict);
}

uint8_t deeper(int depth) {
  if (depth >= kMaxValueDepth) fail("lists and dictionaries nest too deep");
  return static_cast<uint8_t>(depth + 1);
}

// The sum cannot overflow: each part is within the limit, and there are fewer than 2^32 parts.
int64_t checked_size(int64_t size) {
  if (size > kMaxUnfoldedSize) fail("a list or dictionary holds too much");
  return size;
}

template <typename T>
std::shared_ptr<const T> shared(T value) {
  return std::allocate_shared<const T>(MeteredAllocator<T>(), std::move(value));
}

}  // namespace

void fail(const std::string& message) { throw TemplateError(base::with_shown_nuls(message)); }

Value Value::undefined(std::string message) {
  Value value;
  charge_bytes(static_cast<int64_t>(message.capacity()));
  value.shared_ = shared(std::move(message));
  return value;
}

Value Value::none() {
  Value value;
  value.kind_ = Kind::none;
  return value;
}

Value Value::boolean(bool truth) {
  Value value;
  value.kind_ = Kind::boolean;
  value.number_ = truth ? 1 : 0;
  return value;
}

Value Value::integer(int64_t number) {
  Value value;
  value.kind_ = Kind::integer;
  value.number_ = number;
  return value;
}

Value Value::real(double number) {
  Value value;
  value.kind_ = Kind::real;
  value.number_ = std::bit_cast<int64_t>(number);
  return value;
}

Value Value::text(std::string text, bool is_safe) {
  charge_bytes(static_cast<int64_t>(text.capacity()));
  return charged_text(std::move(text), is_safe);
}

Value Value::charged_text(std::string text, bool is_safe) {
  Value value;
  value.kind_ = Kind::text;
  value.is_safe_ = is_safe;
  value.shared_ = shared(std::move(text));
  return value;
}

Value Value::list(List items, Kind kind) {
  Value value;
  value.kind_ = kind;
  int depth = 0;
  int64_t size = 1;
  for (const Value& item : items) {
    depth = std::max(depth, item.depth());
    size += item.unfolded_size();
  }
  value.depth_ = deeper(depth);
  value.number_ = checked_size(size);
  value.shared_ = shared(std::move(items));
  return value;
}

Value Value::dict(Dict items) {
  Value value;
  value.kind_ = Kind::dict;
  int depth = 0;
  int64_t size = 1;
  for (const auto& [key, item] : items.entries()) {
    depth = std::max({depth, key.depth(), item.depth()});
    size += key.unfolded_size() + item.unfolded_size();
  }
  value.depth_ = deeper(depth);
  value.number_ = checked_size(size);
  value.shared_ = shared(std::move(items));
  return value;
}

Value Value::object(Object* object) {
  Value value;
  value.kind_ = Kind::object;
  value.object_ = object;
  return value;
}

int64_t Value::unfolded_size() const {
  if (is(Kind::text)) return 1 + static_cast<int64_t>(as_text().size());
  return is_sequence() || is(Kind::dict) ? number_ : 1;
}

double Value::as_real() const {
  return is(Kind::real) ? std::bit_cast<double>(number_) : static_cast<double>(number_);
}

std::string Value::undefined_message() const {
  return shared_ ? as_text() : "a value is undefined";
}

const Dict& Value::as_dict() const { return *static_cast<const Dict*>(shared_.get()); }

bool Value::is_true() const {
  switch (kind_) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return as_integer() != 0;
    case Kind::real:
      return as_real() != 0;
    case Kind::text:
      return !as_text().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::view:
    case Kind::range:
      return !items().empty();
    case Kind::dict:
      return as_dict().size() != 0;
    case Kind::object:
      return true;
  }
  return false;
}

std::string Value::type_name() const {
  switch (kind_) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::text:
      return is_safe_ ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::view:
      return "dict view";
    case Kind::range:
      return "range";
    case Kind::dict:
      return "dict";
    case Kind::object:
      return as_object()->type_name();
  }
  return "";
}

void Dict::set(Value key, Value value) {
  if (!can_be_key(key))
    fail(fmt::format("a {} cannot be the key of a dictionary", key.type_name()));
  const size_t place = place_of(key);
  if (place < entries_.size()) {
    entries_[place].second = std::move(value);
    return;
  }
  places_.emplace(hash_of(key), entries_.size());
  entries_.emplace_back(std::move(key), std::move(value));
}

const Value* Dict::find(std::string_view key) const {
  const auto [begin, end] = places_.equal_range(hash_of(key));
  for (auto at = begin; at != end; ++at) {
    const auto& [own, value] = entries_[at->second];
    charge_steps(1 + static_cast<int64_t>(key.size() / kComparedPerStep));
    if (own.is(Value::Kind::text) && own.as_text() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (!can_be_key(key)) return nullptr;
  const size_t place = place_of(key);
  return place < entries_.size() ? &entries_[place].second : nullptr;
}

size_t Dict::place_of(const Value& key) const {
  const auto [begin, end] = places_.equal_range(hash_of(key));
  for (auto at = begin; at != end; ++at)
    if (equal(entries_[at->second].first, key)) return at->second;
  return entries_.size();
}

}  // namespace snug::text::jinja
