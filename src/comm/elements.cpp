#include "comm/elements.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace snug::comm {
namespace {

using base::BFloat16;
using base::DType;

// Elements may lie at addresses that are not aligned for their type, as received bytes do.
template <typename T>
T element_at(const void* data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void set_element(void* data, size_t index, T value) {
  std::memcpy(static_cast<std::byte*>(data) + index * sizeof(T), &value, sizeof(T));
}

void check_type(DType type) {
  SNUG_CHECK(type == DType::f32 || type == DType::bf16, "collectives do not sum {}",
             base::name_of(type));
}

}  // namespace

const std::byte* element(const void* data, DType type, int64_t index) {
  return static_cast<const std::byte*>(data) + index * base::size_of(type);
}

std::byte* element(void* data, DType type, int64_t index) {
  return static_cast<std::byte*>(data) + index * base::size_of(type);
}

void convert(const void* from, DType from_type, void* to, DType to_type, int64_t count) {
  check_type(from_type);
  check_type(to_type);
  if (from_type == to_type) {
    if (from != to && count > 0) std::memcpy(to, from, count * base::size_of(from_type));
    return;
  }
  std::array<float, kBlockElements> block;
  for (int64_t first = 0; first < count; first += kBlockElements) {
    const auto values = std::span(block).first(std::min(kBlockElements, count - first));
    load(values, element(from, from_type, first), from_type);
    store(values, element(to, to_type, first), to_type);
  }
}

void load(std::span<float> values, const void* from, DType type) {
  if (type == DType::f32) {
    std::memcpy(values.data(), from, values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = base::to_float(element_at<BFloat16>(from, i));
}

void add(std::span<float> values, const void* from, DType type) {
  if (type == DType::f32) {
    for (size_t i = 0; i < values.size(); ++i) values[i] += element_at<float>(from, i);
  } else {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += base::to_float(element_at<BFloat16>(from, i));
  }
}

void round_to(std::span<float> values, DType type) {
  if (type == DType::f32) return;
  for (float& value : values) value = base::to_float(base::to_bfloat16(value));
}

void store(std::span<const float> values, void* to, DType type) {
  if (type == DType::f32) {
    std::memcpy(to, values.data(), values.size_bytes());
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) set_element(to, i, base::to_bfloat16(values[i]));
}

DType narrower(DType a, DType b) { return base::size_of(b) < base::size_of(a) ? b : a; }

}  // namespace snug::comm
