// What is taken out of an answer before it is compared: filters one after the other, under a name
// (filter_list of a task). A task may have several chains, each of which has figures of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/python_pattern.h"

namespace snug::generate {

using AnswerFilter = std::function<std::string(const std::string&)>;

struct FilterChain {
  std::string name = "none";
  std::vector<AnswerFilter> filters{};

  std::string apply(std::string answer) const {
    for (const AnswerFilter& filter : filters) answer = filter(answer);
    return answer;
  }
};

// The `number`-th of all matches (0 is the first, -1 the last), of which the first group that is
// not empty counts, or all of it where there are no groups, without white space at its ends.
// `otherwise`: what an answer becomes that has no such match.
struct MatchChoice {
  base::PythonPattern pattern;
  int64_t number = 0;
  std::string otherwise = "[invalid]";

  std::string operator()(const std::string& answer) const;
};

}  // namespace snug::generate
