#include "base/byte_size.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <cmath>

namespace snug::base {
namespace {

struct Unit {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Unit, 4> kBinaryUnits{{{"TiB", int64_t{1} << 40},
                                            {"GiB", int64_t{1} << 30},
                                            {"MiB", int64_t{1} << 20},
                                            {"KiB", int64_t{1} << 10}}};
constexpr std::array<Unit, 6> kOtherUnits{{{"TB", 1'000'000'000'000},
                                           {"GB", 1'000'000'000},
                                           {"MB", 1'000'000},
                                           {"kB", 1'000},
                                           {"KB", 1'000},
                                           {"B", 1}}};

std::optional<int64_t> unit_bytes(std::string_view name) {
  if (name.empty()) return 1;
  for (const Unit& unit : kBinaryUnits)
    if (unit.name == name) return unit.bytes;
  for (const Unit& unit : kOtherUnits)
    if (unit.name == name) return unit.bytes;
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_byte_size(std::string_view text) {
  const char* const end = text.data() + text.size();
  const size_t digits = text.find_first_not_of("0123456789.");
  std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  if (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::optional<int64_t> scale = unit_bytes(unit);
  if (!scale || digits == 0 || text.empty()) return std::nullopt;

  // Whole numbers are parsed exactly as integers; only a fraction goes through floating point.
  const char* const number_end = digits == std::string_view::npos ? end : text.data() + digits;
  int64_t whole = 0;
  const auto [stop, error] = std::from_chars(text.data(), number_end, whole);
  if (error == std::errc() && stop == number_end) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(whole, *scale, &bytes)) return std::nullopt;
    return bytes;
  }
  double value = 0;
  const auto [fraction_stop, fraction_error] = std::from_chars(text.data(), number_end, value);
  if (fraction_error != std::errc() || fraction_stop != number_end || *scale == 1)
    return std::nullopt;
  const double bytes = std::round(value * static_cast<double>(*scale));
  if (!(bytes < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string exact_byte_size(int64_t bytes) {
  for (const Unit& unit : kBinaryUnits)
    if (bytes != 0 && bytes % unit.bytes == 0)
      return fmt::format("{}{}", bytes / unit.bytes, unit.name);
  return fmt::format("{}", bytes);
}

std::string readable_byte_size(int64_t bytes) {
  for (const Unit& unit : kBinaryUnits)
    if (bytes >= unit.bytes || -bytes >= unit.bytes)
      return fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(unit.bytes),
                         unit.name);
  return fmt::format("{} B", bytes);
}

}  // namespace snug::base
