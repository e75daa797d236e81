// Cards that a plan may be made for where they are not: what they can do and hold, from their
// makers' data sheets. Memory is what a process can be given, never more. The rows are data:
// hardware.yaml, with their sources. Immutable; may be shared between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda/needs/card.h"
#include "program/work/device_facts.h"

namespace snug::backends::cuda {

// What clouds ask for a card in US dollars an hour, from the lowest to the highest.
struct Price {
  double low = 0;
  double high = 0;
  std::string date;  // of that
};

struct HardwareRow {
  std::string name;         // as a recipe says it
  std::string driver_name;  // as the driver says it
  int compute_capability = 0;
  int multiprocessors = 0;
  double memory_gib = 0;
  bool memory_is_confirmed = true;  // by a message that shows what a process is given
  program::DataSheetRates rates;    // as they are given; 0: unknown or, of bf16, none
  std::string interconnect;         // between the cards of a machine, in words
  // The machine that the GPU usually is in; 0: unknown.
  int machine_devices = 0;
  int64_t machine_memory_bytes = 0;
  std::optional<Price> price;
  std::string source;
};

// Whether there are kernels for it.
bool is_supported(const HardwareRow& row);

// hardware.yaml, maybe with what a user's own file says.
class HardwareTable {
 public:
  static const HardwareTable& built_in();
  // The built-in table where `file` is empty. Throws UserError with the file's line and key.
  static HardwareTable with_file(const std::string& file);

  const std::vector<HardwareRow>& rows() const { return rows_; }
  // The row by the name of a recipe; nullptr when unknown.
  const HardwareRow* find(std::string_view name) const;
  // "h100, h200, ...".
  std::string names() const;
  // The nearest name, for a user who mistyped one.
  std::optional<std::string> nearest(std::string_view name) const;

 private:
  explicit HardwareTable(std::vector<HardwareRow> rows) : rows_(std::move(rows)) {}
  std::vector<HardwareRow> rows_;
};

// The rows of the built-in table that have kernels, and the row with a name.
std::vector<HardwareRow> hardware_table();
const HardwareRow* find_hardware(std::string_view name);
// The row's rates, and how own kernels run on its tensor cores.
program::DataSheetRates rates_of(const HardwareRow& row);
// The rates of a card that is here: of the row with the driver's name; where there is none, of the
// slowest supported row of its compute capability or, that failing, of all.
program::DataSheetRates rates_of(std::string_view driver_name, int compute_capability);
// What the kernels see of it.
Card card_of(const HardwareRow& row);
// The row as what is known of a card that is not here.
program::DeviceFacts facts_of(const HardwareRow& row);

// Assumptions, not measured yet. A context of a card with 132 multiprocessors takes about half a
// gigabyte, most of it the kernels' stacks (1 KiB for each of 2048 threads a multiprocessor); own
// kernels take a few megabytes and cuBLASLt's some tens to hundreds.
inline constexpr int64_t kAssumedOutsideBytes = int64_t{1} << 30;
// Kernels that a job loads, own ones and libraries', and the graphs of its programs: with 128 MiB
// for kernels, graphs of 49,152 launches (program/work/graph_memory.h). They come after the plan
// and before the first step. What a job's graphs take stands in its plan, and is held against the
// card's free memory before they are recorded.
inline constexpr int64_t kLateBytes = int64_t{512} << 20;
// Host memory that a run on a card takes after it was planned: kernels of libraries that are
// compiled or touched when its operations are prepared, graphs.
inline constexpr int64_t kLateHostBytes = int64_t{512} << 20;
// Host memory of the driver, the context and the pages of cuBLASLt that are touched.
inline constexpr int64_t kAssumedHostBytes = int64_t{1} << 30;

}  // namespace snug::backends::cuda
