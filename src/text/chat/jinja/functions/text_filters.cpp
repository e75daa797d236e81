#include <fmt/format.h>

#include <array>
#include <optional>

#include "text/chat/jinja/functions/filters.h"
#include "text/chat/jinja/functions/format.h"
#include "text/chat/jinja/values/iterate.h"
#include "text/chat/jinja/values/print.h"
#include "text/chat/jinja/values/python_text.h"
#include "text/unicode/utf8.h"

namespace snug::text::jinja {
namespace {

using Kind = Value::Kind;

// The value's text after `change`; safe text stays safe.
template <typename Change>
Value changed(const Value& input, const Change& change) {
  const Value text = printed(input);
  return Value::text(std::string(change(text.as_text())), text.is_safe());
}

template <std::string (*Change)(std::string_view)>
Value by_case(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("a filter of case", arguments, {});
  return changed(input, Change);
}

// jinja2's own rule: a word begins after a hyphen, white space or an opening bracket.
std::string title_of_words(std::string_view text) {
  charge_steps(text.size(), kWalkedPerStep);
  TextBuilder out;
  std::string_view word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const size_t first = sequence_length(static_cast<unsigned char>(word[0]));
    out.add(upper(word.substr(0, first)));
    out.add(lower(word.substr(first)));
    word = {};
  };
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool separates = is_python_space(c.value) || c.value == '-' || c.value == '(' ||
                           c.value == '{' || c.value == '[' || c.value == '<';
    if (separates) {
      end_word();
      out.add(text.substr(i, c.size));
    } else {
      word = text.substr(i - word.size(), word.size() + c.size);
    }
    i += c.size;
  }
  end_word();
  return out.take();
}

Value trim(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("trim", arguments, {"chars"});
  std::optional<std::string_view> set;
  if (parameters.has(0) && !parameters[0].is(Kind::none)) set = parameters.text(0);
  return changed(input, [&](const std::string& text) { return strip(text, Side::both, set); });
}

Value replace_text(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"}, 2);
  const Value text = printed(input);
  const Value old = printed(parameters[0]);
  const Value with = printed(parameters[1]);
  const bool is_bounded = parameters.has(2) && !parameters[2].is(Kind::none);
  return Value::text(replace(text.as_text(), old.as_text(), with.as_text(),
                             is_bounded ? parameters.integer(2, -1) : -1));
}

Value indent(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("indent", arguments, {"width", "first", "blank"});
  if (input.is(Kind::undefined)) fail(input.undefined_message());
  if (!input.is(Kind::text))
    fail(fmt::format("'indent' expects a text, not a {}", input.type_name()));
  const bool is_text = parameters.has(0) && parameters[0].is(Kind::text);
  const int64_t width = is_text ? 0 : parameters.integer(0, 4);
  if (width > 10'000) fail("'indent' has a width that is too large");
  const std::string spaces(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  const std::string_view by = is_text ? parameters.text(0) : spaces;
  const bool indents_blank = parameters.truth(2, false);
  // Like jinja2, appends a line break to the text and then splits it at all line breaks.
  TextBuilder ended(input.as_text().size() + 1);
  ended.add(input.as_text());
  ended.add('\n');
  const Parts lines = split_lines(ended.view(), false);
  TextBuilder out;
  if (parameters.truth(1, false)) out.add(by);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.add('\n');
    if (i > 0 && (indents_blank || !lines[i].empty())) out.add(by);
    out.add(lines[i]);
  }
  return out.take_value(input.is_safe());
}

Value truncate(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (!input.is(Kind::text))
    fail(fmt::format("'truncate' expects a text, not a {}", input.type_name()));
  const std::string& text = input.as_text();
  const int64_t most = parameters.integer(0, 255);
  const std::string_view end = parameters.has(2) ? std::string_view(parameters.text(2)) : "...";
  const bool has_leeway = parameters.has(3) && !parameters[3].is(Kind::none);
  const int64_t leeway = has_leeway ? parameters.integer(3, 5) : 5;
  if (most < length(end) || leeway < 0) fail("'truncate' has a length that is too small");
  if (length(text) - most <= leeway) return input;
  std::string_view kept = std::string_view(text).substr(0, byte_of(text, most - length(end)));
  if (!parameters.truth(1, false)) kept = split(kept, " ", 1, true).front();
  TextBuilder out(kept.size() + end.size());
  out.add(kept);
  out.add(end);
  return out.take_value(input.is_safe());
}

Value center(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("center", arguments, {"width"});
  const int64_t width = parameters.integer(0, 80);
  return changed(input,
                 [&](const std::string& text) { return fill(text, width, ' ', Side::both); });
}

Value as_string(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("string", arguments, {});
  return printed(input);
}

Value safe(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("safe", arguments, {});
  return Value::text(print(input), true);
}

Value escape(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("escape", arguments, {});
  return input.is_safe() ? input : Value::text(escape_html(printed(input).as_text()), true);
}

Value force_escape(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters none("forceescape", arguments, {});
  return Value::text(escape_html(printed(input).as_text()), true);
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
  return format_percent(runtime, printed(input), values);
}

// Reads the separators of json.dumps: a pair (item, key).
void take_separators(const Value& pair, JsonStyle& style) {
  if (!pair.is_sequence() || pair.items().size() != 2 || !pair.items()[0].is(Kind::text) ||
      !pair.items()[1].is(Kind::text))
    fail("'tojson' expects separators to be two texts");
  style.item_separator = pair.items()[0].as_text();
  style.key_separator = pair.items()[1].as_text();
}

Value to_json(Runtime&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("tojson", arguments,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  std::string spaces;
  JsonStyle style;
  style.ensure_ascii = parameters.truth(0, false);
  style.sort_keys = parameters.truth(3, false);
  if (parameters.has(1) && !parameters[1].is(Kind::none)) {
    const bool is_text = parameters[1].is(Kind::text);
    const int64_t width = is_text ? 0 : parameters.integer(1, 0);
    if (width > 1000) fail("'tojson' has an indent that is too large");
    spaces.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    style.indent = is_text ? parameters.text(1) : spaces;
    style.item_separator = ",";
  }
  if (parameters.has(2) && !parameters[2].is(Kind::none)) take_separators(parameters[2], style);
  return print_json(input, style);
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
