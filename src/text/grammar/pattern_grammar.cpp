#include "text/grammar/pattern_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "text/grammar/pattern_tree.h"

namespace snug::text {
namespace {

using PatternKind = Pattern::Kind;

// Which ends of the text one alternative is held to.
struct Anchors {
  bool begin = false;
  bool end = false;
};

class PatternBuilder {
 public:
  PatternBuilder(GrammarBuilder& builder, std::string_view expression,
                 const CharacterSpelling& spelling)
      : builder_(builder), expression_(expression), spelling_(spelling) {}

  PlaceId build(PatternPart part, PlaceId next) {
    Pattern tree = read_pattern_tree(expression_);
    if (tree.kind != PatternKind::choice) tree = {.kind = PatternKind::choice, .parts = {tree}};
    try {
      std::vector<PlaceId> alternatives;
      for (Pattern& alternative : tree.parts) {
        Anchors anchors = take_anchors(alternative);
        refuse_anchors(alternative);
        if (part == PatternPart::whole) anchors = {true, true};
        const PlaceId end = anchors.end ? next : anything(next);
        const PlaceId place = add(alternative, end);
        alternatives.push_back(anchors.begin ? place : anything(place));
      }
      return one_of(alternatives);
    } catch (const GrammarTooLarge& error) {
      refuse_pattern(expression_, fmt::format("a part that {}", error.what()), repeated_at_);
    }
  }

 private:
  static bool is_anchor(const Pattern& pattern) {
    return pattern.kind == PatternKind::begin || pattern.kind == PatternKind::end;
  }

  // Takes anchors away from where they stand at an end of the expression.
  Anchors take_anchors(Pattern& pattern) const {
    if (is_anchor(pattern)) {
      const Anchors found{pattern.kind == PatternKind::begin, pattern.kind == PatternKind::end};
      pattern.kind = PatternKind::nothing;
      return found;
    }
    if (pattern.kind == PatternKind::choice) return anchors_of_all(pattern);
    if (pattern.kind != PatternKind::sequence || pattern.parts.empty()) return {};
    Anchors found;
    std::vector<Pattern>& parts = pattern.parts;
    size_t first = 0;
    while (first < parts.size() && parts[first].kind == PatternKind::begin) ++first;
    size_t last = parts.size();
    while (last > first && parts[last - 1].kind == PatternKind::end) --last;
    found = {first > 0, last < parts.size()};
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(last), parts.end());
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(first));
    take_from_groups(parts, found);
    return found;
  }

  // A group at the beginning may have the anchor of the beginning, one at the end that of the end.
  void take_from_groups(std::vector<Pattern>& parts, Anchors& found) const {
    if (parts.empty()) return;
    const auto take = [&](Pattern& group, bool is_first, bool is_last) {
      Pattern rest = group;
      const Anchors inner = take_anchors(rest);
      if ((inner.begin && !is_first) || (inner.end && !is_last)) return;
      group = std::move(rest);
      found.begin |= inner.begin;
      found.end |= inner.end;
    };
    take(parts.front(), true, parts.size() == 1);
    if (parts.size() > 1) take(parts.back(), false, true);
  }

  // Of a group's alternatives, which must have the same.
  Anchors anchors_of_all(Pattern& choice) const {
    Pattern rest = choice;
    std::vector<Anchors> all;
    for (Pattern& part : rest.parts) all.push_back(take_anchors(part));
    const auto differs = [&](const Anchors& one) {
      return one.begin != all.front().begin || one.end != all.front().end;
    };
    if (std::ranges::any_of(all, differs)) return {};  // refused where the anchors are found
    choice = std::move(rest);
    return all.front();
  }

  void refuse_anchors(const Pattern& pattern) const {
    if (is_anchor(pattern))
      refuse_pattern(expression_, "an anchor in the middle or in some alternatives of a group",
                     pattern.at);
    for (const Pattern& part : pattern.parts) refuse_anchors(part);
  }

  PlaceId anything(PlaceId next) {
    const PlaceId loop = builder_.open();
    builder_.decide(loop, spelling_(CodePointSet().complement(), loop), next);
    return loop;
  }

  PlaceId one_of(const std::vector<PlaceId>& places) {
    PlaceId place = places.back();
    for (size_t i = places.size() - 1; i > 0; --i) place = builder_.fork(places[i - 1], place);
    return place;
  }

  PlaceId add(const Pattern& pattern, PlaceId next) {
    builder_.count_work();
    switch (pattern.kind) {
      case PatternKind::set:
        return spelling_(pattern.set, next);
      case PatternKind::sequence:
        for (size_t i = pattern.parts.size(); i > 0; --i) next = add(pattern.parts[i - 1], next);
        return next;
      case PatternKind::choice: {
        std::vector<PlaceId> places;
        for (const Pattern& part : pattern.parts) places.push_back(add(part, next));
        return one_of(places);
      }
      case PatternKind::repeat:
        return add_repeat(pattern, next);
      case PatternKind::nothing:
      case PatternKind::begin:
      case PatternKind::end:
        break;
    }
    return next;
  }

  PlaceId add_repeat(const Pattern& pattern, PlaceId next) {
    const bool is_outermost = repeats_++ == 0;
    if (is_outermost) repeated_at_ = pattern.at;
    const Pattern& body = pattern.parts.front();
    PlaceId place = next;
    if (pattern.most == Pattern::kNoLimit) {
      place = builder_.open();
      builder_.decide(place, add(body, place), next);
    }
    for (int64_t i = pattern.least; i < pattern.most; ++i)
      place = builder_.fork(add(body, place), next);
    for (int64_t i = 0; i < pattern.least; ++i) place = add(body, place);
    --repeats_;
    return place;
  }

  GrammarBuilder& builder_;
  std::string_view expression_;
  const CharacterSpelling& spelling_;
  int repeats_ = 0;
  size_t repeated_at_ = 0;
};

}  // namespace

PlaceId add_pattern(GrammarBuilder& builder, std::string_view expression, PatternPart part,
                    const CharacterSpelling& spelling, PlaceId next) {
  return PatternBuilder(builder, expression, spelling).build(part, next);
}

ByteGrammar regex_grammar(std::string_view expression) {
  GrammarBuilder builder;
  const RuleId root = builder.rule("the regular expression");
  const CharacterSpelling plain = [&](const CodePointSet& set, PlaceId next) {
    return builder.character(set, next);
  };
  const PlaceId end = builder.end();
  const PlaceId start = add_pattern(builder, expression, PatternPart::whole, plain, end);
  builder.start(root, start);
  return builder.finish(root);
}

}  // namespace snug::text
