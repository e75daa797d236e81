// Checks a program's transfers: each is awaited, and until then its source and destination are not
// used.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "program/verify/verify_regions.h"

namespace snug::program {

// Returns one sentence per problem. `regions`: the region of each tensor.
std::vector<std::string> verify_transfers(const Program& program, std::span<const Region> regions);

}  // namespace snug::program
