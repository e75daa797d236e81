// What must hold of a program's transfers: each is awaited, and until then its ends are left alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "program/verify/verify_regions.h"

namespace snug::program {

// One sentence a problem. `regions` holds the region of each tensor.
std::vector<std::string> verify_transfers(const Program& program, std::span<const Region> regions);

}  // namespace snug::program
