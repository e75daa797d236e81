#include "scores/answer_schema.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file.h"
#include "base/json_parser.h"
#include "text/grammar/byte_automaton.h"
#include "text/grammar/schema_grammar.h"

namespace snug::scores {
namespace {

using OrderedJson = nlohmann::ordered_json;
// The place of each name of `properties`, anywhere in the schema, among all of them.
using NameOrder = std::map<std::string, size_t, std::less<>>;

struct NotJson : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

OrderedJson ordered_json_of(std::string_view text) {
  return base::parse_ordered_json(
      text, [](const std::string& problem, size_t) { throw NotJson(problem); });
}

void add_names(const OrderedJson& schema, NameOrder& order) {
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object())
    for (const auto& [name, value] : schema["properties"].items())
      order.emplace(name, order.size());
  if (schema.is_structured())
    for (const OrderedJson& value : schema) add_names(value, order);
}

// The document with the names of its objects in the schema's order, which is the one that the
// grammar has; names that the schema does not know come last.
OrderedJson in_order(const OrderedJson& value, const NameOrder& order) {
  if (value.is_array()) {
    OrderedJson list = OrderedJson::array();
    for (const OrderedJson& item : value) list.push_back(in_order(item, order));
    return list;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> names;
  names.reserve(value.size());
  for (const auto& [name, inner] : value.items()) names.push_back(name);
  std::ranges::stable_sort(names, {}, [&](const std::string& name) {
    const auto found = order.find(name);
    return found == order.end() ? order.size() : found->second;
  });
  OrderedJson object = OrderedJson::object();
  for (const std::string& name : names) object[name] = in_order(value[name], order);
  return object;
}

// Answers of all threads are read by one automaton, which remembers the states it came to.
class SchemaReader {
 public:
  SchemaReader(const std::string& schema, const std::string& file)
      : automaton_(text::schema_text_grammar(schema, file)) {
    add_names(ordered_json_of(schema), order_);
  }

  bool accepts(std::string_view answer) {
    OrderedJson document;
    try {
      document = ordered_json_of(answer);
    } catch (const NotJson&) {
      return false;
    }
    return fits(std::string(answer)) || fits(document.dump()) ||
           fits(in_order(document, order_).dump());
  }

 private:
  bool fits(const std::string& text) {
    constexpr size_t kMaxStateBytes = size_t{64} << 20;
    const std::lock_guard lock(mutex_);
    if (automaton_.bytes() > kMaxStateBytes) automaton_.clear();
    text::ByteAutomaton::State state = automaton_.start();
    for (const char byte : text) {
      state = automaton_.next(state, static_cast<uint8_t>(byte));
      if (state == text::ByteAutomaton::kDead) return false;
    }
    return automaton_.may_end(state);
  }

  std::mutex mutex_;
  text::ByteAutomaton automaton_;
  NameOrder order_;
};

}  // namespace

Judge schema_judge(const std::string& file) {
  const auto reader = std::make_shared<SchemaReader>(base::read_text_file(file), file);
  return {.one = [reader](std::string_view answer, std::string_view /*reference*/) -> double {
    return reader->accepts(answer) ? 1 : 0;
  }};
}

}  // namespace snug::scores
