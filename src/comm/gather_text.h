// What every rank has to tell the first one alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace snug::comm {

// What each rank gives, by rank, on rank 0; nothing on others, which are not sent what others give.
// A collective like the others: all ranks call it in the same order. The communicator must be one
// whose buffers lie in host memory.
std::vector<std::string> gather_text(Communicator& communicator, std::string_view text);

}  // namespace snug::comm
