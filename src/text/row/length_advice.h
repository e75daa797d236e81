// Advice for an answer that max_length cuts away entirely, with a length that the job can accept.
#pragma once

#include <cstdint>
#include <string>

namespace snug::text {

// The length of the record, or the largest of several records: `whole` tokens; with more than
// `first_target` tokens at least a part of the answer is left.
struct NeededLength {
  int64_t whole = 0;
  int64_t first_target = 0;
};

// Advice to set `key`, the recipe's key for that length, to a length that holds the whole record,
// if the model has as many positions; otherwise to the most that it has.
std::string length_advice(const NeededLength& needed, int64_t positions, const char* key);

}  // namespace snug::text
