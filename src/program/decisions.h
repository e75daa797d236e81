// The attributes of an operation that say how it is done, apart from those that say what it does.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "program/operation.h"

namespace snug::program {

// Name and value of each attribute that the kind's traits call a decision, in their order.
std::vector<std::pair<std::string_view, int64_t>> decisions_of(const Operation& operation);

}  // namespace snug::program
