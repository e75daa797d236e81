// Stands in for src/backends/cuda/kernels/warp_matrix.cuh, which says who holds what: the last lane
// to come multiplies for all, and looks at the rows that all have given.
#pragma once

#include <cmath>
#include <cstring>

#include "backends/cuda/device/device.cuh"
#include "backends/cuda/kernels/narrow_formats.cuh"

namespace snug::backends::cuda {

// What one lane brings to a product; it stays on the lane's stack while the others come.
struct LaneMatrices {
  float* c;
  const uint32_t* a;
  uint32_t b[2];
};

template <typename Format>
float half_of(uint32_t word, int half) {
  return Format::widen(word >> (16 * half) & 0xffffU);
}

template <typename Format>
void multiply_add_of_warp(const uint64_t* lanes) {
  const auto matrices = [&](int lane) -> const LaneMatrices& {
    return *reinterpret_cast<const LaneMatrices*>(lanes[lane]);
  };
  float a[16][16];
  float b[16][8];
  for (int lane = 0; lane < cuda_emulator::kWarpLanes; ++lane) {
    const int g = lane / 4;
    const int pair = 2 * (lane % 4);
    for (int half = 0; half < 2; ++half)
      for (int i = 0; i < 4; ++i) {
        a[g + i % 2 * 8][pair + i / 2 * 8 + half] = half_of<Format>(matrices(lane).a[i], half);
        if (i < 2) b[pair + i * 8 + half][g] = half_of<Format>(matrices(lane).b[i], half);
      }
  }
  float c[16][8] = {};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < cuda_emulator::kWarpLanes; ++lane)
    for (int i = 0; i < 4; ++i)
      matrices(lane).c[i] += c[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
}

template <typename Format>
void multiply_add(Format, float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  const LaneMatrices mine{c, a, {b0, b1}};
  cuda_emulator::exchange(cuda_emulator::Exchange::product, reinterpret_cast<uintptr_t>(&mine),
                          multiply_add_of_warp<Format>);
}

// Of the lanes' rows, eight a matrix: where the hardware would fault, or read a matrix in several
// goes.
inline void check_matrix_rows(const uint64_t* rows) {
  constexpr uint64_t kRowBytes = 16;
  constexpr uint64_t kRowsOfBanks = 8;  // that all banks hold at once
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned banks = 0;
    for (int i = 0; i < 8; ++i) {
      const uint64_t row = rows[8 * matrix + i];
      if (row % kRowBytes != 0)
        cuda_emulator::fail("a matrix row at an address that is no multiple of 16");
      if (!cuda_emulator::is_shared(reinterpret_cast<const void*>(row), kRowBytes))
        cuda_emulator::fail("a matrix row outside the block's shared memory");
      banks |= 1U << row / kRowBytes % kRowsOfBanks;
    }
    if (banks != 0xffU) cuda_emulator::fail("two rows of a matrix in the same banks");
  }
}

// Row `row` of matrix m, when all lanes have given theirs.
class MatrixRows {
 public:
  explicit MatrixRows(const uint16_t* mine)
      : rows_(cuda_emulator::exchange(cuda_emulator::Exchange::matrices,
                                      reinterpret_cast<uintptr_t>(mine), check_matrix_rows)) {}
  const uint16_t* at(int m, int row) const {
    return reinterpret_cast<const uint16_t*>(rows_[8 * m + row]);
  }

 private:
  const uint64_t* rows_;
};

inline void load_matrices(uint32_t (&pairs)[4], const uint16_t* row) {
  const MatrixRows rows(row);
  const int g = cuda_emulator::lane() / 4;
  const int t = cuda_emulator::lane() % 4;
  for (int m = 0; m < 4; ++m)
    pairs[m] = uint32_t{rows.at(m, g)[2 * t]} | uint32_t{rows.at(m, g)[2 * t + 1]} << 16;
}

inline void load_transposed(uint32_t (&pairs)[4], const uint16_t* row) {
  const MatrixRows rows(row);
  const int g = cuda_emulator::lane() / 4;
  const int t = cuda_emulator::lane() % 4;
  for (int m = 0; m < 4; ++m)
    pairs[m] = uint32_t{rows.at(m, 2 * t)[g]} | uint32_t{rows.at(m, 2 * t + 1)[g]} << 16;
}

inline void begin_copy(uint16_t* shared, const void* global, bool zeros) {
  for (const void* address : {static_cast<const void*>(shared), global})
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
      cuda_emulator::fail("a copy between addresses that are no multiples of 16");
  cuda_emulator::begin_copy(shared, global, 16, zeros);
}
template <typename T>
void begin_value_copy(T* shared, const T* global, bool zeros) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  for (const T* address : {static_cast<const T*>(shared), global})
    if (reinterpret_cast<uintptr_t>(address) % sizeof(T) != 0)
      cuda_emulator::fail("a copy between addresses that are no multiples of its size");
  cuda_emulator::begin_copy(shared, global, sizeof(T), zeros);
}
inline void end_batch() { cuda_emulator::end_batch(); }
template <int kLeft>
void wait_for_batches() {
  cuda_emulator::wait_for_batches(kLeft);
}

inline float power_of_two(float exponent) { return std::exp2(exponent); }
inline float tanh_of_power(float x) { return 1.0F - 2.0F / (1.0F + power_of_two(x)); }

}  // namespace snug::backends::cuda
