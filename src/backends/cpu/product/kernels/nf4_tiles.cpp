// A step dequantises 128 values of each of 32 outputs, while the tiles multiply those of the step
// before:
//
//   64 bytes of codes are 32 words of four codes. A lookup uses the low five bits of a word; the
//   fifth chooses between the tables of the step's two blocks, of which the first has the lower 16
//   words. So four lookups, each after a shift, make four rows of a tile: row k has the code
//   kPlace[k] of each word. x is arranged in that order.
//
// Compiled without contraction (nf4_scales.h).
#include "backends/cpu/product/kernels/nf4_tiles.h"

#include "backends/cpu/kernels/masked_lanes.h"
#include "backends/cpu/product/kernels/block_packing.h"
#include "backends/cpu/product/kernels/nf4_scales.h"

namespace snug::backends::cpu::SNUG_ISA {

extern const Nf4TileKernels kNf4TileKernels;

#if defined(__AMX_BF16__)

namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kWords = 32;
constexpr int64_t kCodes = 4;                     // codes in a word
constexpr int64_t kPlace[kCodes] = {1, 0, 3, 2};  // element of each code, lowest code first
constexpr int64_t kTileRows = 16;                 // rows of x in a tile
constexpr int64_t kValues = kCodes * kNf4TileOutputs * kWords;     // values in a step
constexpr int64_t kScaleSteps = kLanes / (kNf4TileStep / kBlock);  // steps per load of scales

constexpr int64_t steps_of(int64_t in) { return (in + kNf4TileStep - 1) / kNf4TileStep; }
constexpr int64_t row_tiles_of(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }
// Elements of x in a step.
constexpr int64_t step_elements(int64_t row_tiles) { return kNf4TileStep * row_tiles * kTileRows; }

int64_t arranged_bytes(int64_t rows, int64_t in) {
  return steps_of(in) * step_elements(row_tiles_of(rows)) * int64_t{sizeof(uint16_t)};
}

void arrange(const Nf4TileRows& rows, int64_t begin, int64_t end, uint16_t* arranged) {
  const int64_t width = row_tiles_of(rows.rows) * kTileRows;
  for (int64_t step = begin; step < end; ++step)
    for (int64_t code = 0; code < kCodes; ++code)
      for (int64_t word = 0; word < kWords; ++word) {
        const int64_t element = step * kNf4TileStep + word * kCodes + kPlace[code];
        uint16_t* to =
            arranged + ((step * kCodes + code) * kWords + word / 2 * 2) * width + word % 2;
        for (int64_t row = 0; row < width; ++row)
          to[2 * row] = row < rows.rows && element < rows.in ? rows.x[row * rows.stride + element]
                                                             : uint16_t{0};
      }
}

// The outputs of a step: `count` outputs, starting at `first`.
struct Outputs {
  int64_t first, count;
};

// Loads sixteen scales per output, starting with `block`.
SNUG_INLINE void load_scales(const Nf4TileProduct& p, const Outputs& outputs, int64_t block,
                             float* scales) {
  const int64_t blocks = p.in / kBlock;
  const int64_t count = smaller_of(kLanes, blocks - block);
  for (int64_t i = 0; i < outputs.count; ++i)
    store(scales + i * kLanes, block_scales(p.weight, (outputs.first + i) * blocks + block, count));
}

// Computes the values of a step, (kCodes, kNf4TileOutputs, kWords).
SNUG_INLINE void make_values(const Nf4TileProduct& p, const Outputs& outputs, int64_t step,
                             const float* scales, uint16_t* values) {
  const __m512i lowest = _mm512_set1_epi16(0x000f);
  const __m512i second_table = _mm512_maskz_set1_epi16(0xffff0000U, 0x0010);
  constexpr int kEitherOfBoth = 0xea;  // (a & b) | c
  const auto present =
      static_cast<__mmask16>(p.in - step * kNf4TileStep >= kNf4TileStep ? 0xffffU : 0x00ffU);
  const Float16Lanes of_codes = load(p.weight.values);
  const int64_t output_bytes = p.in / 2;
  const uint8_t* codes = p.weight.codes + outputs.first * output_bytes + step * kNf4TileStep / 2;
  for (int64_t i = 0; i < outputs.count; ++i, codes += output_bytes, scales += kLanes) {
    constexpr int kSecondLevel = 2;
    __builtin_prefetch(codes + kNf4TileOutputs * output_bytes, 0, kSecondLevel);
    const __m512i words = _mm512_maskz_loadu_epi32(present, codes);
    const auto tables = reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(of_codes * splat(scales[1])),
                            reinterpret_cast<__m512>(of_codes * splat(scales[0]))));
    uint16_t* to = values + i * kWords;
    const auto make = [&](int64_t code, __m512i shifted) {
      const __m512i index = _mm512_ternarylogic_epi32(shifted, lowest, second_table, kEitherOfBoth);
      _mm512_store_si512(to + code * kNf4TileOutputs * kWords,
                         _mm512_maskz_permutexvar_epi16(~__mmask32{0}, index, tables));
    };
    make(0, words);
    make(1, _mm512_srli_epi16(words, 4));
    make(2, _mm512_srli_epi16(words, 8));
    make(3, _mm512_srli_epi16(words, 12));
  }
}

