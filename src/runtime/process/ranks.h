// What the ranks of a job do together when they read and write files. When one rank fails all of
// them fail, so that none waits for a rank that has stopped, and all come to the same result.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "comm/last_words.h"
#include "comm/mesh.h"

namespace snug::runtime {

// How this rank ends, with the exit code, if only main catches the error.
comm::Ending ending_of(const std::exception& error);

// Calls `work` on every rank and returns once all are done. Where it failed on some ranks, throws
// the same error on all: base::DamagedFile if all failures are that, else UserError, with the exit
// code of the first rank that failed. The message names the ranks that failed, unless all failed
// alike. `work` itself must not communicate with other ranks.
void on_all_ranks(const comm::Mesh& mesh, const std::function<void()>& work);

// Whether this rank belongs to the first replica, whose ranks write files.
bool is_writer(const comm::Mesh& mesh);

// The first rank's text, on all ranks.
std::string from_first_rank(const comm::Mesh& mesh, std::string_view text);

// The sum of the values of a replica's ranks, modulo 2^64.
uint64_t sum_of_shards(const comm::Mesh& mesh, uint64_t value);

}  // namespace snug::runtime
