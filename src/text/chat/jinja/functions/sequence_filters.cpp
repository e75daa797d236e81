#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/values/attributes.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/operators.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

Value default_value(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("default", arguments, {"default_value", "boolean"});
  const bool replaces =
      input.is(Kind::undefined) || (parameters.truth(1, false) && !input.is_true());
  if (!replaces) return input;
  return parameters.has(0) ? parameters[0] : Value::text("");
}

Value length_of(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("length", arguments, {});
  if (input.is(Kind::undefined)) return Value::integer(0);
  if (input.is(Kind::text)) return Value::integer(length(input.as_text()));
  if (input.is(Kind::dict)) return Value::integer(static_cast<int64_t>(input.as_dict().size()));
  if (input.is_sequence()) return Value::integer(static_cast<int64_t>(input.items().size()));
  fail(fmt::format("a {} has no length", input.type_name()));
}

Value first(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("first", arguments, {});
  if (Generator* generator = generator_of(input)) {
    const Value* next = generator->next();
    return next != nullptr ? *next : Value::undefined("the first item of an empty sequence");
  }
  if (!is_iterable(input)) return Elements(input)[0];  // throws
  return end_element(input, false);
}

void check_reversible(const char* filter, const Value& input) {
  if (input.is(Kind::undefined)) fail(input.undefined_message());
  if (!input.is_sequence() && !input.is(Kind::text) && !input.is(Kind::dict))
    fail(fmt::format("'{}' cannot go through a {} from its end", filter, input.type_name()));
}

Value last(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("last", arguments, {});
  check_reversible("last", input);
  const Value item = end_element(input, true);
  // Python indexes a text to go through it from its end, and indexing safe text gives safe text.
  const bool is_safe = input.is_safe() && item.is(Kind::text);
  return is_safe ? Value::text(item.as_text(), true) : item;
}

Value join(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("join", arguments, {"d", "attribute"});
  const std::string separator = print(parameters[0]);
  const bool has_path = parameters.has(1) && !parameters[1].is(Kind::none);
  TextBuilder out;
  bool is_first = true;
  for (const Value& item : elements(input)) {
    if (!is_first) out.add(separator);
    is_first = false;
    print_to(out, has_path ? path_of(runtime, item, parameters[1]) : item);
  }
  return out.take_value();
}

Value to_list(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("list", arguments, {});
  return Value::list(elements(input).take());
}

Value items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("items", arguments, {});
  if (input.is(Kind::undefined)) return runtime.generator({});
  if (!input.is(Kind::dict))
    fail(fmt::format("'items' takes a dictionary, not a {}", input.type_name()));
  charge_steps(static_cast<int64_t>(input.as_dict().size()));
  List pairs;
  for (const auto& [key, value] : input.as_dict().entries())
    pairs.push_back(Value::list({key, value}, Kind::tuple));
  return runtime.generator(std::move(pairs));
}

Value reverse(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("reverse", arguments, {});
  List all = elements(input).take();
  std::reverse(all.begin(), all.end());
  if (!input.is(Kind::text)) return runtime.generator(std::move(all));
  TextBuilder text(input.as_text().size());
  for (const Value& character : all) text.add(character.as_text());
  return text.take_value(input.is_safe());
}

Value sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("sum", arguments, {"attribute", "start"});
  const bool has_path = parameters.has(0) && !parameters[0].is(Kind::none);
  Value total = parameters.has(1) ? parameters[1] : Value::integer(0);
  if (total.is(Kind::text)) fail("'sum' adds no texts");
  for (const Value& item : elements(input))
    total = binary(runtime, "+", total, has_path ? path_of(runtime, item, parameters[0]) : item);
  return total;
}

// Lists of `linecount` items each; the last one is filled up if fill_with is given.
Value batch(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = parameters.integer(0, 0);
  if (size < 1 || size > kMaxRange) fail("'batch' has a size that it cannot make");
  List batches;
  List open;
  for (const Value& item : elements(input)) {
    if (static_cast<int64_t>(open.size()) == size)
      batches.push_back(Value::list(std::exchange(open, {})));
    open.push_back(item);
  }
  if (!open.empty()) {
    if (parameters.has(1) && !parameters[1].is(Kind::none))
      open.resize(static_cast<size_t>(size), parameters[1]);
    batches.push_back(Value::list(std::move(open)));
  }
  return runtime.generator(std::move(batches));
}

// Divides the input into `slices` lists of nearly equal length.
Value slices(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t count = parameters.integer(0, 0);
  if (count < 1 || count > kMaxRange) fail("'slice' has a number that it cannot make");
  const Elements all(input);
  charge_steps(count);
  const auto size = static_cast<int64_t>(all.size());
  const bool fills = parameters.has(1) && !parameters[1].is(Kind::none);
  List lists;
  auto at = all.begin();
  for (int64_t i = 0; i < count; ++i) {
    const auto end = at + size / count + (i < size % count ? 1 : 0);
    List part(at, end);
    at = end;
    if (fills && i >= size % count) part.push_back(parameters[1]);
    lists.push_back(Value::list(std::move(part)));
  }
  return runtime.generator(std::move(lists));
}

constexpr std::array<Filter, 13> kSequenceFilters{{
    {"batch", batch},
    {"count", length_of},
    {"d", default_value},
    {"default", default_value},
    {"first", first},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length_of},
    {"list", to_list},
    {"reverse", reverse},
    {"slice", slices},
    {"sum", sum},
}};

}  // namespace

std::span<const Filter> sequence_filters() { return kSequenceFilters; }

}  // namespace snug::text::jinja