// Multiplies the values of a step by x and adds to tiles 0 to 3: outputs by rows of x.
template <int64_t kRowTiles>
SNUG_INLINE void multiply_step(const uint16_t* values, const uint16_t* x) {
  // gcc's tile loads do not declare that they read memory.
  __asm__ volatile("" ::: "memory");
  constexpr int64_t kLine = kWords * 2;
  constexpr int64_t kXLine = kRowTiles * kTileRows * 4;
  for (int64_t code = 0; code < kCodes; ++code) {
    _tile_loadd(4, values, kLine);
    _tile_loadd(6, x, kXLine);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, values + kTileRows * kWords, kLine);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kRowTiles > 1) {
      _tile_loadd(7, x + kTileRows * 2, kXLine);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    values += kNf4TileOutputs * kWords;
    x += kWords * kRowTiles * kTileRows;
  }
}

// Writes sums (outputs, rows of x) to rows of y.
template <typename Y>
void write_rows(const Nf4TileProduct& p, const Outputs& outputs, const float* sums) {
  alignas(64) float square[kLanes * kLanes];
  for (int64_t row = 0; row < p.rows; row += kLanes)
    for (int64_t i = 0; i < outputs.count; i += kLanes) {
      transpose_square(reinterpret_cast<const char*>(sums + i * kNf4TileRows + row),
                       kNf4TileRows * 4, reinterpret_cast<char*>(square), kLanes * 4);
      for (int64_t j = 0; j < smaller_of(kLanes, p.rows - row); ++j)
        store_some(static_cast<Y*>(p.y) + (row + j) * p.y_stride + outputs.first + i,
                   load(square + j * kLanes), lanes_of(outputs.count - i));
    }
}

template <int64_t kRowTiles, typename Y>
void multiply_rows(const Nf4TileProduct& p) {
  const TilesInUse tiles;
  alignas(64) uint16_t values[2][kValues];
  alignas(64) float scales[kNf4TileOutputs * kLanes];
  alignas(64) float sums[kNf4TileOutputs * kNf4TileRows];
  const int64_t steps = steps_of(p.in);
  for (int64_t first = p.begin; first < p.end; first += kNf4TileOutputs) {
    const Outputs outputs = {first, smaller_of(kNf4TileOutputs, p.end - first)};
    if (outputs.count < kNf4TileOutputs) store_zeros(values[0], 2 * kValues);
    zero_square();
    for (int64_t step = 0; step <= steps; ++step) {
      if (step < steps) {
        if (step % kScaleSteps == 0) load_scales(p, outputs, step * kNf4TileStep / kBlock, scales);
        make_values(p, outputs, step, scales + step % kScaleSteps * (kNf4TileStep / kBlock),
                    values[step % 2]);
      }
      if (step > 0)
        multiply_step<kRowTiles>(values[(step - 1) % 2],
                                 p.x + (step - 1) * step_elements(kRowTiles));
    }
    store_square(sums, kNf4TileRows);
    // gcc's tile stores do not declare that they write memory.
    __asm__ volatile("" ::: "memory");
    write_rows<Y>(p, outputs, sums);
  }
}

template <typename Y>
void multiply(const Nf4TileProduct& p) {
  if (row_tiles_of(p.rows) == 1)
    multiply_rows<1, Y>(p);
  else
    multiply_rows<2, Y>(p);
}

}  // namespace

const Nf4TileKernels kNf4TileKernels = {.arranged_bytes = arranged_bytes,
                                        .arrange = arrange,
                                        .multiply = {multiply<float>, multiply<uint16_t>}};

#else

const Nf4TileKernels kNf4TileKernels = {};

#endif

}  // namespace snug::backends::cpu::SNUG_ISA
