// Filters that apply another filter or a test to each element: map, select and similar ones.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/functions/tests.h"
#include "text/chat/jinja/values/attributes.h"
#include "text/chat/jinja/values/iterate.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// The arguments after the first `count`: those of the filter or test that is applied.
Arguments after(const Arguments& arguments, size_t count) {
  charge_steps(static_cast<int64_t>(arguments.positional.size() + arguments.named.size()));
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                         arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

const std::string& name_in(const Arguments& arguments, size_t index, const char* filter) {
  if (!arguments.positional[index].is(Kind::text)) fail(fmt::format("'{}' expects a name", filter));
  return arguments.positional[index].as_text();
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("map", arguments, {"attribute", "default"});
  List results;
  for (const Value& item : elements(input)) {
    results.push_back(path_of(runtime, item, parameters[0]));
    const bool is_replaced = results.back().is(Kind::undefined) && parameters.has(1);
    if (is_replaced) results.back() = parameters[1];
  }
  return runtime.generator(std::move(results));
}

Value map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Runtime::Level level(runtime);  // the applied filter may be map itself
  if (!input.is_true() && !generator_of(input)) return runtime.generator({});
  if (arguments.positional.empty() && !arguments.named.empty() &&
      arguments.named.front().first == "attribute")
    return map_attribute(runtime, input, arguments);
  if (arguments.positional.empty()) fail("'map' expects the name of a filter, or attribute=");
  const std::string& name = name_in(arguments, 0, "map");
  const Filter* filter = find_filter(name);
  if (filter == nullptr) fail(fmt::format("the filter '{}' is not supported", name));
  const Arguments rest = after(arguments, 1);
  List results;
  for (const Value& item : elements(input)) results.push_back(filter->apply(runtime, item, rest));
  return runtime.generator(std::move(results));
}

// The elements for which the test returns kWanted, applied to the element itself or to an
// attribute.
template <bool kIsOfAttribute, bool kWanted>
Value choose(Runtime& runtime, const Value& input, const Arguments& arguments) {
  constexpr size_t kBefore = kIsOfAttribute ? 1 : 0;
  constexpr const char* kName =
      kIsOfAttribute ? (kWanted ? "selectattr" : "rejectattr") : (kWanted ? "select" : "reject");
  if (!input.is_true() && !generator_of(input)) return runtime.generator({});
  if (arguments.positional.size() < kBefore) fail(fmt::format("'{}' expects an attribute", kName));
  const Test* test = nullptr;
  if (arguments.positional.size() > kBefore) {
    const std::string& name = name_in(arguments, kBefore, kName);
    test = find_test(name);
    if (test == nullptr) fail(fmt::format("the test '{}' is not supported", name));
  }
  const Arguments rest = after(arguments, test != nullptr ? kBefore + 1 : kBefore);
  List chosen;
  for (const Value& item : elements(input)) {
    const Value value =
        kIsOfAttribute ? path_of(runtime, item, arguments.positional.front()) : item;
    const bool holds = test != nullptr ? test->holds(runtime, value, rest) : value.is_true();
    if (holds == kWanted) chosen.push_back(item);
  }
  return runtime.generator(std::move(chosen));
}

constexpr std::array<Filter, 5> kSelectionFilters{{
    {"map", map},
    {"reject", choose<false, false>},
    {"rejectattr", choose<true, false>},
    {"select", choose<false, true>},
    {"selectattr", choose<true, true>},
}};

}  // namespace

std::span<const Filter> selection_filters() { return kSelectionFilters; }

}  // namespace snug::text::jinja
