// What the ranks of a job do together when files are read and written. A rank's failure is the
// failure of all, so that none waits for another that has stopped, and all draw the same
// conclusion.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "comm/mesh.h"

namespace snug::runtime {

// Calls `work` on every rank and returns once all are done. Where some failed it throws on all:
// base::DamagedFile where that is what all of those found, else UserError; what another rank threw
// is quoted with its number. `work` itself reaches no other rank.
void on_all_ranks(const comm::Mesh& mesh, const std::function<void()>& work);

// Whether this rank is of the first replica, whose ranks write files.
bool is_writer(const comm::Mesh& mesh);

// What the first rank gives.
std::string from_first_rank(const comm::Mesh& mesh, std::string_view text);

// The sum, modulo 2^64, over the ranks of a replica.
uint64_t sum_of_shards(const comm::Mesh& mesh, uint64_t value);

}  // namespace snug::runtime
