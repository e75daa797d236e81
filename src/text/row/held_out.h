// Which records evaluate and do not train, where a recipe takes them out of its data
// (val_set_size). A record's side depends on a seed and on what the record holds, and on nothing
// else: not on the other records, their order, the form, or what is left out or cut. So equal
// records are on one side, and parts stay the same whatever else changes.
#pragma once

#include <cstdint>
#include <queue>
#include <string_view>
#include <vector>

#include "text/record/record_reader.h"

namespace snug::text {

// A number for a record, evenly spread over 64 bits. Of a JSON object neither white space nor the
// order of its keys matter; of a record that is too long to be held, the first 64 KiB and the size
// count, and of a text that is read in pieces the first piece. Any thread.
uint64_t record_hash(const RawRecord& record, uint64_t seed);

// The records that are held out: those whose numbers are at most `most`.
struct HeldOut {
  uint64_t seed = 0;
  uint64_t most = 0;
  bool holds(const RawRecord& record) const { return record_hash(record, seed) <= most; }
};

// A share of all records, between 0 and 1.
HeldOut held_out_share(double share, uint64_t seed);

// Finds the bound that holds out a number of records. One thread.
class HeldOutCount {
 public:
  // What it holds at most for each record that is to be held out: a number, and as many again twice
  // while the list of them grows by doubling.
  static constexpr int64_t kBytesOfRecord = 3 * static_cast<int64_t>(sizeof(uint64_t));

  HeldOutCount(int64_t records, uint64_t seed) : records_(records), seed_(seed) {}

  void add(const RawRecord& record);

  // So many records of those that were added; where equal ones stand at the bound, fewer, but at
  // least one. All, where there are no more. Takes the numbers away, so that nothing is copied.
  HeldOut take_bound();
  int64_t added() const { return added_; }

 private:
  int64_t records_;
  uint64_t seed_;
  int64_t added_ = 0;
  std::priority_queue<uint64_t> least_;  // of one record more than are held out, where there is one
};

}  // namespace snug::text
