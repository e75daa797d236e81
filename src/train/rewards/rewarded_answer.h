// An answer that the model gave, and the record that it answers: what rewards are given for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace snug::train {

struct RewardedRecord {
  std::string fields;  // the record as one JSON object, as it was read
  std::string file;
  int line = 0;          // from 1, where it begins
  std::string answer{};  // that it holds by its form; empty: none
};

struct RewardedAnswer {
  std::string_view prompt;                 // as it is shown: the user's last words
  std::string_view answer;                 // without the token that ended it
  const RewardedRecord* record = nullptr;  // of the prompt
  int64_t tokens = 0;                      // of the answer
  bool ended = false;                      // by itself, before it had as many tokens as it may
};

}  // namespace snug::train
