// Products of small packed blocks, c (m, n) [+]= a (m, k) b (k, n) with fp32 sums, for kernel files
// only: the inner loop of attention.
//
// Blocks consist of units of four bytes: one fp32, or two bf16 that are adjacent along k. a is
// row-major; b has one unit of every column, then the next unit of every column along k: float
// b[k][n], or bf16 b[k / 2][n][2], the layout that vdpbf16ps and AMX multiply. m, n and k are
// multiples of kBlockStep; packing pads with zeros.
#pragma once

#include "backends/cpu/kernels/vector.h"

namespace snug::backends::cpu::SNUG_ISA {

constexpr int64_t kBlockStep = 32;

// The type in which elements stored as `Stored` are multiplied: bf16 where there is an instruction
// for it, else fp32.
template <typename Stored>
struct ComputeType {
  using Type = float;
};
#if defined(__AVX512BF16__)
template <>
struct ComputeType<uint16_t> {
  using Type = uint16_t;
};
#endif

// The number of elements in a unit.
template <typename Element>
constexpr int64_t kUnit = int64_t{4} / int64_t{sizeof(Element)};

template <typename Element>
struct BlockProduct {
  const Element* a;
  int64_t a_stride;  // in elements
  const Element* b;
  int64_t b_stride;  // in units
  float* c;
  int64_t c_stride;
  int64_t m, n, k;
  bool accumulate;
};

// Rows of a tile of c, whose sums take two registers per row: as many as leave registers for the
// factors.
constexpr int64_t kTileRows = kRegisterLanes == 16 ? 8 : 6;

// sum += a * b, with the same unit of a for all lanes.
SNUG_INLINE Register multiply_add(Register sum, const float* a, Register b) { return sum + *a * b; }
#if defined(__AVX512BF16__)
SNUG_INLINE Register multiply_add(Register sum, const uint16_t* a, Register b) {
  int32_t pair;
  __builtin_memcpy(&pair, a, sizeof pair);
  return add_pair_products(sum, _mm512_set1_epi32(pair), reinterpret_cast<__m512i>(b));
}
#endif

// Computes kRows rows and two registers of columns of c, over all of k. kTransposed: a, of fp32, is
// (k, m) and `a_stride` the distance of its rows, so nobody has to transpose it first.
template <int64_t kRows, bool kTransposed, typename Element>
SNUG_INLINE void multiply_tile(const BlockProduct<Element>& p, int64_t i, int64_t j) {
  static_assert(!kTransposed || kUnit<Element> == 1);
  Register left[kRows] = {};
  Register right[kRows] = {};
  float* c = p.c + i * p.c_stride + j;
  if (p.accumulate)
    for (int64_t row = 0; row < kRows; ++row) {
      left[row] = load_register(c + row * p.c_stride);
      right[row] = load_register(c + row * p.c_stride + kRegisterLanes);
    }
  const Element* a = p.a + (kTransposed ? i : i * p.a_stride);
  const Element* b = p.b + j * kUnit<Element>;
  for (int64_t k = 0; k < p.k; k += kUnit<Element>) {
    const Register b_left = load_register(b);
    const Register b_right = load_register(b + kRegisterLanes * kUnit<Element>);
#pragma GCC unroll 8
    for (int64_t row = 0; row < kRows; ++row) {
      const Element* const factor = a + (kTransposed ? k * p.a_stride + row : row * p.a_stride + k);
      left[row] = multiply_add(left[row], factor, b_left);
      right[row] = multiply_add(right[row], factor, b_right);
    }
    b += p.b_stride * kUnit<Element>;
  }
  for (int64_t row = 0; row < kRows; ++row) {
    __builtin_memcpy(c + row * p.c_stride, &left[row], sizeof(Register));
    __builtin_memcpy(c + row * p.c_stride + kRegisterLanes, &right[row], sizeof(Register));
  }
}

template <bool kTransposed = false, typename Element>
static void multiply_blocks(const BlockProduct<Element>& p) {
  for (int64_t j = 0; j < p.n; j += 2 * kRegisterLanes) {
    int64_t i = 0;
    if constexpr (kTileRows == 6) {
      // Cuts the rows into tiles of six and four: 32 rows are four of six and two of four; 64 are
      // ten and one.
      const int64_t fours = (6 - p.m % 6) % 6 / 2;
      for (; i < p.m - 4 * fours; i += 6) multiply_tile<6, kTransposed>(p, i, j);
      for (; i < p.m; i += 4) multiply_tile<4, kTransposed>(p, i, j);
    } else {
      for (; i < p.m; i += kTileRows) multiply_tile<kTileRows, kTransposed>(p, i, j);
    }
  }
}

#if defined(__AMX_BF16__)

// Configures the processor's tiles during the object's lifetime: eight tiles of 16 rows of 64
// bytes. The previous configuration, of a library on the same thread, is restored.
class TilesInUse {
 public:
  TilesInUse() {
    _tile_storeconfig(&before_);
    publish(&before_);
    Configuration blocks = {};
    blocks.palette = 1;
    for (int64_t tile = 0; tile < 8; ++tile) {
      blocks.row_bytes[tile] = 64;
      blocks.rows[tile] = 16;
    }
    publish(&blocks);
    _tile_loadconfig(&blocks);
  }
  ~TilesInUse() {
    publish(&before_);
    if (before_.palette == 0)
      _tile_release();
    else
      _tile_loadconfig(&before_);
  }
  TilesInUse(const TilesInUse&) = delete;
  TilesInUse& operator=(const TilesInUse&) = delete;

