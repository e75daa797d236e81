// What the ranks of a job do together when files are read and written. A rank's failure is the
// failure of all, so that none waits for another that has stopped, and all draw the same
// conclusion.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "comm/last_words.h"
#include "comm/mesh.h"

namespace snug::runtime {

// What this rank ends with, and the exit code, where nobody catches the error but main.
comm::Ending ending_of(const std::exception& error);

// Calls `work` on every rank and returns once all are done. Where some failed it throws the same on
// all: base::DamagedFile where that is what all of those found, else UserError, with the exit code
// of the first of them. What not all ranks found has the numbers of those that did. `work` itself
// reaches no other rank.
void on_all_ranks(const comm::Mesh& mesh, const std::function<void()>& work);

// Whether this rank is of the first replica, whose ranks write files.
bool is_writer(const comm::Mesh& mesh);

// What the first rank gives.
std::string from_first_rank(const comm::Mesh& mesh, std::string_view text);

// The sum, modulo 2^64, over the ranks of a replica.
uint64_t sum_of_shards(const comm::Mesh& mesh, uint64_t value);

}  // namespace snug::runtime
