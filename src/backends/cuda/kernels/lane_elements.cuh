// Elements of a long row as warps take them: a warp 256 neighbours, a lane eight of those, in
// vectors of 16 bytes where all of them are there and addresses allow it. What a lane needs is read
// before anything is written. The bits that round elements to bf16 come from calls of the generator
// that belong to other lanes' elements (random_bits.h): the warp trades them in shared memory.
#pragma once

#include "backends/cuda/kernels/element.cuh"
#include "backends/formulas/random_bits.h"

namespace snug::backends::cuda {

inline constexpr int kOfLane = kVectorElements;
inline constexpr int64_t kOfWarp = int64_t{kOfLane} * kLanes;
static_assert(kRoundingParts * kLanes == kOfWarp);

// A lane's elements: `count` of them from `first` on are there.
struct LanePlace {
  int64_t first;
  int count;

  __device__ bool has(int i) const { return i < count; }
  __device__ bool is_full() const { return count == kOfLane; }
};

// The lane's place among `elements`, in the warp's block.
__device__ inline LanePlace place_of_lane(int64_t block, int64_t elements) {
  const int64_t first = block * kOfWarp + threadIdx.x % kLanes * kOfLane;
  const int64_t left = elements - first;
  return {first, static_cast<int>(left < 0 ? 0 : left < kOfLane ? left : kOfLane)};
}

using LaneElements = Elements<kOfLane>;

// Zeros in the place of what is not there.
__device__ inline LaneElements load_lane(const DeviceRows& x, const LanePlace& place,
                                         bool vectors) {
  if (vectors) return load<kOfLane>(x, place.first);
  LaneElements elements;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i)
    elements.at[i] = place.has(i) ? load_one(x, place.first + i) : 0.0F;
  return elements;
}

// Floats whose lower halves are zero are stored in bf16 as they are.
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

// The bits that round a warp's elements, in their order, with room between the halves, so that
// lanes that write to both meet different banks.
struct alignas(16) RoundingBits {
  uint16_t at[kOfWarp + kRandomLanes];
};
__device__ inline int64_t place_of_bits(int64_t element) {
  return element + element / kRoundingBlock * kRandomLanes;
}

// The bits of a lane's elements.
struct LaneBits {
  Vector16 pairs;
  __device__ uint32_t of(int i) const {
    return i % 2 == 0 ? pairs.word[i / 2] & 0xffffU : pairs.word[i / 2] >> 16;
  }
};

// The whole warp calls it when nobody needs its earlier bits any more.
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

// The bf16 that these bits round it to, as a float.
__device__ inline float rounded(float value, uint32_t bits) {
  return __uint_as_float(uint32_t{round_stochastically(value, bits).bits} << 16);
}

}  // namespace snug::backends::cuda