 private:
  struct alignas(64) Configuration {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  };
  // gcc's tile instructions do not declare that they access all of it.
  static void publish(Configuration* configuration) {
    __asm__ volatile("" : : "r"(configuration) : "memory");
  }
  Configuration before_;
};

// A square of 32 x 32 sums in tiles 0 to 3. Strides count elements; those of b count units.
SNUG_INLINE void zero_square() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
SNUG_INLINE void load_square(const float* from, int64_t stride) {
  _tile_loadd(0, from, stride * 4);
  _tile_loadd(1, from + 16, stride * 4);
  _tile_loadd(2, from + 16 * stride, stride * 4);
  _tile_loadd(3, from + 16 * stride + 16, stride * 4);
}
SNUG_INLINE void store_square(float* to, int64_t stride) {
  _tile_stored(0, to, stride * 4);
  _tile_stored(1, to + 16, stride * 4);
  _tile_stored(2, to + 16 * stride, stride * 4);
  _tile_stored(3, to + 16 * stride + 16, stride * 4);
}
// Adds the product of 32 rows of a and 32 columns of b, over 32 elements of k, which go through
// tiles 4 to 7.
SNUG_INLINE void add_to_square(const uint16_t* a, int64_t a_stride, const uint16_t* b,
                               int64_t b_stride) {
  _tile_loadd(4, a, a_stride * 2);
  _tile_loadd(6, b, b_stride * 4);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, b + 32, b_stride * 4);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, a + 16 * a_stride, a_stride * 2);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

// Computes c square by square.
template <>
inline void multiply_blocks<false>(const BlockProduct<uint16_t>& p) {
  // gcc's tile loads do not declare that they read memory.
  __asm__ volatile("" ::: "memory");
  for (int64_t j = 0; j < p.n; j += 32)
    for (int64_t i = 0; i < p.m; i += 32) {
      float* c = p.c + i * p.c_stride + j;
      if (p.accumulate)
        load_square(c, p.c_stride);
      else
        zero_square();
      const uint16_t* a = p.a + i * p.a_stride;
      const uint16_t* b = p.b + j * 2;
      for (int64_t k = 0; k < p.k; k += 32, b += 16 * p.b_stride * 2)
        add_to_square(a + k, p.a_stride, b, p.b_stride);
      store_square(c, p.c_stride);
    }
}

#else

struct TilesInUse {
  TilesInUse() {}
};

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
