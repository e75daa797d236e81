#include "text/answer/answer_grammar.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "text/grammar/json_grammar.h"
#include "text/grammar/pattern_grammar.h"
#include "text/grammar/schema_grammar.h"

namespace snug::text {
namespace {

using nlohmann::ordered_json;

// How many bytes of the mark an end of the text is, when `matched` bytes of it are followed by
// `byte`.
size_t matched_after(std::string_view mark, size_t matched, char byte) {
  std::string text(mark.substr(0, matched));
  text += byte;
  size_t size = text.size();
  while (!mark.starts_with(std::string_view(text).substr(text.size() - size))) --size;
  return size;
}

// Any text that ends with the first mark in it, and then goes on at `next`. `may_end`: or a text
// without the mark, which ends the answer.
PlaceId text_to_mark(GrammarBuilder& builder, std::string_view mark, bool may_end, PlaceId next) {
  std::vector<PlaceId> places;  // by how many bytes of the mark were just read
  places.reserve(mark.size());
  for (size_t i = 0; i < mark.size(); ++i) places.push_back(builder.open());
  const PlaceId other = may_end ? builder.end() : builder.dead();
  for (size_t matched = 0; matched < mark.size(); ++matched) {
    std::vector<ByteEdge> edges;
    for (int value = 0; value <= UINT8_MAX; ++value) {
      const size_t after = matched_after(mark, matched, static_cast<char>(value));
      const PlaceId to = after == mark.size() ? next : places[after];
      const auto byte = static_cast<uint8_t>(value);
      if (!edges.empty() && edges.back().to == to)
        edges.back().last = byte;
      else
        edges.push_back({byte, byte, to});
    }
    builder.decide(places[matched], builder.bytes(edges), other);
  }
  return places.front();
}

// So many line breaks or spaces, or fewer.
PlaceId some_blanks(GrammarBuilder& builder, int most, PlaceId next) {
  PlaceId place = next;
  for (int i = 0; i < most; ++i)
    place = builder.fork(next, builder.fork(builder.byte('\n', place), builder.byte(' ', place)));
  return place;
}

constexpr int kBlanksAfterThought = 2;

PlaceId with_thought(GrammarBuilder& builder, const AnswerBeginning& beginning, PlaceId held) {
  if (beginning.thought == nullptr) return held;
  const ThoughtMarks& marks = *beginning.thought;
  const PlaceId thought =
      text_to_mark(builder, marks.close, false, some_blanks(builder, kBlanksAfterThought, held));
  return beginning.begins_in_thought ? thought
                                     : builder.fork(held, builder.text(marks.open, thought));
}

ByteGrammar finish_answer(GrammarBuilder& builder, const AnswerBeginning& beginning, PlaceId held) {
  const RuleId root = builder.rule("the answer");
  builder.start(root, with_thought(builder, beginning, held));
  return builder.finish(root);
}

class CallsBuilder {
 public:
  explicit CallsBuilder(const HeldCalls& calls) : calls_(calls), format_(*calls.format) {}

  ByteGrammar run(const AnswerBeginning& beginning) {
    if (calls_.functions.empty()) throw std::invalid_argument("there is no function to call");
    rules_.reserve(calls_.functions.size());
    for (const CalledFunction& one : calls_.functions) rules_.push_back(arguments_rule(one));
    const PlaceId end = builder_.end();
    if (format_.begin.empty()) {
      const PlaceId call = one_call(end);
      return finish_answer(builder_, beginning,
                           calls_.is_optional ? builder_.fork(no_object(), call) : call);
    }
    // What follows a call: the end, or the next one.
    const bool has_one = calls_.is_single || format_.is_list;
    const PlaceId later = has_one ? end : builder_.open();
    const PlaceId marked = marked_calls(later);
    if (!has_one)
      builder_.decide(later, some_blanks(builder_, 1, builder_.text(format_.begin, marked)), end);
    const PlaceId first = calls_.is_optional ? text_to_mark(builder_, format_.begin, true, marked)
                                             : builder_.text(format_.begin, marked);
    return finish_answer(builder_, beginning, first);
  }

 private:
  RuleId arguments_rule(const CalledFunction& function) {
    try {
      return add_schema(builder_, function.parameters.is_null() ? ordered_json{{"type", "object"}}
                                                                : function.parameters);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(
          fmt::format("the parameters of the tool {}: {}", function.name, error.what()));
    }
  }

  // What stands after the first mark of calls, up to the last one.
  PlaceId marked_calls(PlaceId next) {
    const PlaceId end =
        format_.end.empty() ? next : some_blanks(builder_, 1, builder_.text(format_.end, next));
    if (!format_.is_list) return some_blanks(builder_, 1, one_call(end));
    const PlaceId last = builder_.byte(']', end);
    PlaceId first = 0;
    if (calls_.is_single) {
      first = one_call(last);
    } else {
      const PlaceId later = builder_.open();
      first = one_call(later);
      builder_.decide(later, json_.comma(first), last);
    }
    return some_blanks(builder_, 1, builder_.byte('[', first));
  }

  PlaceId one_call(PlaceId next) {
    PlaceId place = builder_.dead();
    for (size_t i = calls_.functions.size(); i > 0; --i)
      place = builder_.fork(call_of(calls_.functions[i - 1].name, rules_[i - 1], next), place);
    return place;
  }

  PlaceId call_of(const std::string& name, RuleId arguments, PlaceId next) {
    if (!format_.after_name.empty())
      return builder_.text(name, builder_.text(format_.after_name, builder_.call(arguments, next)));
    const PlaceId given =
        json_.literal(std::string(format_.arguments_key),
                      json_.colon(builder_.call(arguments, builder_.byte('}', next))));
    const PlaceId named = json_.literal(std::string(format_.name_key),
                                        json_.colon(json_.literal(name, json_.comma(given))));
    return builder_.byte('{', named);
  }

  // A text that does not begin as a call does.
  PlaceId no_object() {
    const PlaceId more = builder_.open();
    builder_.decide(more, builder_.bytes({{0, UINT8_MAX, more}}), builder_.end());
    return builder_.bytes({{0, '{' - 1, more}, {'{' + 1, UINT8_MAX, more}});
  }

  const HeldCalls& calls_;
  const CallFormat& format_;
  GrammarBuilder builder_;
  JsonGrammar json_{builder_};
  std::vector<RuleId> rules_;  // of the arguments of each function
};

}  // namespace

ByteGrammar answer_schema_grammar(const AnswerBeginning& beginning, const ordered_json& schema) {
  GrammarBuilder builder;
  const PlaceId end = builder.end();
  return finish_answer(builder, beginning, builder.call(add_schema(builder, schema), end));
}

ByteGrammar answer_regex_grammar(const AnswerBeginning& beginning, std::string_view expression) {
  GrammarBuilder builder;
  const CharacterSpelling plain = [&](const CodePointSet& set, PlaceId next) {
    return builder.character(set, next);
  };
  const PlaceId end = builder.end();
  return finish_answer(builder, beginning,
                       add_pattern(builder, expression, PatternPart::whole, plain, end));
}

ByteGrammar answer_calls_grammar(const AnswerBeginning& beginning, const HeldCalls& calls) {
  return CallsBuilder(calls).run(beginning);
}

}  // namespace snug::text
