// Collects texts of all ranks on the first rank alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace snug::comm {

// On rank 0 the text of each rank, by rank; empty on the other ranks, which receive nothing. It is
// a collective: all ranks call it in the same order. The communicator must be one whose buffers lie
// in host memory.
std::vector<std::string> gather_text(Communicator& communicator, std::string_view text);

}  // namespace snug::comm
