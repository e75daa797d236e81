// Reads tables of hardware: hardware.yaml, which is built into the binary, and a user's own file,
// which adds rows or changes some values of existing ones (docs/search.md).
//
//   date: 2026-11-25
//   devices:
//     rtx-4090: {memory_gib: 47.4}                  a known row with another value
//     my-card: {compute_capability: 89, ...}        a new row
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/hardware_table.h"

namespace snug::backends::cuda {

std::string_view built_in_hardware_yaml();

// Returns `known` with the additions and changes of the text. A new row must have
// compute_capability, multiprocessors, memory_gib and all rates except that of the interconnect.
// Throws UserError with file, line and key.
std::vector<HardwareRow> read_hardware(std::string_view yaml, const std::string& file,
                                       std::vector<HardwareRow> known);

}  // namespace snug::backends::cuda
