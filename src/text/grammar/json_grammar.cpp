#include "text/grammar/json_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "text/unicode/utf8.h"

namespace snug::text {
namespace {

using SchemaJson = nlohmann::ordered_json;

constexpr char32_t kFirstPlain = 0x20;

// What stands for itself in a string.
CodePointSet plain_characters() {
  CodePointSet special(0, kFirstPlain - 1);
  special.add('"', '"');
  special.add('\\', '\\');
  return special.complement();
}

std::string escaped_character(char32_t value) {
  constexpr std::string_view kValues = "\"\\\n\r\t\b\f";
  constexpr std::string_view kLetters = "\"\\nrtbf";
  const size_t at = kValues.find(static_cast<char>(value));
  if (at != std::string_view::npos) return {'\\', kLetters[at]};
  return fmt::format("\\u{:04x}", static_cast<uint32_t>(value));
}

std::vector<char32_t> code_points(const std::string& text) {
  std::vector<char32_t> points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    points.push_back(point.value);
    at += point.size;
  }
  return points;
}

// The strings that are none of some names, character by character.
class OtherStrings {
 public:
  OtherStrings(JsonGrammar& json, GrammarBuilder& builder, PlaceId end)
      : json_(json), builder_(builder), end_(end), free_(builder.open()) {
    builder_.decide(free_, json_.character(CodePointSet().complement(), free_), end_);
  }

  // `names`: sorted, and alike in their first `depth` characters.
  PlaceId after(std::span<const std::vector<char32_t>> names, size_t depth) {
    const bool is_name = !names.empty() && names.front().size() == depth;
    if (is_name) names = names.subspan(1);
    CodePointSet known;
    PlaceId place = is_name ? builder_.dead() : end_;
    while (!names.empty()) {
      const char32_t first = names.front()[depth];
      size_t count = 1;
      while (count < names.size() && names[count][depth] == first) ++count;
      known.add(first, first);
      const PlaceId rest = after(names.first(count), depth + 1);
      place = builder_.fork(json_.character({first, first}, rest), place);
      names = names.subspan(count);
    }
    return builder_.fork(json_.character(known.complement(), free_), place);
  }

 private:
  JsonGrammar& json_;
  GrammarBuilder& builder_;
  PlaceId end_;
  PlaceId free_;
};

}  // namespace

PlaceId JsonGrammar::before_space(char value, PlaceId next) {
  return builder_.byte(value, builder_.fork(next, builder_.byte(' ', next)));
}

RuleId JsonGrammar::value_rule() {
  if (value_) return *value_;
  value_ = builder_.rule("any JSON value");
  const PlaceId end = builder_.end();
  PlaceId place = builder_.text("null", end);
  for (const char* word : {"true", "false"}) place = builder_.fork(builder_.text(word, end), place);
  for (const PlaceId one : {any_string(end), any_number(end), any_object(end), any_array(end)})
    place = builder_.fork(one, place);
  builder_.start(*value_, place);
  return *value_;
}

PlaceId JsonGrammar::any_value(PlaceId next) { return builder_.call(value_rule(), next); }

PlaceId JsonGrammar::any_object(PlaceId next) {
  const PlaceId last = builder_.byte('}', next);
  const PlaceId more = builder_.open();
  const PlaceId pair = any_string(colon(any_value(more)));
  builder_.decide(more, comma(pair), last);
  return builder_.byte('{', builder_.fork(pair, last));
}

PlaceId JsonGrammar::any_array(PlaceId next) {
  const PlaceId last = builder_.byte(']', next);
  const PlaceId more = builder_.open();
  const PlaceId item = any_value(more);
  builder_.decide(more, comma(item), last);
  return builder_.byte('[', builder_.fork(item, last));
}

PlaceId JsonGrammar::any_string(PlaceId next) {
  const PlaceId loop = builder_.open();
  builder_.decide(loop, any_character(loop), builder_.byte('"', next));
  return builder_.byte('"', loop);
}

PlaceId JsonGrammar::digits(PlaceId next) {
  return builder_.bytes({{'0', '9', builder_.any_bytes('0', '9', next)}});
}

PlaceId JsonGrammar::any_number(PlaceId next) {
  const PlaceId power = digits(next);
  const PlaceId sign = builder_.bytes({{'+', '+', power}, {'-', '-', power}});
  const PlaceId exponent = builder_.fork(sign, power);
  const PlaceId after =
      builder_.fork(builder_.bytes({{'E', 'E', exponent}, {'e', 'e', exponent}}), next);
  const PlaceId whole = builder_.fork(builder_.byte('.', digits(after)), after);
  const PlaceId first =
      builder_.bytes({{'0', '0', whole}, {'1', '9', builder_.any_bytes('0', '9', whole)}});
  return builder_.fork(builder_.byte('-', first), first);
}

