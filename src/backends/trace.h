// What a backend did with an operation, noted by the code that did it: held against the program, it
// shows that what ran is what was planned.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "program/operation.h"

namespace snug::backends {

struct Trace {
  int64_t runs = 0;  // how often it was run, or queued
  program::Kind kind{};
  program::Channel channel = program::Channel::compute;
  // By the names of the attributes in which the program says the same (Traits::decisions).
  std::vector<std::pair<std::string_view, int64_t>> decisions;
  // How much was done of what the batch decides (Traits::extent), in rows; -1: not decided by it.
  int64_t extent = -1;
  int64_t bytes = 0;    // of its operands
  bool joined = false;  // done by the launch of the operation before it

  void decision(std::string_view name, int64_t value) { decisions.emplace_back(name, value); }
};

}  // namespace snug::backends
