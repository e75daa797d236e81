// The algorithms that the emulated cuBLASLt offers for every product, the first as its best guess.
// They differ in the order of a sum, and so in its last bits, and in how long the emulated device
// takes: tests say how long, so that the fastest is known.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace snug::cuda_emulator {

struct AlgorithmStandIn {
  bool is_offered;                      // by a heuristic that says it will run
  bool runs;                            // once it is tried
  uint64_t sum_parts;                   // parts of a sum that are made one by one and then added
  std::chrono::duration<double> extra;  // device time beyond what the processor takes
};

inline std::array<AlgorithmStandIn, 4> algorithms{{
    {true, true, 1, std::chrono::seconds(4)},
    {true, false, 1, std::chrono::seconds(0)},
    {false, true, 1, std::chrono::seconds(0)},
    {true, true, 3, std::chrono::seconds(0)},
}};

// Of all that ran: events on streams count it.
inline std::chrono::duration<double> extra_device_time{0};

}  // namespace snug::cuda_emulator
