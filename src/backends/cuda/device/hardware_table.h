// GPUs for which plans can be made even where they are not present, with the values of their
// makers' data sheets. The memory size is what a process can actually get, never more. The rows,
// with their sources, are in hardware.yaml. Immutable; may be shared between threads.
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

// The range of prices in clouds for one GPU, in US dollars per hour.
struct Price {
  double low = 0;
  double high = 0;
  std::string date;  // the date of these prices
};

struct HardwareRow {
  std::string name;         // the name in recipes
  std::string driver_name;  // the name that the driver reports
  int compute_capability = 0;
  int multiprocessors = 0;
  double memory_gib = 0;
  bool memory_is_confirmed = true;  // a log has shown what a process really gets
  program::DataSheetRates rates;    // as in the data sheet; 0: unknown or, for bf16, not supported
  std::string interconnect;         // the links between the GPUs of a machine, in words
  // The machine that usually holds the GPU; 0: unknown.
  int machine_devices = 0;
  int64_t machine_memory_bytes = 0;
  std::optional<Price> price;
  std::string source;
};

// Whether Snug has kernels for it.
bool is_supported(const HardwareRow& row);

// hardware.yaml, optionally with the changes of a user's own file.
class HardwareTable {
 public:
  static const HardwareTable& built_in();
  // The built-in table where `file` is empty. Throws UserError with the file's line and key.
  static HardwareTable with_file(const std::string& file);

  const std::vector<HardwareRow>& rows() const { return rows_; }
  // The row with this name in recipes; nullptr when unknown.
  const HardwareRow* find(std::string_view name) const;
  // For example "h100, h200, ...".
  std::string names() const;
  // The most similar name, for a user who mistyped one.
  std::optional<std::string> nearest(std::string_view name) const;

 private:
  explicit HardwareTable(std::vector<HardwareRow> rows) : rows_(std::move(rows)) {}
  std::vector<HardwareRow> rows_;
};

// The rows of the built-in table for which Snug has kernels, and the row with a given name.
std::vector<HardwareRow> hardware_table();
const HardwareRow* find_hardware(std::string_view name);
// The row's rates, with the rates of Snug's own kernels on its tensor cores.
program::DataSheetRates rates_of(const HardwareRow& row);
// The rates of a GPU that is present: those of the row with the driver's name; if there is none,
// those of the slowest supported row with its compute capability or, failing that, of all rows.
program::DataSheetRates rates_of(std::string_view driver_name, int compute_capability);
// The properties on which kernels depend.
Card card_of(const HardwareRow& row);
// The row's values as the facts of a GPU that is not present.
program::DeviceFacts facts_of(const HardwareRow& row);

// Assumed, not measured yet. The context of a GPU with 132 multiprocessors takes about half a
// gigabyte, most of it for the kernels' stacks (1 KiB for each of 2048 threads per multiprocessor);
// Snug's own kernels take a few megabytes and cuBLASLt's some tens to hundreds.
inline constexpr int64_t kAssumedOutsideBytes = int64_t{1} << 30;
// Memory for kernels that a job loads, Snug's own and libraries', and for the graphs of its
// programs: with 128 MiB for kernels, graphs of 49,152 launches (program/work/graph_memory.h). It
// is allocated after planning and before the first step. The plan includes what the job's graphs
// take, and this is compared with the GPU's free memory before they are recorded.
inline constexpr int64_t kLateBytes = int64_t{512} << 20;
// Host memory that a run on a GPU takes after planning: library kernels that are compiled or
// touched when operations are prepared, and graphs.
inline constexpr int64_t kLateHostBytes = int64_t{512} << 20;
// Host memory of the driver, the context and the touched pages of cuBLASLt.
inline constexpr int64_t kAssumedHostBytes = int64_t{1} << 30;

}  // namespace snug::backends::cuda
