// The set of a text's characters, in which a lookup takes about one step.
#pragma once

#include <bitset>
#include <string_view>
#include <vector>

#include "text/chat/jinja/meter.h"

namespace snug::text::jinja {

class CharacterSet {
 public:
  explicit CharacterSet(std::string_view characters);
  bool holds(char32_t value) const;

 private:
  std::bitset<128> ascii_;
  std::vector<char32_t, MeteredAllocator<char32_t>> others_;  // sorted
};

}  // namespace snug::text::jinja
