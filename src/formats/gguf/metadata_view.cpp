#include "formats/gguf/metadata_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <variant>

#include "base/error.h"

namespace snug::formats {
namespace {

template <typename T>
constexpr bool is_integer_type = std::is_integral_v<T> && !std::is_same_v<T, bool>;

std::optional<int64_t> as_integer(const MetadataValue& value) {
  return std::visit(
      [](const auto& held) -> std::optional<int64_t> {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (is_integer_type<Held>)
          if (std::in_range<int64_t>(held)) return static_cast<int64_t>(held);
        return std::nullopt;
      },
      value);
}

// A float is the decimal number of fewest digits that it stands for: 1e-05 rather than
// 9.999999747378752e-06.
std::optional<double> as_number(const MetadataValue& value) {
  if (const auto integer = as_integer(value)) return static_cast<double>(*integer);
  double number = NAN;
  if (const auto* single = std::get_if<float>(&value); single && std::isfinite(*single))
    number = std::stod(fmt::format("{}", *single));
  if (const auto* twice = std::get_if<double>(&value)) number = *twice;
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::vector<int64_t> integers_of(const MetadataValue& value) {
  return std::visit(
      [](const auto& held) -> std::vector<int64_t> {
        using Held = std::decay_t<decltype(held)>;
        std::vector<int64_t> list;
        if constexpr (std::is_same_v<Held, std::vector<int32_t>> ||
                      std::is_same_v<Held, std::vector<uint32_t>> ||
                      std::is_same_v<Held, std::vector<int64_t>> ||
                      std::is_same_v<Held, std::vector<uint64_t>> ||
                      std::is_same_v<Held, std::vector<bool>>)
          for (const auto element : held)
            list.push_back(std::in_range<int64_t>(+element) ? static_cast<int64_t>(element) : -1);
        return list;
      },
      value);
}

}  // namespace

void MetadataView::fail(std::string_view key, const std::string& problem) const {
  base::throw_user_error("{}: the metadata's {} {}", file_, key, problem);
}

const MetadataValue& MetadataView::at(std::string_view key) const {
  const MetadataValue* value = metadata_->find(key);
  if (value == nullptr)
    fail(key, "is missing; the file was not written by llama.cpp's converters, or is damaged");
  return *value;
}

int64_t MetadataView::integer(std::string_view key) const {
  const auto value = as_integer(at(key));
  if (!value) fail(key, "is not an integer");
  return *value;
}

double MetadataView::number(std::string_view key) const {
  const auto value = as_number(at(key));
  if (!value) fail(key, "is not a finite number");
  return *value;
}

bool MetadataView::boolean(std::string_view key) const {
  const auto* value = std::get_if<bool>(&at(key));
  if (value == nullptr) fail(key, "is neither true nor false");
  return *value;
}

const std::string& MetadataView::text(std::string_view key) const {
  const auto* value = std::get_if<std::string>(&at(key));
  if (value == nullptr) fail(key, "is not text");
  return *value;
}

std::vector<int64_t> MetadataView::integers(std::string_view key, int64_t count) const {
  const MetadataValue& value = at(key);
  if (const auto single = as_integer(value))
    return std::vector<int64_t>(static_cast<size_t>(count), *single);
  std::vector<int64_t> list = integers_of(value);
  if (std::ssize(list) != count)
    fail(key, fmt::format("is neither an integer nor an array of {} of them", count));
  return list;
}

std::vector<double> MetadataView::numbers(std::string_view key, int64_t count) const {
  const MetadataValue& value = at(key);
  if (const auto single = as_number(value))
    return std::vector<double>(static_cast<size_t>(count), *single);
  std::vector<double> list;
  if (const auto* singles = std::get_if<std::vector<float>>(&value))
    list.assign(singles->begin(), singles->end());
  if (const auto* twice = std::get_if<std::vector<double>>(&value)) list = *twice;
  const auto is_finite = [](double number) { return std::isfinite(number); };
  if (std::ssize(list) != count || !std::ranges::all_of(list, is_finite))
    fail(key, fmt::format("is neither a number nor an array of {} finite ones", count));
  return list;
}

int64_t MetadataView::integer_or(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

double MetadataView::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

bool MetadataView::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

}  // namespace snug::formats
