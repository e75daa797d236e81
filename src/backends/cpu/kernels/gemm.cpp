#include "backends/cpu/kernels/gemm.h"

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

using Tile = float[kGemmRows][kGemmColumns];

// Eight floats: sixteen at once do not stay in registers where there is no AVX-512.
using Eight = float __attribute__((vector_size(32)));

SNUG_INLINE Eight load_eight(const float* x) {
  Eight v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

// sums = a b over k, in order of k.
#if defined(__AVX512F__)
SNUG_INLINE void multiply_tile(const float* a, const float* b, int64_t k, Tile& sums) {
  Float16Lanes all[kGemmRows] = {};
  for (int64_t p = 0; p < k; ++p) {
    const Float16Lanes of_b = load(b);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kGemmRows; ++i) all[i] += a[i] * of_b;
    a += kGemmRows;
    b += kGemmColumns;
  }
  for (int64_t i = 0; i < kGemmRows; ++i) store(sums[i], all[i]);
}
#else
SNUG_INLINE void multiply_tile(const float* a, const float* b, int64_t k, Tile& sums) {
  Eight low[kGemmRows] = {};
  Eight high[kGemmRows] = {};
  for (int64_t p = 0; p < k; ++p) {
    const Eight b_low = load_eight(b);
    const Eight b_high = load_eight(b + 8);
#pragma GCC unroll 6
    for (int64_t i = 0; i < kGemmRows; ++i) {
      low[i] += a[i] * b_low;
      high[i] += a[i] * b_high;
    }
    a += kGemmRows;
    b += kGemmColumns;
  }
  for (int64_t i = 0; i < kGemmRows; ++i) {
    __builtin_memcpy(&sums[i][0], &low[i], sizeof(Eight));
    __builtin_memcpy(&sums[i][8], &high[i], sizeof(Eight));
  }
}
#endif

void store_tile(const Tile& sums, int64_t rows, int64_t columns, const GemmDestination& to) {
  for (int64_t i = 0; i < rows; ++i) {
    float* c = to.c + i * to.c_stride;
    if (to.addend == nullptr) {
      for (int64_t j = 0; j < columns; ++j) c[j] = to.alpha * sums[i][j];
      continue;
    }
    const float* addend = to.addend + i * to.addend_stride;
    for (int64_t j = 0; j < columns; ++j) c[j] = to.alpha * sums[i][j] + addend[j];
  }
}

SNUG_INLINE float element_at(const float* x) { return *x; }
SNUG_INLINE float element_at(const Fp16* x) { return load_partial(x, 1, 0.0F)[0]; }

// A line of up to `width` elements side by side; the rest is zeros.
SNUG_INLINE void copy_line(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
SNUG_INLINE void copy_line(const Fp16* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
  if (i < count) store_partial(to + i, load_partial(from + i, count - i, 0.0F), count - i);
}

// The same of elements `stride` apart, of which the next line's lie next to these: sixteen lines
// are read along their elements and turned.
template <typename X>
SNUG_INLINE void turn_lines(const X* from, int64_t stride, int64_t count, int64_t lines,
                            int64_t width, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    float line[kLanes];
    copy_line(from + i * stride, lines, line);
    for (int64_t p = 0; p < lines; ++p) to[p * width + i] = line[p];
  }
}

// Panels of `width` lanes: lane i of step p is element (first + i, p) of a matrix seen with these
// strides.
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
      if (source.column_stride == 1) {
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

void block(const float* packed_a, const float* packed_b, const int64_t (&rows_columns_k)[3],
           const GemmDestination& destination) {
  const auto [rows, columns, k] = rows_columns_k;
  for (int64_t j = 0; j < columns; j += kGemmColumns)
    for (int64_t i = 0; i < rows; i += kGemmRows) {
      Tile sums;
      multiply_tile(packed_a + i * k, packed_b + j * k, k, sums);
      GemmDestination to = destination;
      to.c += i * to.c_stride + j;
      if (to.addend != nullptr) to.addend += i * to.addend_stride + j;
      store_tile(sums, rows - i < kGemmRows ? rows - i : kGemmRows,
                 columns - j < kGemmColumns ? columns - j : kGemmColumns, to);
    }
}

}  // namespace

extern const GemmKernels kGemmKernels;
const GemmKernels kGemmKernels = {.pack_a = {pack_a<float>, nullptr, pack_a<Fp16>},
                                  .pack_b = {pack_b<float>, nullptr, pack_b<Fp16>},
                                  .block = block};

}  // namespace snug::backends::cpu::SNUG_ISA
