// What to do about an answer that max_length cuts away entirely, so that the job takes what it is
// told to take.
#pragma once

#include <cstdint>
#include <string>

namespace snug::text {

// What the record, or each of several, takes: `whole`, and at least more than `first_target`, of
// which something is left to learn.
struct NeededLength {
  int64_t whole = 0;
  int64_t first_target = 0;
};

// The length that holds all of it, where the model has so many positions. `key`: the recipe's for
// that length.
std::string length_advice(const NeededLength& needed, int64_t positions, const char* key);

}  // namespace snug::text
