// A tensor's shape in the form that files use: a list of sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir/tensor.h"

namespace snug::runtime {

std::vector<int64_t> dims_of(const program::Shape& shape);

}  // namespace snug::runtime