// After a backslash. A code of a surrogate comes with the other one of its pair.
PlaceId JsonGrammar::escape(PlaceId next) {
  const auto hex = [&](int count, PlaceId place) {
    for (int i = 0; i < count; ++i)
      place = builder_.bytes({{'0', '9', place}, {'A', 'F', place}, {'a', 'f', place}});
    return place;
  };
  const PlaceId low_rest = hex(2, next);
  const PlaceId low = builder_.bytes({{'C', 'F', low_rest}, {'c', 'f', low_rest}});
  const PlaceId high_rest =
      hex(2, builder_.text("\\u", builder_.bytes({{'D', 'D', low}, {'d', 'd', low}})));
  const PlaceId plain = hex(2, next);
  const PlaceId after_d = builder_.bytes(
      {{'0', '7', plain}, {'8', '9', high_rest}, {'A', 'B', high_rest}, {'a', 'b', high_rest}});
  const PlaceId three = hex(3, next);
  const PlaceId code = builder_.bytes({{'0', '9', three},
                                       {'A', 'C', three},
                                       {'D', 'D', after_d},
                                       {'E', 'F', three},
                                       {'a', 'c', three},
                                       {'d', 'd', after_d},
                                       {'e', 'f', three}});
  std::vector<ByteEdge> edges;
  for (const char letter : {'"', '/', '\\', 'b', 'f', 'n', 'r', 't'})
    edges.push_back({static_cast<uint8_t>(letter), static_cast<uint8_t>(letter), next});
  edges.push_back({'u', 'u', code});
  return builder_.bytes(edges);
}

PlaceId JsonGrammar::any_character(PlaceId next) {
  if (!any_character_) {
    any_character_ = builder_.rule("a character of a string");
    const PlaceId end = builder_.end();
    builder_.start(*any_character_, builder_.fork(builder_.character(plain_characters(), end),
                                                  builder_.byte('\\', escape(end))));
  }
  return builder_.call(*any_character_, next);
}

PlaceId JsonGrammar::character(const CodePointSet& set, PlaceId next) {
  const CodePointSet special = set.without(plain_characters());
  if (special.empty()) return builder_.character(set, next);
  auto [at, is_new] = spelled_sets_.try_emplace(set.ranges(), 0);
  if (is_new) {
    at->second = builder_.rule("a set of characters");
    const PlaceId end = builder_.end();
    PlaceId place = builder_.character(set.without(special), end);
    for (const auto& [first, last] : special.ranges())
      for (char32_t value = first; value <= last; ++value)
        place = builder_.fork(builder_.text(escaped_character(value), end), place);
    builder_.start(at->second, place);
  }
  return builder_.call(at->second, next);
}

PlaceId JsonGrammar::spelled(const std::string& text, PlaceId next) {
  std::string bytes = "\"";
  for (const char32_t value : code_points(text)) {
    if (plain_characters().contains(value))
      append_code_point(bytes, value);
    else
      bytes += escaped_character(value);
  }
  return builder_.text(bytes + "\"", next);
}

PlaceId JsonGrammar::other_string(const std::vector<std::string>& names, PlaceId next) {
  std::vector<std::vector<char32_t>> sorted;
  sorted.reserve(names.size());
  for (const std::string& name : names) sorted.push_back(code_points(name));
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  OtherStrings others(*this, builder_, builder_.byte('"', next));
  return builder_.byte('"', others.after(sorted, 0));
}

PlaceId JsonGrammar::literal(const SchemaJson& value, PlaceId next) {
  builder_.count_work();
  if (value.is_string()) return spelled(value.get<std::string>(), next);
  if (!value.is_structured()) return builder_.text(value.dump(), next);
  const bool is_object = value.is_object();
  PlaceId place = builder_.byte(is_object ? '}' : ']', next);
  bool is_last = true;
  for (auto item = value.end(); item != value.begin();) {
    --item;
    if (!std::exchange(is_last, false)) place = comma(place);
    place = literal(*item, place);
    if (is_object) place = spelled(item.key(), colon(place));
  }
  return builder_.byte(is_object ? '{' : '[', place);
}

}  // namespace snug::text
