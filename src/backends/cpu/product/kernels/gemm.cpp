#include "backends/cpu/product/kernels/gemm.h"

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// The addresses of a panel's rows. Missing rows repeat the last one, and their results are dropped.
using RowStarts = const float* [kGemmRows];

SNUG_INLINE void prefetch_rows(const GemmDestination& to, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) __builtin_prefetch(to.c + i * to.c_stride, 1);
}

constexpr int64_t kPanelRegisters = kGemmColumns / kRegisterLanes;
using TileSums = Register[kGemmRows][kPanelRegisters];

// Sums over k, in order, for a panel of a and a panel of b.
SNUG_INLINE void multiply_tile(const RowStarts& a, int64_t step, const float* b, int64_t k,
                               TileSums& sums) {
  TileSums all = {};
  for (int64_t p = 0; p < k; ++p) {
    Register of_b[kPanelRegisters];
#pragma GCC unroll 2
    for (int64_t j = 0; j < kPanelRegisters; ++j) of_b[j] = load_register(b + j * kRegisterLanes);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kGemmRows; ++i)
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPanelRegisters; ++j) all[i][j] += a[i][p * step] * of_b[j];
    b += kGemmColumns;
  }
#pragma GCC unroll 6
  for (int64_t i = 0; i < kGemmRows; ++i)
#pragma GCC unroll 2
    for (int64_t j = 0; j < kPanelRegisters; ++j) sums[i][j] = all[i][j];
}

// c = alpha * sums [+ addend] for a whole tile.
SNUG_INLINE void store_tile(const TileSums& sums, const GemmDestination& to) {
#pragma GCC unroll 6
  for (int64_t i = 0; i < kGemmRows; ++i)
#pragma GCC unroll 2
    for (int64_t j = 0; j < kPanelRegisters; ++j) {
      Register value = to.alpha * sums[i][j];
      if (to.addend != nullptr)
        value = value + load_register(to.addend + i * to.addend_stride + j * kRegisterLanes);
      __builtin_memcpy(to.c + i * to.c_stride + j * kRegisterLanes, &value, sizeof value);
    }
}

// Stores the valid part of a tile at an edge.
void store_part(const TileSums& sums, int64_t rows, int64_t columns, const GemmDestination& to) {
  for (int64_t i = 0; i < rows; ++i) {
    float row[kGemmColumns];
    __builtin_memcpy(row, sums[i], sizeof row);
    float* const c = to.c + i * to.c_stride;
    if (to.addend == nullptr) {
      for (int64_t j = 0; j < columns; ++j) c[j] = to.alpha * row[j];
      continue;
    }
    const float* const addend = to.addend + i * to.addend_stride;
    for (int64_t j = 0; j < columns; ++j) c[j] = to.alpha * row[j] + addend[j];
  }
}

SNUG_INLINE float element_at(const float* x) { return *x; }
SNUG_INLINE float element_at(const Fp16* x) { return load_partial(x, 1, 0.0F)[0]; }

// Copies a line of `count` contiguous elements, and pads it with zeros up to `width`.
SNUG_INLINE void copy_line(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
SNUG_INLINE void copy_line(const Fp16* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  if (i < count) store_partial(to + i, load_partial(from + i, count - i, 0.0F), count - i);
}

// Packs lines whose elements are `stride` apart and whose neighbouring lines are adjacent in
// memory: sixteen lines are read at once and transposed.
template <typename X>
SNUG_INLINE void turn_lines(const X* from, int64_t stride, int64_t count, int64_t lines,
                            int64_t width, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    float line[kLanes];
    copy_line(from + i * stride, lines, line);
    for (int64_t p = 0; p < lines; ++p) to[p * width + i] = line[p];
  }
}

using Eight = float __attribute__((vector_size(32)));

