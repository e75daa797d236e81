// Checks that all ranks were given the same recipe, version, data and model files.
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"

namespace snug::comm {

struct NamedValue {
  std::string name;  // as errors name it: "the recipe"
  std::string value;
};

// Compares the values of each rank with those of rank 0. Where any differs, all ranks throw a
// UserError that says which.
void require_agreement(Communicator& communicator, std::span<const NamedValue> values);

}  // namespace snug::comm
