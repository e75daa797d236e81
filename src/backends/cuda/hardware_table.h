// Cards that a plan may be made for where they are not: what they can do and hold, from their
// makers' data sheets. Memory is what a process can be given, never more.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/cuda/needs/card.h"
#include "program/device_facts.h"

namespace snug::backends::cuda {

struct HardwareRow {
  std::string_view name;         // as a recipe says it
  std::string_view driver_name;  // as the driver says it
  int compute_capability = 0;
  int multiprocessors = 0;
  double memory_gib = 0;
  program::DataSheetRates rates;
};

std::span<const HardwareRow> hardware_table();
// By the name of a recipe; nullptr when unknown.
const HardwareRow* find_hardware(std::string_view name);
// The rates of a card that is here: of the row with the driver's name; where there is none, of the
// slowest row of its compute capability or, that failing, of all rows.
program::DataSheetRates rates_of(std::string_view driver_name, int compute_capability);
// "h100, h200, ...".
std::string hardware_names();
// The nearest name, for a user who mistyped one.
std::optional<std::string> nearest_hardware(std::string_view name);

// What the kernels see of it.
Card card_of(const HardwareRow& row);
// The row as what is known of a card that is not here.
program::DeviceFacts facts_of(const HardwareRow& row);

// Assumptions, not measured yet. A context of a card with 132 multiprocessors takes about half a
// gigabyte, most of it the kernels' stacks (1 KiB for each of 2048 threads a multiprocessor); own
// kernels take a few megabytes and cuBLASLt's some tens to hundreds.
inline constexpr int64_t kAssumedOutsideBytes = int64_t{1} << 30;
// Of a CUDA graph, a bound of what a kernel takes: a node with up to 4 KiB of arguments, and as
// much again for what starts it.
inline constexpr int64_t kGraphBytesPerLaunch = int64_t{8} << 10;
constexpr int64_t graph_bytes(int64_t launches) { return launches * kGraphBytesPerLaunch; }
// Of those, kernels that are loaded when they first run, and the graphs of programs: with 128 MiB
// for kernels, graphs of 49,152 launches. What a job's graphs take is held against the card's free
// memory before its first step.
inline constexpr int64_t kLateBytes = int64_t{512} << 20;
// Host memory that a run on a card takes after it was planned: kernels of libraries that are
// compiled or touched when they are first needed, graphs.
inline constexpr int64_t kLateHostBytes = int64_t{512} << 20;
// Host memory of the driver, the context and the pages of cuBLASLt that are touched.
inline constexpr int64_t kAssumedHostBytes = int64_t{1} << 30;

}  // namespace snug::backends::cuda
