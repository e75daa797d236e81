// The table of hardware that is built in, and a user's file that adds to it.
#include "backends/cuda/device/hardware_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cuda/device/planned_card.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

constexpr const char* kNewCard =
    "devices:\n"
    "  my-card:\n"
    "    compute_capability: 90\n"
    "    multiprocessors: 100\n"
    "    memory_gib: 60.5\n"
    "    bf16_flops_per_second: 500e12\n"
    "    f32_flops_per_second: 50e12\n"
    "    bytes_per_second: 2e12\n"
    "    link_bytes_per_second: 64e9\n";

std::vector<HardwareRow> read(const std::string& yaml) {
  return read_hardware(yaml, "mine.yaml", HardwareTable::built_in().rows());
}

const HardwareRow& row_of(const std::vector<HardwareRow>& rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &HardwareRow::name);
  EXPECT_NE(found, rows.end()) << name;
  return *found;
}

std::string error_of(const std::string& yaml) {
  try {
    read(yaml);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HardwareFile, HasTheCardsThatPeopleHaveAndRent) {
  for (const char* name :
       {"rtx-3090", "rtx-4090", "rtx-a5000", "rtx-a6000", "rtx-6000-ada", "l4", "l40s", "t4",
        "v100", "a100-40gb", "a100", "h100-pcie", "h100", "h200", "rtx-pro-6000", "b200"})
    EXPECT_NE(find_hardware(name), nullptr) << name;
  for (const HardwareRow& row : HardwareTable::built_in().rows()) {
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_FALSE(row.interconnect.empty()) << row.name;
    if (row.price) {
      EXPECT_GT(row.price->low, 0) << row.name;
      EXPECT_FALSE(row.price->date.empty()) << row.name;
    }
    EXPECT_EQ(is_supported(row), row.rates.bf16_flops_per_second > 0) << row.name;
    EXPECT_EQ(is_supported(row), row.rates.interconnect_bytes_per_second > 0) << row.name;
  }
}

// What plans are made of, as it was published with them.
TEST(HardwareFile, KeepsTheFiguresOfPlansThatWereMade) {
  const program::DataSheetRates h100 = find_hardware("h100")->rates;
  EXPECT_EQ(h100.bf16_flops_per_second, 989e12);
  EXPECT_EQ(h100.f32_flops_per_second, 67e12);
  EXPECT_EQ(h100.bytes_per_second, 3.35e12);
  EXPECT_EQ(h100.host_bytes_per_second, 64e9);
  EXPECT_EQ(h100.interconnect_bytes_per_second, 361e9);
  EXPECT_EQ(find_hardware("h100")->memory_gib, 79.1);
  EXPECT_EQ(find_hardware("rtx-4090")->rates.interconnect_bytes_per_second, 3.8e9);
  EXPECT_EQ(find_hardware("rtx-a6000")->rates.interconnect_bytes_per_second, 37e9 / 2);
  EXPECT_EQ(find_hardware("l4")->rates.interconnect_bytes_per_second, 37e9 / 4);
  EXPECT_EQ(find_hardware("l4")->rates.host_bytes_per_second, 16e9);
  EXPECT_EQ(find_hardware("rtx-5090")->rates.f32_flops_per_second, 104.8e12);
  EXPECT_EQ(find_hardware("a100-40gb")->memory_gib, 39.3);
}

TEST(HardwareFile, OfAUserChangesFiguresAndKeepsTheRest) {
  const std::vector<HardwareRow> rows = read(
      "devices:\n  rtx-4090: {memory_gib: 47.4, price: {low: 0.5, high: 1, date: 2026-11-01}, "
      "machine_memory: 256GiB}\n");
  const HardwareRow& row = row_of(rows, "rtx-4090");
  EXPECT_EQ(row.memory_gib, 47.4);
  EXPECT_EQ(row.price->high, 1);
  EXPECT_EQ(row.price->date, "2026-11-01");
  EXPECT_EQ(row.machine_memory_bytes, int64_t{256} << 30);
  EXPECT_EQ(row.rates.bf16_flops_per_second, 165.2e12);
  EXPECT_EQ(rows.size(), HardwareTable::built_in().rows().size());
  EXPECT_EQ(find_hardware("rtx-4090")->memory_gib, 23.6);
}

TEST(HardwareFile, OfAUserAddsACard) {
  const std::vector<HardwareRow> rows = read(kNewCard);
  const HardwareRow& row = row_of(rows, "my-card");
  EXPECT_EQ(row.rates.host_bytes_per_second, 64e9);
  EXPECT_EQ(row.rates.interconnect_bytes_per_second, 0);
  EXPECT_FALSE(row.price);
  const PlannedCard card(row, 0);
  EXPECT_EQ(card.device()->memory_bytes, static_cast<int64_t>(60.5 * (int64_t{1} << 30)));
}

TEST(HardwareFile, ErrorsNameTheLineAndTheKey) {
  const std::string card = "devices:\n  rtx-4090:\n    ";
  const std::vector<std::pair<std::string, std::string>> errors{
      {card + "memory: 24", "mine.yaml:3:5: 'rtx-4090.memory' is no key of a device"},
      {card + "memory_gb: 24",
       "mine.yaml:3:5: 'rtx-4090.memory_gb' is no key of a device; did you mean 'memory_gib'?"},
      {card + "memory_gib: much",
       "mine.yaml:3:17: 'rtx-4090.memory_gib' is 'much', which is no "
       "number"},
      {card + "memory_gib: -1",
       "mine.yaml:3:17: 'rtx-4090.memory_gib' is -1, but must be at least"},
      {card + "memory_gib: nan", "mine.yaml:3:17: 'rtx-4090.memory_gib'"},
      {card + "multiprocessors: 1.5", "mine.yaml:3:22: 'rtx-4090.multiprocessors' is '1.5'"},
      {card + "memory_gib: [1, 2]", "mine.yaml:3:17: 'rtx-4090.memory_gib' needs one value"},
      {card + "memory_gib: 24\n    memory_gib: 25",
       "mine.yaml:4:5: 'rtx-4090.memory_gib' is given "
       "twice"},
      {card + "price: 1", "mine.yaml:3:12: 'rtx-4090.price' needs low, high and date"},
      {card + "price: {low: 1, high: 2}", "'rtx-4090.price' lacks date"},
      {card + "price: {low: 3, high: 2, date: 2026}", "'rtx-4090.price' has a low end above"},
      {card + "price: {low: 3, hi: 2, date: 2026}", "'rtx-4090.price.hi' is no part of a price"},
      {card + "machine_memory: 1 parsec", "mine.yaml:3:21: 'rtx-4090.machine_memory'"},
      {card + "memory_is_confirmed: maybe", "'rtx-4090.memory_is_confirmed' is 'maybe'"},
      {"devices:\n  mine: {memory_gib: 24}\n",
       "mine.yaml:2:9: 'mine' is not in the built-in table, "
       "so it needs compute_capability"},
      {"devices:\n  mine:\n", "mine.yaml:2:3: 'mine' needs 'key: value' lines of its own"},
      {"devices: 3\n", "mine.yaml:1:10: 'devices' needs the names of devices"},
      {"cards: {}\n", "mine.yaml:1:1: 'cards' is no key of a table of hardware"},
      {"- 1\n", "mine.yaml: a table of hardware has the keys date and devices"},
      {"devices: {rtx-4090: {", "mine.yaml:1:"},
  };
  for (const auto& [yaml, message] : errors)
    EXPECT_NE(error_of(yaml).find(message), std::string::npos) << yaml << "\n"
                                                               << error_of(yaml) << "\n"
                                                               << message;
}

}  // namespace
}  // namespace snug::backends::cuda
