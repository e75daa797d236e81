// Sources. Rates, multiprocessors and compute capability: NVIDIA's data sheets and architecture
// white papers of each card; bf16 rates are dense (half of what is printed with sparsity) and with
// sums in f32, which halves those of GeForce cards. Link: the nominal rate of PCIe x16 each way, 32
// GB/s of generation 4 and 64 of generation 5. Memory: a process is given less than the name says;
// the least total that PyTorch's out-of-memory messages in public issue threads show for the card,
// rounded down to a tenth of a GiB.
#include "backends/cuda/hardware_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/nearest.h"

namespace snug::backends::cuda {
namespace {

constexpr double kPcie4 = 32e9;
constexpr double kPcie5 = 64e9;

// Bytes that a card sends in a second of a collective over all cards of its machine, as public runs
// of nccl-tests show: 8 B200, 8 H200 and 8 A100 by NVLink; 8 cards that reach each other over PCIe
// of generation 5, half of it for generation 4; 8 cards of generation 5 and 2 of generation 4 whose
// copies pass through the host's memory.
constexpr double kNvlink5 = 682e9;
constexpr double kNvlink4 = 361e9;
constexpr double kNvlink3 = 235e9;
constexpr double kPcie5Peers = 37e9;
constexpr double kPcie4Peers = kPcie5Peers / 2;
constexpr double kPcie5Staged = 28e9;
constexpr double kPcie4Staged = 3.8e9;

constexpr std::array<HardwareRow, 12> kRows{{
    // Blackwell data sheet (HGX B200, an eighth of it): 8 TB/s is printed, 7.7 for the HGX.
    {"b200", "NVIDIA B200", 100, 148, 178.3, {2250e12, 75e12, 7.7e12, kPcie5, kNvlink5}},
    // H200 data sheet, SXM.
    {"h200", "NVIDIA H200", 90, 132, 139.7, {989e12, 67e12, 4.8e12, kPcie5, kNvlink4}},
    // H100 data sheet, SXM and PCIe.
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 79.1, {989e12, 67e12, 3.35e12, kPcie5, kNvlink4}},
    {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 79.1, {756e12, 51e12, 2.0e12, kPcie5, kPcie5Peers}},
    // A100 data sheet, SXM, 80 and 40 GB.
    {"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 79.1, {312e12, 19.5e12, 2.039e12, kPcie4, kNvlink3}},
    {"a100-40gb",
     "NVIDIA A100-SXM4-40GB",
     80,
     108,
     39.3,
     {312e12, 19.5e12, 1.555e12, kPcie4, kNvlink3}},
    // L40S data sheet.
    {"l40s", "NVIDIA L40S", 89, 142, 44.3, {362e12, 91.6e12, 0.864e12, kPcie4, kPcie4Peers}},
    // L4 data sheet.
    {"l4", "NVIDIA L4", 89, 58, 21.9, {121e12, 30.3e12, 0.3e12, kPcie4 / 2, kPcie4Peers / 2}},
    // RTX Blackwell white paper.
    {"rtx-5090",
     "NVIDIA GeForce RTX 5090",
     120,
     170,
     31.3,
     {209.5e12, 104.8e12, 1.792e12, kPcie5, kPcie5Staged}},
    // Ada white paper.
    {"rtx-4090",
     "NVIDIA GeForce RTX 4090",
     89,
     128,
     23.6,
     {165.2e12, 82.6e12, 1.008e12, kPcie4, kPcie4Staged}},
    // Ampere GA102 white paper.
    {"rtx-3090",
     "NVIDIA GeForce RTX 3090",
     86,
     82,
     23.6,
     {71e12, 35.6e12, 0.936e12, kPcie4, kPcie4Staged}},
    // RTX A6000 data sheet.
    {"rtx-a6000",
     "NVIDIA RTX A6000",
     86,
     84,
     47.4,
     {154.8e12, 38.7e12, 0.768e12, kPcie4, kPcie4Peers}},
}};

// CUDA programming guide, technical specifications by compute capability: shared memory that a
// block may ask for.
constexpr int64_t shared_bytes(int compute_capability) {
  if (compute_capability == 80) return 163 << 10;
  if (compute_capability == 90 || compute_capability == 100) return 227 << 10;
  return 99 << 10;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all(kRows.size());
  std::ranges::transform(kRows, all.begin(), &HardwareRow::name);
  return all;
}

bool is_slower(const HardwareRow& a, const HardwareRow& b) {
  return a.rates.bf16_flops_per_second < b.rates.bf16_flops_per_second;
}

}  // namespace

std::span<const HardwareRow> hardware_table() { return kRows; }

const HardwareRow* find_hardware(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &HardwareRow::name);
  return found == kRows.end() ? nullptr : &*found;
}

program::DataSheetRates rates_of(std::string_view driver_name, int compute_capability) {
  const auto named = std::ranges::find(kRows, driver_name, &HardwareRow::driver_name);
  if (named != kRows.end()) return named->rates;
  std::vector<HardwareRow> alike;
  std::ranges::copy_if(kRows, std::back_inserter(alike), [&](const HardwareRow& row) {
    return row.compute_capability == compute_capability;
  });
  if (alike.empty()) alike.assign(kRows.begin(), kRows.end());
  return std::ranges::min_element(alike, is_slower)->rates;
}

std::string hardware_names() { return fmt::format("{}", fmt::join(names(), ", ")); }

std::optional<std::string> nearest_hardware(std::string_view name) {
  const auto nearest = base::nearest_name(name, names());
  return nearest ? std::optional<std::string>(*nearest) : std::nullopt;
}

Card card_of(const HardwareRow& row) {
  return {.compute_capability = row.compute_capability,
          .multiprocessors = row.multiprocessors,
          .shared_bytes = shared_bytes(row.compute_capability)};
}

program::DeviceFacts facts_of(const HardwareRow& row) {
  return {.name = std::string(row.name),
          .is_here = false,
          .memory_bytes = static_cast<int64_t>(row.memory_gib * (int64_t{1} << 30)),
          .outside_bytes = kAssumedOutsideBytes,
          .reserved_bytes = 0,
          .host_outside_bytes = kAssumedHostBytes,
          .rates = row.rates};
}

}  // namespace snug::backends::cuda