// to[p * kGemmColumns + i] = from[i * stride + p], for 8 x 8 elements.
SNUG_INLINE void turn_square(const float* from, int64_t stride, float* to) {
  Eight line[8];
  Eight pairs[8];
  Eight fours[8];
#pragma GCC unroll 8
  for (int64_t i = 0; i < 8; ++i) __builtin_memcpy(&line[i], from + i * stride, sizeof(Eight));
#pragma GCC unroll 4
  for (int64_t i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(line[i], line[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(line[i], line[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int64_t i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int64_t j = 0; j < 2; ++j) {
      const Eight x = pairs[i + j];
      const Eight y = pairs[i + j + 2];
      fours[i + 2 * j] = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + 2 * j + 1] = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (int64_t p = 0; p < 4; ++p) {
    const Eight low = __builtin_shufflevector(fours[p], fours[p + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    const Eight high = __builtin_shufflevector(fours[p], fours[p + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    __builtin_memcpy(to + p * kGemmColumns, &low, sizeof low);
    __builtin_memcpy(to + (p + 4) * kGemmColumns, &high, sizeof high);
  }
}

// turn_lines() of kLanes lines for whole panels of b.
SNUG_INLINE void turn_panel(const float* from, int64_t stride, float* to) {
  for (int64_t i = 0; i < kGemmColumns; i += 8)
    for (int64_t p = 0; p < kLanes; p += 8)
      turn_square(from + i * stride + p, stride, to + p * kGemmColumns + i);
}
SNUG_INLINE void turn_panel(const Fp16* from, int64_t stride, float* to) {
  float lines[kGemmColumns * kLanes];
  for (int64_t i = 0; i < kGemmColumns; ++i) store(lines + i * kLanes, load(from + i * stride));
  turn_panel(lines, kLanes, to);
}

// Packs panels of `width` lanes: lane i of step p is element (first + i, p) of the matrix with
// these strides.
template <typename X>
SNUG_INLINE void pack_panels(const GemmSource& source, int64_t lanes, int64_t k, int64_t width,
                             float* packed) {
  const X* const data = static_cast<const X*>(source.data);
  for (int64_t first = 0; first < lanes; first += width) {
    const int64_t present = lanes - first < width ? lanes - first : width;
    const X* from = data + first * source.row_stride;
    for (int64_t p = 0; p < k; p += kLanes) {
      const int64_t steps = k - p < kLanes ? k - p : kLanes;
      const X* line = from + p * source.column_stride;
      if (source.column_stride == 1 && width == kGemmColumns && present == width &&
          steps == kLanes) {
        turn_panel(line, source.row_stride, packed);
      } else if (source.column_stride == 1) {
        turn_lines(line, source.row_stride, present, steps, width, packed);
      } else if (source.row_stride == 1) {
        for (int64_t step = 0; step < steps; ++step)
          copy_line(line + step * source.column_stride, present, packed + step * width);
      } else {
        for (int64_t step = 0; step < steps; ++step)
          for (int64_t i = 0; i < present; ++i)
            packed[step * width + i] =
                element_at(line + i * source.row_stride + step * source.column_stride);
      }
      for (int64_t step = 0; step < steps; ++step)
        for (int64_t i = present; i < width; ++i) packed[step * width + i] = 0.0F;
      packed += steps * width;
    }
  }
}

template <typename X>
void pack_a(const GemmSource& a, int64_t rows, int64_t k, float* packed) {
  pack_panels<X>(a, rows, k, kGemmRows, packed);
}

template <typename X>
void pack_b(const GemmSource& b, int64_t k, int64_t columns, float* packed) {
  const GemmSource transposed = {b.data, b.column_stride, b.row_stride};
  pack_panels<X>(transposed, columns, k, kGemmColumns, packed);
}

// The step is a compile-time constant for packed rows and for rows in place, so that the compiler
// computes addresses without multiplications.
template <int64_t kStep>
void multiply_block(const GemmRows& a, const float* packed_b, const int64_t (&rows_columns_k)[3],
                    const GemmDestination& destination) {
  const auto [rows, columns, k] = rows_columns_k;
  for (int64_t j = 0; j < columns; j += kGemmColumns)
    for (int64_t i = 0; i < rows; i += kGemmRows) {
      const int64_t present = rows - i < kGemmRows ? rows - i : kGemmRows;
      const float* const panel = a.data + i / kGemmRows * a.panel_stride;
      RowStarts starts;
      for (int64_t row = 0; row < kGemmRows; ++row)
        starts[row] = panel + (row < present ? row : present - 1) * a.row_stride;
      GemmDestination to = destination;
      to.c += i * to.c_stride + j;
      if (to.addend != nullptr) to.addend += i * to.addend_stride + j;
      prefetch_rows(to, present);
      TileSums sums;
      multiply_tile(starts, kStep, packed_b + j * k, k, sums);
      const int64_t width = columns - j < kGemmColumns ? columns - j : kGemmColumns;
      if (present == kGemmRows && width == kGemmColumns)
        store_tile(sums, to);
      else
        store_part(sums, present, width, to);
    }
}

void block(const GemmRows& a, const float* packed_b, const int64_t (&rows_columns_k)[3],
           const GemmDestination& destination) {
  if (a.step_stride == 1)
    multiply_block<1>(a, packed_b, rows_columns_k, destination);
  else
    multiply_block<kGemmRows>(a, packed_b, rows_columns_k, destination);
}

}  // namespace

extern const GemmKernels kGemmKernels;
const GemmKernels kGemmKernels = {.pack_a = {pack_a<float>, nullptr, pack_a<Fp16>},
                                  .pack_b = {pack_b<float>, nullptr, pack_b<Fp16>},
                                  .block = block};

}  // namespace snug::backends::cpu::SNUG_ISA
