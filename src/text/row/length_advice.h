// Advice for answers that max_length cuts away entirely, with a length that the job can accept.
#pragma once

#include <cstdint>
#include <string>

namespace snug::text {

// The length of a record, or the largest of several records: `whole` tokens; with more than
// `first_target` tokens at least a part of the answer is left.
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

// Advice to set `key` to a length that holds the whole record, or each of `records`, if the model
// has as many positions; otherwise to the most that it has.
std::string length_advice(const NeededLength& needed, int64_t records = 1);

}  // namespace snug::text
