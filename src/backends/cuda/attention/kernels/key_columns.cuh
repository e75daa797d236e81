// A lane's columns of a key or a value while decoding, as they were read: they become floats where
// they are used, so that several reads can be in flight.
#pragma once

#include <cstddef>

#include "backends/cuda/attention/kernels/key_codes.cuh"
#include "backends/cuda/kernels/element.cuh"

namespace snug::backends::cuda {

// Used instead of a format for elements of any type, which are read one by one.
struct OneByOne {};

// kVectorElements columns of a key: for 16-bit elements, the 16 bytes as they were read.
template <typename Format>
struct KeyColumns {
  Vector16 pairs;
  __device__ void clear() { pairs = {}; }
  __device__ void read(const DeviceRows& x, int64_t offset, int) {
    pairs = load_vector(static_cast<const uint16_t*>(x.data) + offset);
  }
  __device__ float at(int i) const {
    const uint32_t word = pairs.word[i / 2];
    return i % 2 == 0 ? Format::widen_low(word) : Format::widen_high(word);
  }
};

template <>
struct KeyColumns<OneByOne> {
  Elements<kVectorElements> elements;
  __device__ void clear() { elements = {}; }
  __device__ void read(const DeviceRows& x, int64_t offset, int count) {
    for (int i = 0; i < kVectorElements; ++i)
      elements.at[i] = i < count ? load_one(x, offset + i) : 0.0F;
  }
  __device__ float at(int i) const { return elements.at[i]; }
};

// Used instead of a format for keys and values in 8 bits, which have scales: the numbers as they
// were read.
struct Codes {};

template <>
struct KeyColumns<Codes> {
  uint32_t words[2];
  __device__ void clear() { words[0] = words[1] = 0; }
  __device__ void read(const DeviceRows& x, int64_t offset, int count) {
    const auto* from = static_cast<const uint8_t*>(x.data) + offset;
    if (count >= kVectorElements && reinterpret_cast<uintptr_t>(from) % sizeof words == 0) {
      const auto* both = reinterpret_cast<const uint32_t*>(from);
      words[0] = both[0];
      words[1] = both[1];
      return;
    }
    for (int i = 0; i < kVectorElements && i < count; ++i)
      words[i / 4] |= uint32_t{from[i]} << (8 * (i % 4));
  }
  __device__ float at(int i) const { return code_at(words, i); }
};

template <typename Format>
inline constexpr bool kHasScales = false;
template <>
inline constexpr bool kHasScales<Codes> = true;

}  // namespace snug::backends::cuda
