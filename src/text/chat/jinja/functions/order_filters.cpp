// Filters that compare elements: sort, dictsort, min, max, unique.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/values/attributes.h"
#include "text/chat/jinja/values/compare.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/python_text.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

struct Keyed {
  Value key;
  Value value;
};
using AllKeyed = std::vector<Keyed, MeteredAllocator<Keyed>>;

// The value by which an element is compared: itself or an attribute; texts in lower case unless
// case matters.
Value key_of(Runtime& runtime, const Value& item, const Value& path, bool minds_case) {
  const bool has_path = !path.is(Kind::undefined) && !path.is(Kind::none);
  Value key = has_path ? path_of(runtime, item, path) : item;
  return key.is(Kind::text) && !minds_case ? Value::text(lower(key.as_text())) : key;
}

AllKeyed keyed(Runtime& runtime, const Value& input, const Value& path, bool minds_case) {
  AllKeyed all;
  for (const Value& item : elements(input))
    all.push_back({key_of(runtime, item, path, minds_case), item});
  return all;
}

// Checks that the elements can be ordered, which excludes NaN.
void check_order(const AllKeyed& all) {
  for (const Keyed& item : all)
    if (item.key.is(Kind::real) && std::isnan(item.key.as_real())) fail("nan cannot be sorted");
  if (all.size() == 1) return;
  for (const Keyed& item : all) static_cast<void>(less(item.key, all.front().key));
}

// A stable sort, also in reverse.
void sort_keyed(AllKeyed& all, bool is_reversed) {
  check_order(all);
  std::stable_sort(all.begin(), all.end(), [&](const Keyed& a, const Keyed& b) {
    return is_reversed ? less(b.key, a.key) : less(a.key, b.key);
  });
}

List values_of(AllKeyed all) {
  List values;
  for (Keyed& item : all) values.push_back(std::move(item.value));
  return values;
}

Value sort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  if (parameters[2].is(Kind::text) && parameters[2].as_text().find(',') != std::string::npos)
    fail("'sort' by several attributes is not supported");
  AllKeyed all = keyed(runtime, input, parameters[2], parameters.truth(1, false));
  sort_keyed(all, parameters.truth(0, false));
  return Value::list(values_of(std::move(all)));
}

Value sort_dict(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = parameters.has(1) ? parameters.text(1) : "key";
  if (by != "key" && by != "value") fail("'dictsort' sorts by key or by value");
  if (!input.is(Kind::dict))
    fail(fmt::format("'dictsort' takes a dictionary, not a {}", input.type_name()));
  charge_steps(static_cast<int64_t>(input.as_dict().size()));
  List pairs;
  for (const auto& [key, value] : input.as_dict().entries())
    pairs.push_back(Value::list({key, value}, Kind::tuple));
  AllKeyed all = keyed(runtime, Value::list(std::move(pairs)), Value::integer(by == "key" ? 0 : 1),
                       parameters.truth(0, false));
  sort_keyed(all, parameters.truth(2, false));
  return Value::list(values_of(std::move(all)));
}

template <bool kIsMost>
Value extreme(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters(kIsMost ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const AllKeyed all = keyed(runtime, input, parameters[1], parameters.truth(0, false));
  if (all.empty()) return Value::undefined("an item of an empty sequence");
  const Keyed* found = &all.front();
  for (const Keyed& item : all)
    if (&item != &all.front() &&
        (kIsMost ? less(found->key, item.key) : less(item.key, found->key)))
      found = &item;
  return found->value;
}

Value unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("unique", arguments, {"case_sensitive", "attribute"});
  Dict seen;
  List kept;
  for (Keyed& item : keyed(runtime, input, parameters[1], parameters.truth(0, false))) {
    const size_t before = seen.size();
    seen.set(std::move(item.key), Value::none());
    if (seen.size() > before) kept.push_back(std::move(item.value));
  }
  return runtime.generator(std::move(kept));
}

constexpr std::array<Filter, 5> kOrderFilters{{
    {"dictsort", sort_dict},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"sort", sort},
    {"unique", unique},
}};

}  // namespace

std::span<const Filter> order_filters() { return kOrderFilters; }

}  // namespace snug::text::jinja
