// The functions that every template can call: jinja2's, and those that transformers adds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "text/chat/jinja/values/objects.h"
#include "text/chat/jinja/values/print.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// The number of values of range(begin, end, step). The difference of two 64-bit integers fits an
// unsigned 64-bit integer.
uint64_t count_of(int64_t begin, int64_t end, int64_t step) {
  if (step > 0 ? begin >= end : begin <= end) return 0;
  const auto difference = [](int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  };
  const uint64_t distance = step > 0 ? difference(begin, end) : difference(end, begin);
  const uint64_t stride = step > 0 ? difference(0, step) : difference(step, 0);
  return (distance - 1) / stride + 1;
}

Value range(Runtime&, const Arguments& arguments) {
  if (!arguments.named.empty() || arguments.positional.empty() || arguments.positional.size() > 3)
    fail("'range' takes one to three integers");
  for (const Value& value : arguments.positional)
    if (!value.is_whole()) fail(fmt::format("'range' takes integers, not a {}", value.type_name()));
  const auto at = [&](size_t index) { return arguments.positional[index].as_integer(); };
  const bool has_begin = arguments.positional.size() > 1;
  const int64_t begin = has_begin ? at(0) : 0;
  const int64_t end = has_begin ? at(1) : at(0);
  const int64_t step = arguments.positional.size() == 3 ? at(2) : 1;
  if (step == 0) fail("the step of 'range' is 0");
  const uint64_t count = count_of(begin, end, step);
  if (count > static_cast<uint64_t>(kMaxRange))
    fail(fmt::format("'range' gives more than {} numbers", kMaxRange));
  charge_steps(count, kSearchedPerStep);
  List items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    items.push_back(Value::integer(begin + static_cast<int64_t>(i) * step));
  return Value::list(std::move(items), Kind::range);
}

// The entries given to dict() and namespace(): those of a dictionary, then named ones.
Dict entries_of(const char* function, const Arguments& arguments) {
  if (arguments.positional.size() > 1 ||
      (!arguments.positional.empty() && !arguments.positional[0].is(Kind::dict)))
    fail(fmt::format("'{}' takes one dictionary, and values with names", function));
  Dict dict;
  if (!arguments.positional.empty()) dict = arguments.positional[0].as_dict();
  for (const auto& [name, value] : arguments.named) dict.set(Value::text(name), value);
  return dict;
}

Value make_dict(Runtime&, const Arguments& arguments) {
  return Value::dict(entries_of("dict", arguments));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  const Value space = runtime.make<Namespace>();
  const Dict entries = entries_of("namespace", arguments);
  for (const auto& [key, value] : entries.entries())
    object_as<Namespace>(space)->set(print(key), value);
  return space;
}

Value raise(Runtime&, const Arguments& arguments) {
  const Parameters parameters("raise_exception", arguments, {"message"}, 1);
  fail(fmt::format("the template refuses the conversation: {}", print(parameters[0])));
}

Value time_now(Runtime& runtime, const Arguments& arguments) {
  const Parameters parameters("strftime_now", arguments, {"format"}, 1);
  const std::string& format = parameters.text(0);
  constexpr std::string_view kKnown = "aAbBcdHIjmMpSUwWxXyYZz%";
  for (size_t i = format.find('%'); i != std::string::npos; i = format.find('%', i + 2))
    if (i + 1 == format.size() || kKnown.find(format[i + 1]) == std::string_view::npos)
      fail(fmt::format("the format '{}' of 'strftime_now' is not supported", format));
  // Python's datetime.now() has no time zone, so these codes write nothing.
  std::string plain;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool is_zone = format[i] == '%' && (format[i + 1] == 'Z' || format[i + 1] == 'z');
    if (is_zone) {
      ++i;
      continue;
    }
    plain += format[i];
    if (format[i] == '%') plain += format[++i];
  }
  if (plain.empty()) return Value::text("");
  std::tm local{};
  const std::time_t now = runtime.now();
  localtime_r(&now, &local);
  charge_steps(plain.size(), 2);
  charge_bytes(static_cast<int64_t>(plain.size() * 40 + 64));
  std::string text(plain.size() * 40 + 64, '\0');
  text.resize(std::strftime(text.data(), text.size(), plain.c_str(), &local));
  return Value::text(std::move(text));
}

template <int kName>
Value unsupported(Runtime&, const Arguments&) {
  constexpr std::array<const char*, 3> kNames{"cycler", "joiner", "lipsum"};
  fail(fmt::format("the function '{}' is not supported", kNames[kName]));
}

struct Global {
  std::string_view name;
  Function::Body body;
};

constexpr std::array<Global, 8> kGlobals{{
    {"cycler", unsupported<0>},
    {"dict", make_dict},
    {"joiner", unsupported<1>},
    {"lipsum", unsupported<2>},
    {"namespace", make_namespace},
    {"raise_exception", raise},
    {"range", range},
    {"strftime_now", time_now},
}};

}  // namespace

Function::Body find_global(std::string_view name) {
  const auto* const at = std::find_if(kGlobals.begin(), kGlobals.end(),
                                      [&](const Global& global) { return global.name == name; });
  return at == kGlobals.end() ? nullptr : at->body;
}

}  // namespace snug::text::jinja
