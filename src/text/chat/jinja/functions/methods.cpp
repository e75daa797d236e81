#include "text/chat/jinja/functions/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "text/chat/jinja/values/compare.h"
#include "text/chat/jinja/values/iterate.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

List pairs_of(const Dict& dict) {
  charge_steps(static_cast<int64_t>(dict.size()));
  List pairs;
  for (const auto& [key, value] : dict.entries())
    pairs.push_back(Value::list({key, value}, Kind::tuple));
  return pairs;
}

Value call_dict_method(const Value& self, std::string_view name, const Arguments& arguments) {
  const Dict& dict = self.as_dict();
  if (name == "get") {
    if (!arguments.named.empty()) fail("'get' takes no arguments with names");
    const Parameters parameters(name, arguments, {"key", "default"}, 1);
    const Value* found = dict.find(parameters[0]);
    if (found != nullptr) return *found;
    return parameters.has(1) ? parameters[1] : Value::none();
  }
  if (name == "fromkeys") fail("the method 'fromkeys' is not supported");
  const Parameters none(name, arguments, {});
  if (name == "copy") return self;
  if (name == "items") return Value::list(pairs_of(dict), Kind::view);
  charge_steps(static_cast<int64_t>(dict.size()));
  List items;
  for (const auto& [key, value] : dict.entries()) items.push_back(name == "keys" ? key : value);
  return Value::list(std::move(items), Kind::view);
}

Value call_list_method(const Value& self, std::string_view name, const Arguments& arguments) {
  const List& items = self.items();
  if (name == "copy") return self;
  const Parameters parameters(name, arguments, {"value"}, 1);
  const auto is_wanted = [&](const Value& item) { return equal(item, parameters[0]); };
  if (name == "count") return Value::integer(std::count_if(items.begin(), items.end(), is_wanted));
  const auto at = std::find_if(items.begin(), items.end(), is_wanted);
  if (at == items.end()) fail("'index' looks for a value that is not in the list");
  return Value::integer(at - items.begin());
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::text:
      return has_text_method(name);
    case Kind::dict:
      return is_one_of(name, {"clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem",
                              "setdefault", "update", "values"});
    case Kind::list:
      return is_one_of(name, {"append", "clear", "copy", "count", "extend", "index", "insert",
                              "pop", "remove", "reverse", "sort"});
    case Kind::tuple:
    case Kind::range:
      return is_one_of(name, {"count", "index"});
    default:
      return false;
  }
}

bool changes_value(const Value& self, std::string_view name) {
  const bool is_mutable = self.is(Kind::dict) || self.is(Kind::list);
  return is_mutable && has_method(self, name) &&
         is_one_of(name, {"append", "clear", "extend", "insert", "pop", "popitem", "remove",
                          "reverse", "setdefault", "sort", "update"});
}

std::string change_message(const Value& self, std::string_view name) {
  return fmt::format("the method '{}' would change a {}, which a template must not", name,
                     self.type_name());
}

Value call_method(Runtime& runtime, const Value& self, std::string_view name,
                  const Arguments& arguments) {
  if (self.is(Kind::text)) return call_text_method(runtime, self, name, arguments);
  if (changes_value(self, name)) fail(change_message(self, name));
  if (self.is(Kind::dict)) return call_dict_method(self, name, arguments);
  return call_list_method(self, name, arguments);
}

}  // namespace snug::text::jinja
