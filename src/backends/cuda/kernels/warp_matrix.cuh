// Products of 16 x 16 by 16 x 8 matrices by one warp on the tensor cores, and loading their
// operands. With g = lane / 4 and t = lane % 4, a lane holds:
//   a (16, 16): [0] row g, [1] row g + 8, columns 2t and 2t + 1; [2], [3] the same rows, columns
//               2t + 8 and 2t + 9
//   b (16, 8):  [0] rows 2t and 2t + 1 of column g; [1] rows 2t + 8 and 2t + 9
//   c (16, 8):  [0], [1] row g, columns 2t and 2t + 1; [2], [3] row g + 8
// a and b have the same 16-bit format, with pairs of elements in words; c is f32. (PTX ISA,
// mma.m16n8k16; ldmatrix; cp.async.) The emulator replaces this file by one with the same path.
#pragma once

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/narrow_formats.cuh"

namespace snug::backends::cuda {

// c += a b.
__device__ inline void multiply_add(Bf16, float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void multiply_add(F16, float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads four 8 x 8 matrices from shared memory: lane i gives the address of row i % 8 of matrix i /
// 8, a multiple of 16 bytes. pairs[m] is columns 2t and 2t + 1 of row g of matrix m. A matrix is
// read without bank conflicts if the addresses of its rows differ modulo 128.
__device__ inline void load_matrices(uint32_t (&pairs)[4], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(address)
               : "memory");
}

// Loads the matrices transposed: pairs[m] is rows 2t and 2t + 1 of column g of matrix m.
__device__ inline void load_transposed(uint32_t (&pairs)[4], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
               : "r"(address)
               : "memory");
}

// Begins to copy 16 bytes to shared memory, or zeros, in which case `global` is not read. Both
// addresses must be multiples of 16.
__device__ inline void begin_copy(uint16_t* shared, const void* global, bool zeros) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = zeros ? 0 : 16;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(bytes)
               : "memory");
}
// Begins to copy one value of 4 or 8 bytes, at addresses that are multiples of its size.
template <typename T>
__device__ void begin_value_copy(T* shared, const T* global, bool zeros) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = zeros ? 0 : int{sizeof(T)};
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(global),
               "n"(sizeof(T)), "r"(bytes)
               : "memory");
}
// Ends a batch of this thread's copies.
__device__ inline void end_batch() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kLeft of this thread's batches are in progress; a barrier afterwards makes
// them visible to the block.
template <int kLeft>
__device__ inline void wait_for_batches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// 2^exponent with a relative error of at most 2^-22; 0 where the result would be below the smallest
// normal number.
__device__ inline float power_of_two(float exponent) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
}

// The hyperbolic tangent of x / log2(e) / 2 with an error of at most 2^-21: 1 - 2 / (1 + 2^x).
__device__ inline float tanh_of_power(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0F + power_of_two(x)));
  return 1.0F - 2.0F * inverse;
}

}  // namespace snug::backends::cuda
