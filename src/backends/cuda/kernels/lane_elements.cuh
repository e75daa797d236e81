// How warps process the elements of a long row: a warp handles 256 adjacent elements and a lane
// eight of them, as vectors of 16 bytes where all eight exist and the address is aligned. A lane
// reads everything it needs before anything is written. The random bits that round elements to bf16
// come from generator calls for several lanes' elements (random_bits.h), so the lanes of a warp
// exchange them in shared memory.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/formulas/random_bits.h"

namespace snug::backends::cuda {

inline constexpr int kOfLane = kVectorElements;
inline constexpr int64_t kOfWarp = int64_t{kOfLane} * kLanes;
static_assert(kRoundingParts * kLanes == kOfWarp);

// A lane's elements: `count` of them exist, starting at `first`.
struct LanePlace {
  int64_t first;
  int count;

  __device__ bool has(int i) const { return i < count; }
  __device__ bool is_full() const { return count == kOfLane; }
};

// The lane's elements in block `block` of 256 elements, which the warp handles.
__device__ inline LanePlace place_of_lane(int64_t block, int64_t elements) {
  const int64_t first = block * kOfWarp + threadIdx.x % kLanes * kOfLane;
  const int64_t left = elements - first;
  return {first, static_cast<int>(left < 0 ? 0 : left < kOfLane ? left : kOfLane)};
}

using LaneElements = Elements<kOfLane>;

// Missing elements are zero.
__device__ inline LaneElements load_lane(const DeviceRows& x, const LanePlace& place,
                                         bool vectors) {
  if (vectors) return load<kOfLane>(x, place.first);
  LaneElements elements;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i)
    elements.at[i] = place.has(i) ? load_one(x, place.first + i) : 0.0F;
  return elements;
}

// For bf16, the lower halves of the floats must be zero, so that they are stored without rounding.
__device__ inline void store_lane(const DeviceRows& x, const LanePlace& place, bool vectors,
                                  const LaneElements& elements) {
  if (x.format != ElementFormat::bf16) {
    if (vectors) return store<kOfLane>(x, place.first, elements);
#pragma unroll
    for (int i = 0; i < kOfLane; ++i)
      if (place.has(i)) store_one(x, place.first + i, elements.at[i]);
    return;
  }
  auto* to = static_cast<uint16_t*>(x.data) + place.first;
  if (vectors) {
    Vector16 pairs;
#pragma unroll
    for (int i = 0; i < kOfLane / 2; ++i)
      pairs.word[i] = __float_as_uint(elements.at[2 * i]) >> 16 |
                      (__float_as_uint(elements.at[2 * i + 1]) & 0xffff0000U);
    return store_vector(to, pairs);
  }
#pragma unroll
  for (int i = 0; i < kOfLane; ++i)
    if (place.has(i)) to[i] = static_cast<uint16_t>(__float_as_uint(elements.at[i]) >> 16);
}

// The random bits for a warp's elements, in order, with a gap between the halves, so that lanes
// that write to both use different banks.
struct alignas(16) RoundingBits {
  uint16_t at[kOfWarp + kRandomLanes];
};
__device__ inline int64_t place_of_bits(int64_t element) {
  return element + element / kRoundingBlock * kRandomLanes;
}

// The random bits for a lane's elements.
struct LaneBits {
  Vector16 pairs;
  __device__ uint32_t of(int i) const {
    return i % 2 == 0 ? pairs.word[i / 2] & 0xffffU : pairs.word[i / 2] >> 16;
  }
};

// The whole warp must call it, after all its lanes have used the earlier bits.
__device__ inline LaneBits trade_bits(base::PhiloxKey key, uint32_t plane, int64_t block,
                                      RoundingBits& traded) {
  const int64_t lane = threadIdx.x % kLanes;
  const base::PhiloxCounter words = rounding_words(key, plane, block * kLanes + lane);
  const int64_t first = lane / kRandomLanes * kRoundingBlock + lane % kRandomLanes;
  __syncwarp();
#pragma unroll
  for (int part = 0; part < kRoundingParts; ++part)
    traded.at[place_of_bits(first + part * kRandomLanes)] =
        static_cast<uint16_t>(rounding_part(words, part));
  __syncwarp();
  return {load_vector(traded.at + place_of_bits(lane * kOfLane))};
}

// The bf16 to which these random bits round the value, as a float.
__device__ inline float rounded(float value, uint32_t bits) {
  return __uint_as_float(uint32_t{round_stochastically(value, bits).bits} << 16);
}

}  // namespace snug::backends::cuda
