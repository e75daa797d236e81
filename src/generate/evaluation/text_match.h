// exact_match: whether an answer is one of the expected texts, with what is not looked at
// (lm-evaluation-harness's exact_match and its options).
#pragma once

#include <string>
#include <vector>

#include "base/python_pattern.h"

namespace snug::generate {

struct MatchRules {
  std::vector<base::PythonPattern> ignored{};  // what matches is taken out of both, one by one
  bool ignores_case = false;
  bool ignores_punctuation = false;  // that of ASCII
  bool ignores_numbers = false;      // the digits of ASCII

  // The text without what is not looked at.
  std::string reduced(std::string text) const;
  bool matches(const std::string& answer, const std::string& expected) const {
    return reduced(answer) == reduced(expected);
  }
};

}  // namespace snug::generate
