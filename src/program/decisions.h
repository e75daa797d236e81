// The attributes of an operation that say how it is done, apart from those that say what it does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/operation.h"

namespace snug::program {

// Name and value of each attribute that the kind's traits call a decision, in their order.
std::vector<std::pair<std::string_view, int64_t>> decisions_of(const Operation& operation);

// Such a value as people read it: the word of an enumeration, else the number.
std::string decision_text(Kind kind, std::string_view name, int64_t value);

}  // namespace snug::program
