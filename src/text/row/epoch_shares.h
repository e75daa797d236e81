// What an epoch takes of each part of a mix of data: a part is the documents of one entry of a
// recipe's data, in groups of those that belong together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace snug::text {

// Consecutive groups of documents, and how many of them an epoch takes: as many as there are, each
// once; fewer, which an epoch takes in turn with those after it; or more, each several times.
struct EpochPart {
  int64_t groups = 0;
  int64_t taken = 0;
  bool operator==(const EpochPart&) const = default;
};

// What a recipe says of one entry.
struct EntryShare {
  int64_t groups = 0;  // that were read
  double weight = 0;   // 0: none is given
  double repeats = 1;  // where no weight is given
};

// Parts in the order of the entries. Without weights an epoch takes repeats x groups of an entry,
// rounded. With weights it takes as many groups as all entries have, and of each its weight's share
// of them, so that the sum is exact and no share is off by one or more (the method of largest
// remainders). Either way it takes at least one group of an entry that has some, unless repeats is
// 0. Requires finite numbers of at least 0, and a weight above 0 for all entries or for none; the
// caller says so to its user. Throws UserError where an epoch would take more than kMostGroups.
std::vector<EpochPart> epoch_shares(std::span<const EntryShare> entries);

// The most often that an epoch takes one document: 1 without parts. An epoch that ends one cycle
// through a part and begins the next may take a document of both.
int64_t most_times(std::span<const EpochPart> parts);

// Documents of an epoch are counted in 31 bits, and a group has at most two.
constexpr int64_t kMostGroups = (int64_t{1} << 30) - 1;

}  // namespace snug::text
