#include "text/grammar/schema_strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "text/grammar/number_range.h"
#include "text/grammar/pattern_grammar.h"
#include "text/grammar/schema_merge.h"
#include "text/grammar/string_format.h"

namespace snug::text {
namespace {

using SchemaJson = nlohmann::ordered_json;

constexpr int64_t kNoCount = -1;

PlaceId add_counted_string(GrammarBuilder& builder, JsonGrammar& json, int64_t least, int64_t most,
                           PlaceId next) {
  const PlaceId last = builder.byte('"', next);
  PlaceId place = last;
  if (most == kNoCount) {
    place = builder.open();
    builder.decide(place, json.any_character(place), last);
  }
  for (int64_t i = least; i < most; ++i) place = builder.fork(json.any_character(place), last);
  for (int64_t i = 0; i < least; ++i) place = json.any_character(place);
  return builder.byte('"', place);
}

// The bound of `keyword`, which `excluded` excludes: a bound of its own, or, as in draft 4, true.
std::optional<NumberBound> bound_of(const SchemaJson& schema, const char* keyword,
                                    const char* excluded, bool is_least, const std::string& path) {
  std::optional<NumberBound> bound;
  if (schema.contains(keyword)) {
    if (!schema[keyword].is_number())
      refuse_schema(fmt::format("'{}' that is no number", keyword), path);
    bound = NumberBound{decimal_of(schema[keyword]), false};
  }
  if (!schema.contains(excluded) || schema[excluded] == false) return bound;
  const SchemaJson& other = schema[excluded];
  if (other == true && bound) bound->is_excluded = true;
  if (other == true) return bound;
  if (!other.is_number()) refuse_schema(fmt::format("'{}' that is no number", excluded), path);
  const bool is_closer = !bound || (is_least ? other >= schema[keyword] : other <= schema[keyword]);
  if (is_closer) bound = NumberBound{decimal_of(other), true};
  return bound;
}

// The digits after the point that multipleOf leaves.
std::optional<size_t> fraction_of(const SchemaJson& schema, bool is_integer,
                                  const std::string& path) {
  if (!schema.contains("multipleOf")) return is_integer ? std::optional<size_t>(0) : std::nullopt;
  const SchemaJson& step = schema["multipleOf"];
  if (step.is_number()) {
    const Decimal decimal = decimal_of(step);
    const std::string digits = decimal.whole + decimal.fraction;
    const bool is_one = decimal.whole == "1" && decimal.fraction.empty();
    const bool is_part = decimal.whole == "0" && decimal.fraction.ends_with('1') &&
                         std::ranges::count(digits, '0') == std::ssize(digits) - 1;
    if (is_one || (is_part && !decimal.is_negative))
      return is_integer ? 0 : decimal.fraction.size();
  }
  refuse_schema(
      fmt::format("'multipleOf' of {} (1, 0.1, 0.01 and so on can be obeyed)", step.dump()), path);
}

void add_format_bounds(const SchemaJson& schema, NumberRange& range) {
  const SchemaJson format = schema.value("format", SchemaJson());
  const auto bound = [](int64_t value) { return NumberBound{decimal_of(value), false}; };
  if (format == "int32") {
    if (!range.least) range.least = bound(INT32_MIN);
    if (!range.most) range.most = bound(INT32_MAX);
  } else if (format == "int64") {
    if (!range.least) range.least = bound(INT64_MIN);
    if (!range.most) range.most = bound(INT64_MAX);
  }
}

}  // namespace

int64_t schema_count(const SchemaJson& schema, const char* keyword, int64_t fallback,
                     const std::string& path) {
  if (!schema.contains(keyword)) return fallback;
  const SchemaJson& count = schema[keyword];
  const bool is_whole =
      count.is_number_integer() ||
      (count.is_number() && count.get<double>() == std::floor(count.get<double>()));
  if (!is_whole || count < 0 || count > GrammarBuilder::kMaxPlaces)
    refuse_schema(fmt::format("'{}' of {}; it must be from 0 to {}", keyword, count.dump(),
                              GrammarBuilder::kMaxPlaces),
                  path);
  return count.get<int64_t>();
}

PlaceId add_schema_string(GrammarBuilder& builder, JsonGrammar& json, const SchemaJson& schema,
                          const std::string& path, PlaceId next) {
  const int64_t least = schema_count(schema, "minLength", 0, path);
  const int64_t most = schema_count(schema, "maxLength", kNoCount, path);
  if (most != kNoCount && most < least) return builder.dead();
  std::optional<std::string> pattern;
  PatternPart part = PatternPart::anywhere;
  if (schema.contains("pattern")) {
    if (!schema["pattern"].is_string()) refuse_schema("a 'pattern' that is no text", path);
    pattern = schema["pattern"].get<std::string>();
  }
  if (schema.contains("format")) {
    const std::string format = schema["format"].is_string() ? schema["format"].get<std::string>()
                                                            : schema["format"].dump();
    if (pattern) refuse_schema("'format' next to 'pattern'", path);
    pattern = pattern_of_format(format);
    part = PatternPart::whole;
    if (!pattern)
      refuse_schema(fmt::format("the format '{}' (known are {})", format, known_formats()), path);
  }
  if (!pattern) return add_counted_string(builder, json, least, most, next);
  if (least > 0 || most != kNoCount)
    refuse_schema(fmt::format("'{}' next to 'pattern' or 'format'; say it in the pattern",
                              least > 0 ? "minLength" : "maxLength"),
                  path);
  const CharacterSpelling spelling = [&](const CodePointSet& set, PlaceId after) {
    return json.character(set, after);
  };
  try {
    return builder.byte('"',
                        add_pattern(builder, *pattern, part, spelling, builder.byte('"', next)));
  } catch (const GrammarTooLarge&) {
    throw;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(
        fmt::format("{} (the JSON schema's pattern at {})", error.what(), path));
  }
}

PlaceId add_schema_number(GrammarBuilder& builder, JsonGrammar& json, const SchemaJson& schema,
                          const std::string& path, PlaceId next) {
  const bool is_integer = schema["type"] == "integer";
  NumberRange range{.least = bound_of(schema, "minimum", "exclusiveMinimum", true, path),
                    .most = bound_of(schema, "maximum", "exclusiveMaximum", false, path),
                    .max_fraction = fraction_of(schema, is_integer, path)};
  if (is_integer) add_format_bounds(schema, range);
  const bool is_bounded = range.least || range.most || range.max_fraction;
  return is_bounded ? add_number(builder, range, next) : json.any_number(next);
}

}  // namespace snug::text
