// Stands in for CUDA's header of the same name: the device side of the language as kernels of the
// backend use it, so that the host compiler builds them (see block_fibers.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)

inline void __syncthreads() { snug::cuda_emulator::wait_for_block(); }
// Blocks run one after the other, each on one thread of the host.
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* address, unsigned most) {
  const unsigned before = *address;
  *address = before >= most ? 0 : before + 1;
  return before;
}

// The value of one lane in all. Every lane of the warp takes part.
template <typename T>
T shuffle_standin(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  if (mask != 0xffffffffU) snug::cuda_emulator::fail("a warp exchange of some lanes only");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const uint64_t* all = snug::cuda_emulator::exchange(snug::cuda_emulator::Exchange::shuffle, bits);
  std::memcpy(&value, &all[from], sizeof value);
  return value;
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return shuffle_standin(mask, value, snug::cuda_emulator::lane() ^ lanes);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return shuffle_standin(mask, value, lane);
}

inline unsigned __ballot_sync(unsigned mask, bool predicate) {
  if (mask != 0xffffffffU) snug::cuda_emulator::fail("a vote of some lanes only");
  const uint64_t* all =
      snug::cuda_emulator::exchange(snug::cuda_emulator::Exchange::vote, predicate ? 1 : 0);
  unsigned votes = 0;
  for (unsigned i = 0; i < snug::cuda_emulator::kWarpLanes; ++i)
    votes |= static_cast<unsigned>(all[i]) << i;
  return votes;
}

inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  if (mask != 0xffffffffU) snug::cuda_emulator::fail("a reduction of some lanes only");
  const uint64_t* all =
      snug::cuda_emulator::exchange(snug::cuda_emulator::Exchange::reduction, value);
  unsigned bits = 0;
  for (int i = 0; i < snug::cuda_emulator::kWarpLanes; ++i) bits |= static_cast<unsigned>(all[i]);
  return bits;
}

inline void __syncwarp() {
  snug::cuda_emulator::exchange(snug::cuda_emulator::Exchange::barrier, 0);
}

// The products of bytes, added up.
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (unsigned byte = 0; byte < 4; ++byte)
    sum += (a >> (8 * byte) & 0xffU) * (b >> (8 * byte) & 0xffU);
  return sum;
}

// Four bytes of b and a, each the one that a hexadecimal digit of `places` says.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned places) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<unsigned>(bytes >> (8 * (places >> (4 * i) & 7U)) & 0xffU) << (8 * i);
  return result;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
// One rounding each, never contracted.
inline float __fmul_rn(float a, float b) {
  const volatile float product = a * b;
  return product;
}
inline float __fadd_rn(float a, float b) {
  const volatile float sum = a + b;
  return sum;
}
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float rsqrtf(float a) { return 1.0F / std::sqrt(a); }
// The C library declares a function of this name.
#define __log2f std::log2
// What is no number gives 0, what is too large the largest.
inline int __float2int_rd(float a) {
  if (std::isnan(a)) return 0;
  return static_cast<int>(std::clamp(std::floor(double{a}), -2147483648.0, 2147483647.0));
}
using std::max;
using std::min;
inline void __trap() { snug::cuda_emulator::fail("a kernel's check failed"); }
