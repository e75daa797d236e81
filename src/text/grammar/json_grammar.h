// JSON texts as parts of a grammar, compact or with one space after each comma and colon, and with
// none elsewhere. A document that is the whole answer so has one of few spellings, and none of
// unbounded blanks.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "text/grammar/byte_grammar.h"

namespace snug::text {

class JsonGrammar {
 public:
  // The builder must outlive the object.
  explicit JsonGrammar(GrammarBuilder& builder) : builder_(builder) {}

  PlaceId any_value(PlaceId next);
  PlaceId any_object(PlaceId next);
  PlaceId any_array(PlaceId next);
  PlaceId any_string(PlaceId next);
  PlaceId any_number(PlaceId next);  // with a fraction and an exponent, or without
  // A value as it is, with its keys in their order.
  PlaceId literal(const nlohmann::ordered_json& value, PlaceId next);

  // One character of a string, in any spelling.
  PlaceId any_character(PlaceId next);
  // One character of the set, in the spelling of Python's json.dumps(ensure_ascii=False).
  PlaceId character(const CodePointSet& set, PlaceId next);
  // A string, in the same spelling, that is none of `names`.
  PlaceId other_string(const std::vector<std::string>& names, PlaceId next);

  PlaceId comma(PlaceId next) { return before_space(',', next); }
  PlaceId colon(PlaceId next) { return before_space(':', next); }

 private:
  // A character and perhaps one space.
  PlaceId before_space(char value, PlaceId next);
  PlaceId digits(PlaceId next);  // one at least
  PlaceId spelled(const std::string& text, PlaceId next);
  PlaceId escape(PlaceId next);
  RuleId value_rule();

  GrammarBuilder& builder_;
  std::optional<RuleId> value_{};
  std::optional<RuleId> any_character_{};
  std::map<std::vector<CodePointRange>, RuleId> spelled_sets_{};
};

}  // namespace snug::text
