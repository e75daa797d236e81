// The collectives of a backend whose tensors lie on cards, against those of the host: ranks are
// threads of this process, each with a card of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "one_collective.h"

namespace snug::backends::test {

// Opens the backend of a rank.
using OpenRank = std::function<std::unique_ptr<Backend>(const comm::Mesh&)>;

// Calls work(mesh) on a thread for each rank. `shards`: how many of them share a replica, for a
// mesh of three groups; 0: all ranks are one group. What a rank's thread throws, by rank.
std::vector<std::string> on_ranks(int ranks, const std::function<void(const comm::Mesh&)>& work,
                                  int shards = 0);

struct CollectiveCase {
  std::string name;
  std::function<OneCollective(int rank, int ranks)> make;
  int64_t piece_elements = 0;  // 0: as the backend decides
};
// Gathers and sums of several tensors, of all types, in place and not, in one piece and in several.
std::vector<CollectiveCase> collective_cases();
OneCollective gather_case(int rank, int ranks, bool in_place);
OneCollective sum_case(int rank, int ranks, bool sent_bf16);

// That all cases have the same bits on the host and on cards. Returns what a rank throws first.
std::string check_collectives(const OpenRank& open_host, const OpenRank& open_card, int ranks);

}  // namespace snug::backends::test
