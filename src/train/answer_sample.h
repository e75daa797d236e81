// An answer of a model, for people to look at.
#pragma once

#include <string>
#include <vector>

namespace snug::train {

struct AnswerSample {
  std::string set;  // empty where there is one
  std::string prompt;
  std::string answer;
  std::string expected;        // empty: nothing is known
  std::vector<double> scores;  // in the order of the names that are told with it
};

}  // namespace snug::train
