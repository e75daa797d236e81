// What to do about answers that max_length cuts away entirely, so that the job takes what it is
// told to take.
#pragma once

#include <cstdint>
#include <string>

namespace snug::text {

// What a record, or each of several, takes: `whole`, and at least more than `first_target`, of
// which something is left to learn.
struct NeededLength {
  int64_t whole = 0;
  int64_t first_target = 0;
  int64_t positions = 0;           // that the model has
  const char* key = "max_length";  // the recipe's for that length

  // Whether there is a length that keeps something of the answer.
  bool is_reachable() const { return first_target < positions; }
  // Counts another record in.
  void add(const NeededLength& other);
};

// The length that holds all of it, or of all `records`, where the model has so many positions.
std::string length_advice(const NeededLength& needed, int64_t records = 1);

}  // namespace snug::text
