#include <fmt/format.h>

#include <array>
#include <optional>

#include "text/jinja/filters.h"
#include "text/jinja/format.h"
#include "text/jinja/iterate.h"
#include "text/jinja/print.h"
#include "text/jinja/python_text.h"
#include "text/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// The text of a value after `change`; a safe one stays safe.
template <typename Change>
Value changed(Runtime& runtime, const Value& input, const Change& change) {
  const Value text = soft_text(runtime, input);
  runtime.charge_steps(static_cast<int64_t>(text.as_text().size() / 64));
  return runtime.text(std::string(change(text.as_text())), text.is_safe());
}

template <std::string (*Change)(std::string_view)>
Value by_case(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("a filter of case", arguments, {});
  return changed(runtime, input, Change);
}

// jinja2's own: a word begins after a hyphen, white space or an opening bracket.
std::string title_of_words(std::string_view text) {
  std::string out;
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const size_t first = byte_of(word, 1);
    out += upper(std::string_view(word).substr(0, first));
    out += lower(std::string_view(word).substr(first));
    word.clear();
  };
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool separates = is_python_space(c.value) || c.value == '-' || c.value == '(' ||
                           c.value == '{' || c.value == '[' || c.value == '<';
    if (separates) end_word();
    (separates ? out : word) += text.substr(i, c.size);
    i += c.size;
  }
  end_word();
  return out;
}

Value trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("trim", arguments, {"chars"});
  std::optional<std::string_view> set;
  if (parameters.has(0) && !parameters[0].is(Kind::none)) set = parameters.text(0);
  return changed(runtime, input,
                 [&](const std::string& text) { return strip(text, Side::both, set); });
}

Value replace_text(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"}, 2);
  const std::string text = print(input);
  const std::string old = print(parameters[0]);
  const std::string with = print(parameters[1]);
  const bool is_bounded = parameters.has(2) && !parameters[2].is(Kind::none);
  runtime.charge_bytes(count(text, old) * static_cast<int64_t>(with.size()));
  return runtime.text(replace(text, old, with, is_bounded ? parameters.integer(2, -1) : -1));
}

Value indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("indent", arguments, {"width", "first", "blank"});
  if (input.is(Kind::undefined)) fail(input.undefined_message());
  if (!input.is(Kind::text))
    fail(fmt::format("'indent' expects a text, not a {}", input.type_name()));
  const bool is_text = parameters.has(0) && parameters[0].is(Kind::text);
  const int64_t width = is_text ? 0 : parameters.integer(0, 4);
  if (width > 10'000) fail("'indent' has a width that is too large");
  const std::string by = is_text
                             ? parameters.text(0)
                             : std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  const bool indents_blank = parameters.truth(2, false);
  const std::vector<std::string> lines = split_lines(fmt::format("{}\n", input.as_text()), false);
  runtime.charge_bytes(static_cast<int64_t>(lines.size() * by.size()));
  std::string out = parameters.truth(1, false) ? by : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (indents_blank || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return runtime.text(std::move(out), input.is_safe());
}

Value truncate(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!input.is(Kind::text))
    fail(fmt::format("'truncate' expects a text, not a {}", input.type_name()));
  const std::string& text = input.as_text();
  const int64_t most = parameters.integer(0, 255);
  const std::string end = parameters.has(2) ? parameters.text(2) : "...";
  const bool has_leeway = parameters.has(3) && !parameters[3].is(Kind::none);
  const int64_t leeway = has_leeway ? parameters.integer(3, 5) : 5;
  if (most < length(end) || leeway < 0) fail("'truncate' has a length that is too small");
  if (length(text) <= most + leeway) return input;
  std::string kept = text.substr(0, byte_of(text, most - length(end)));
  if (!parameters.truth(1, false)) kept = split(kept, " ", 1, true).front();
  return runtime.text(kept + end, input.is_safe());
}

Value center(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("center", arguments, {"width"});
  const int64_t width = parameters.integer(0, 80);
  runtime.charge_bytes(width);
  return changed(runtime, input,
                 [&](const std::string& text) { return fill(text, width, ' ', Side::both); });
}

Value as_string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("string", arguments, {});
  return soft_text(runtime, input);
}

Value safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("safe", arguments, {});
  return runtime.text(print(input), true);
}

Value escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("escape", arguments, {});
  return input.is_safe() ? input : runtime.text(escape_html(print(input)), true);
}

Value force_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters none("forceescape", arguments, {});
  return runtime.text(escape_html(print(input)), true);
}

Value format_values(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty())
    fail("'format' takes values either by place or by name");
  Value values = Value::list(arguments.positional, Kind::tuple);
  if (!arguments.named.empty()) {
    Dict dict;
    for (const auto& [name, value] : arguments.named) dict.set(Value::text(name), value);
    values = Value::dict(std::move(dict));
  }
  return format_percent(runtime, soft_text(runtime, input), values);
}

// json.dumps's separators: (item, key).
void take_separators(const Value& pair, JsonStyle& style) {
  if (!pair.is_sequence() || pair.items().size() != 2 || !pair.items()[0].is(Kind::text) ||
      !pair.items()[1].is(Kind::text))
    fail("'tojson' expects separators to be two texts");
  style.item_separator = pair.items()[0].as_text();
  style.key_separator = pair.items()[1].as_text();
}

Value to_json(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Parameters parameters("tojson", arguments,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.truth(0, false);
  style.sort_keys = parameters.truth(3, false);
  if (parameters.has(1) && !parameters[1].is(Kind::none)) {
    const bool is_text = parameters[1].is(Kind::text);
    const int64_t width = is_text ? 0 : parameters.integer(1, 0);
    if (width > 1000) fail("'tojson' has an indent that is too large");
    style.indent = is_text ? parameters.text(1)
                           : std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    style.item_separator = std::string(1, ',');
  }
  if (parameters.has(2) && !parameters[2].is(Kind::none)) take_separators(parameters[2], style);
  std::string text = print_json(input, style);
  runtime.charge_steps(static_cast<int64_t>(text.size() / 16));
  return runtime.text(std::move(text));
}

constexpr std::array<Filter, 16> kTextFilters{{
    {"capitalize", by_case<capitalize>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", force_escape},
    {"format", format_values},
    {"indent", indent},
    {"lower", by_case<lower>},
    {"replace", replace_text},
    {"safe", safe},
    {"string", as_string},
    {"title", by_case<title_of_words>},
    {"tojson", to_json},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", by_case<upper>},
}};

}  // namespace

std::span<const Filter> text_filters() { return kTextFilters; }

}  // namespace snug::text::jinja
