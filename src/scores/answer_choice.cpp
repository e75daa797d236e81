#include "scores/answer_choice.h"

#include <array>

#include "base/python_pattern.h"

namespace snug::scores {
namespace {

struct ChoiceRule {
  base::PythonPattern pattern;
  bool takes_last = true;
};

const std::array<ChoiceRule, 4>& choice_rules() {
  using base::PythonPattern;
  static const std::array<ChoiceRule, 4> kRules{
      {{PythonPattern(R"((?:\b(?i:answer|choice|option)(?: is|:| is:|\*\*:|:\*\*)[ *]*[(\[]?|)"
                      R"(\\boxed\{(?:\\text\{)?\(?)([A-E])\b(?!['’]))")},
       {PythonPattern(R"(^[*(\[]*([A-E])(?:[)\].:,*]|\s*$|\s*\n))"), false},
       {PythonPattern(R"([(\[]([A-E])[)\]])")},
       {PythonPattern(R"(\b([B-E]|A(?! [a-z]))\b(?!['’]))")}}};
  return kRules;
}

}  // namespace

char answer_choice(std::string_view text) {
  for (const ChoiceRule& rule : choice_rules()) {
    const auto matches = rule.pattern.find_all(text);
    if (!matches.empty()) return (rule.takes_last ? matches.back() : matches.front())[1].front();
  }
  return '\0';
}

double choice_score(std::string_view answer, std::string_view reference) {
  const char said = answer_choice(answer);
  return said != '\0' && said == answer_choice(reference) ? 1 : 0;
}

}  // namespace snug::scores
