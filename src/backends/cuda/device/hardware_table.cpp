#include "backends/cuda/device/hardware_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "backends/cuda/device/hardware_file.h"
#include "backends/cuda/kernels/sizes.h"
#include "base/file.h"
#include "base/nearest.h"

namespace snug::backends::cuda {
namespace {

// The shared memory that a block can have, by compute capability (CUDA programming guide, technical
// specifications).
constexpr int64_t shared_bytes(int compute_capability) {
  if (compute_capability == 80) return 163 << 10;
  if (compute_capability == 90 || compute_capability == 100) return 227 << 10;
  return kLeastSharedBytes;
}

// The cycles of TensorCores for a compute capability. A quarter of a multiprocessor does 4096
// operations for a product. By the makers' white papers it does 512 per cycle for 8.0, 1024 for 9.0
// and 2048 for 10.0; 256 for the others, or 128 where f32 sums halve the rate (GeForce), which
// shows in a bf16 rate that is only twice the f32 rate. From 10.0 on it is not known what mma.sync
// reaches; it is assumed to be as fast as on Hopper.
program::TensorCores cycles_of(const HardwareRow& row) {
  const bool is_halved = row.rates.bf16_flops_per_second < 3 * row.rates.f32_flops_per_second;
  const program::TensorCores hopper;
  switch (row.compute_capability) {
    case 80:
      return {.peak_cycles = 8, .warp_cycles = 8};
    case 90:
      return hopper;
    case 100:
      return {.peak_cycles = 2, .warp_cycles = hopper.warp_cycles};
    default:
      return is_halved ? program::TensorCores{.peak_cycles = 32, .warp_cycles = 32}
                       : program::TensorCores{.peak_cycles = 16, .warp_cycles = 16};
  }
}

std::vector<std::string_view> names_of(const std::vector<HardwareRow>& rows) {
  std::vector<std::string_view> all(rows.size());
  std::ranges::transform(rows, all.begin(), &HardwareRow::name);
  return all;
}

// A table is a page or two long.
constexpr int64_t kMaxBytes = int64_t{1} << 20;

bool is_slower(const HardwareRow& a, const HardwareRow& b) {
  return a.rates.bf16_flops_per_second < b.rates.bf16_flops_per_second;
}

}  // namespace

// Kernels are built for compute capability 8.0 and later.
bool is_supported(const HardwareRow& row) { return row.compute_capability >= 80; }

const HardwareTable& HardwareTable::built_in() {
  static const HardwareTable table(read_hardware(built_in_hardware_yaml(), "hardware.yaml", {}));
  return table;
}

HardwareTable HardwareTable::with_file(const std::string& file) {
  if (file.empty()) return built_in();
  return HardwareTable(
      read_hardware(base::read_text_file(file, kMaxBytes), file, built_in().rows_));
}

const HardwareRow* HardwareTable::find(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, &HardwareRow::name);
  return found == rows_.end() ? nullptr : &*found;
}

std::string HardwareTable::names() const {
  return fmt::format("{}", fmt::join(names_of(rows_), ", "));
}

std::optional<std::string> HardwareTable::nearest(std::string_view name) const {
  const auto nearest = base::nearest_name(name, names_of(rows_));
  return nearest ? std::optional<std::string>(*nearest) : std::nullopt;
}

std::vector<HardwareRow> hardware_table() {
  std::vector<HardwareRow> rows;
  std::ranges::copy_if(HardwareTable::built_in().rows(), std::back_inserter(rows), is_supported);
  return rows;
}

const HardwareRow* find_hardware(std::string_view name) {
  return HardwareTable::built_in().find(name);
}

program::DataSheetRates rates_of(const HardwareRow& row) {
  const Card card = card_of(row);
  program::DataSheetRates rates = row.rates;
  rates.tensor_cores = cycles_of(row);
  rates.tensor_cores.shared_bytes = static_cast<double>(card.shared_bytes + kReservedSharedBytes);
  rates.tensor_cores.reserved_bytes = static_cast<double>(kReservedSharedBytes);
  return rates;
}

program::DataSheetRates rates_of(std::string_view driver_name, int compute_capability) {
  const std::vector<HardwareRow> rows = hardware_table();
  const auto named = std::ranges::find(rows, driver_name, &HardwareRow::driver_name);
  if (named != rows.end()) return rates_of(*named);
  std::vector<HardwareRow> alike;
  std::ranges::copy_if(rows, std::back_inserter(alike), [&](const HardwareRow& row) {
    return row.compute_capability == compute_capability;
  });
  return rates_of(*std::ranges::min_element(alike.empty() ? rows : alike, is_slower));
}

Card card_of(const HardwareRow& row) {
  return {.compute_capability = row.compute_capability,
          .multiprocessors = row.multiprocessors,
          .shared_bytes = shared_bytes(row.compute_capability)};
}

program::DeviceFacts facts_of(const HardwareRow& row) {
  return {.name = row.name,
          .is_here = false,
          .memory_bytes = static_cast<int64_t>(row.memory_gib * (int64_t{1} << 30)),
          .outside_bytes = kAssumedOutsideBytes,
          .reserved_bytes = 0,
          .host_outside_bytes = kAssumedHostBytes,
          .rates = rates_of(row)};
}

}  // namespace snug::backends::cuda
