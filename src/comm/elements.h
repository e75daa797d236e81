// Conversions and sums of the elements that collectives move, f32 or bf16. Sums are made in fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace snug::comm {

// The number of elements that are summed in fp32 at a time.
inline constexpr int64_t kBlockElements = 1024;

// The address of element `index`.
const std::byte* element(const void* data, base::DType type, int64_t index);
std::byte* element(void* data, base::DType type, int64_t index);

// Rounds to nearest where `to_type` is narrower. `to` may be the same address as `from`, unless
// `to_type` is the wider one.
void convert(const void* from, base::DType from_type, void* to, base::DType to_type, int64_t count);

// values[i] = from[i], or values[i] += from[i] respectively.
void load(std::span<float> values, const void* from, base::DType type);
void add(std::span<float> values, const void* from, base::DType type);
// Rounds each value to one that the type can hold.
void round_to(std::span<float> values, base::DType type);
void store(std::span<const float> values, void* to, base::DType type);

// The type with the fewer bits.
base::DType narrower(base::DType a, base::DType b);

}  // namespace snug::comm
