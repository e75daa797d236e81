// What a backend did with an operation, noted by the code that did it: held against the program, it
// shows that what ran is what was planned.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "program/ir/operation.h"
#include "program/kinds/field.h"
#include "program/work/extent.h"

namespace snug::backends {

struct Trace {
  int64_t runs = 0;  // how often it was run, or queued
  program::Kind kind{};
  program::Channel channel = program::Channel::compute;
  // Their names are those of the attributes in which the program says the same
  // (program/kinds/field.h).
  std::vector<std::pair<std::string_view, int64_t>> decisions;
  // The sizes of the pieces in which it was done (program::WorkList), in order.
  std::vector<int64_t> pieces;
  // How much was done where the batch decides it (Traits::extents); none where it does not.
  std::optional<program::Extent> extent;
  // It was done, or queued, for all that shapes allow, whatever the batch holds.
  bool by_capacity = false;
  int64_t bytes = 0;      // of the operands that were asked for (note_operand)
  uint64_t operands = 0;  // which those are, a bit for each
  bool joined = false;    // done by the launch of the operation before it
  // Kernels and library calls that were started for it and for what is joined to it, without copies
  // and the messages of ranks; and how many fewer they are than the program states where what is
  // timed (ProductAlgorithm::timed) takes fewer than the most that it may take.
  int64_t launches = 0;
  int64_t launches_spared = 0;

  void note_extent(const program::Extent& done) {
    extent = done;
    by_capacity = false;
  }
  void note_capacity(const program::Extent& most) {
    extent = most;
    by_capacity = true;
  }
  // That the code which does it asked for this operand, by whatever thread and however often.
  void note_operand(int bit, int64_t size) {
    const uint64_t mask = uint64_t{1} << bit;
    const uint64_t before = std::atomic_ref(operands).fetch_or(mask, std::memory_order_relaxed);
    if ((before & mask) == 0) std::atomic_ref(bytes).fetch_add(size, std::memory_order_relaxed);
  }
  // That a decision, or a part of one, was carried out so; of a struct all its parts:
  // note_decision<&program::Matmul::products, &program::ProductCount::count>(1).
  template <auto... path>
  void note_decision(const program::PathValue<path...>& value) {
    if constexpr (program::HasParts<program::PathValue<path...>>)
      program::for_each_part_of<program::PathValue<path...>>([&](const auto& part) {
        decisions.emplace_back(part.name, static_cast<int64_t>(part.of(value)));
      });
    else
      decisions.emplace_back(program::decision_name<path...>(), static_cast<int64_t>(value));
  }
  // Notes a decision of what is done in parts, of which the largest value counts.
  template <auto... path>
  void note_largest(int64_t value) {
    constexpr std::string_view kName = program::decision_name<path...>();
    const auto known =
        std::ranges::find(decisions, kName, &std::pair<std::string_view, int64_t>::first);
    if (known == decisions.end()) return static_cast<void>(decisions.emplace_back(kName, value));
    known->second = std::max(known->second, value);
  }
};

}  // namespace snug::backends
