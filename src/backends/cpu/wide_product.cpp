#include "backends/cpu/wide_product.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

using base::DType;
using Add = MatmulSpec::Add;

// Below, squares of tiles are mostly padding, and the library is as fast.
constexpr int64_t kMinColumns = kWidePanel;
// Of a part of b and a block of a: together with a block of c they stay in a second-level cache of
// 2 MiB.
constexpr int64_t kPartBytes = int64_t{1280} << 10;
constexpr int64_t kBlockBytes = int64_t{384} << 10;
constexpr int64_t kMaxRows = 256;
// Blocks of rows, where there are so many: enough to keep a few threads equally busy.
constexpr int64_t kManyBlocks = 8;
// Steps of k through c: as long as a part of b that is half as wide as it is deep may be.
constexpr int64_t kMaxDepth = 1024;
// Rows at a multiple of this many bytes fall into few sets of the first-level cache.
constexpr int64_t kBadStride = 2048;

struct Wide {
  int64_t step;           // of k
  int64_t part_columns;   // of b, whole panels
  int64_t block_rows;     // of a, whole panels
  int64_t packed_stride;  // of a packed block of a, elements
  bool packs_a;           // every block; else at most the last
  int64_t low_depth;      // of the low-rank factors, whole panels
  int64_t part_bytes;
  int64_t block_bytes;      // of a thread; 0: no block is packed
  int64_t low_block_bytes;  // of a thread
};

// A dimension cut into the fewest pieces of whole panels that hold at most `most` elements, all
// about equally long.
int64_t piece_of(int64_t total, int64_t most) {
  const int64_t pieces = ceil_div(total, std::max(kWidePanel, most / kWidePanel * kWidePanel));
  return round_up(ceil_div(total, pieces), kWidePanel);
}

Wide wide_of(const MatmulSpec& spec) {
  Wide wide{};
  const bool transposed = spec.a_strides[1] != 1;
  wide.step = transposed && spec.c_type == DType::f32 ? piece_of(spec.k, kMaxDepth) : spec.k;
  wide.low_depth = round_up(spec.low.k, kWidePanel);
  const int64_t depth = round_up(wide.step, kWidePanel) + wide.low_depth;
  wide.part_columns = piece_of(spec.n, kPartBytes / (2 * depth));
  const int64_t share = round_up(ceil_div(spec.m, kManyBlocks), kWidePanel);
  wide.block_rows = piece_of(spec.m, std::min({share, kMaxRows, kBlockBytes / (2 * depth)}));
  wide.packs_a = transposed || spec.k % kWidePanel != 0 || spec.a_strides[0] * 2 % kBadStride == 0;
  wide.part_bytes = wide.part_columns * depth * 2;
  wide.packed_stride = round_up(wide.step, kWidePanel) + kWidePanel;
  if (wide.packs_a || spec.m % kWidePanel != 0)
    wide.block_bytes = wide.block_rows * wide.packed_stride * 2;
  wide.low_block_bytes = wide.block_rows * wide.low_depth * 2;
  return wide;
}

ThinFactor factor(const std::byte* data, const int64_t (&strides)[2], int64_t row, int64_t column) {
  const auto* elements = reinterpret_cast<const uint16_t*>(data);
  return {elements + row * strides[0] + column * strides[1], strides[0], strides[1]};
}

// One step of k with one part of b.
struct Part {
  const Wide& wide;
  const MatmulSpec& spec;
  const MatmulOperands& operands;
  const Kernels& kernels;
  uint16_t* b;
  std::byte* blocks;
  int64_t first_k;
  int64_t k;
  int64_t first_column;
  int64_t columns;

  int64_t depth() const { return round_up(k, kWidePanel); }
  uint16_t* panel(int64_t column) const { return b + column * (depth() + wide.low_depth); }
};

// By a power of two, which keeps the digits of all but the smallest numbers.
void scale(uint16_t* values, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::bit_cast<float>(uint32_t{values[i]} << 16) * factor;
    values[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  }
}

void pack_low_panel(const Part& part, int64_t j) {
  const LowRankSpec& low = part.spec.low;
  uint16_t* to = part.panel(j) + part.depth() * kWidePanel;
  part.kernels.thin_product->pack_pairs(
      factor(part.operands.low_b, low.b_strides, 0, part.first_column + j), low.k,
      std::min(kWidePanel, part.columns - j), to, kWidePanel);
  if (low.alpha != part.spec.alpha)
    scale(to, part.wide.low_depth * kWidePanel, low.alpha / part.spec.alpha);
}

// Along the rows that b is stored in, so that they are read as they come.
void pack_part(const Part& part) {
  const auto pack = part.kernels.thin_product->pack_pairs;
  const auto panel = [&](int64_t k, int64_t rows, int64_t j) {
    pack(factor(part.operands.b, part.spec.b_strides, part.first_k + k, part.first_column + j),
         rows, std::min(kWidePanel, part.columns - j), part.panel(j) + k * kWidePanel, kWidePanel);
  };
  if (part.spec.b_strides[1] == 1) {
    parallel_ranges(part.k, kWidePanel, [&](int64_t begin, int64_t end) {
      for (int64_t j = 0; j < part.columns; j += kWidePanel) panel(begin, end - begin, j);
    });
  } else {
    parallel_ranges(part.columns, kWidePanel,
                    [&](int64_t begin, int64_t) { panel(0, part.k, begin); });
  }
  if (part.wide.low_depth > 0)
    parallel_ranges(part.columns, kWidePanel,
                    [&](int64_t begin, int64_t) { pack_low_panel(part, begin); });
}

WideResult result_of(const Part& part, int64_t row) {
  const MatmulSpec& spec = part.spec;
  const auto at = [&](const std::byte* data, DType type, int64_t stride) {
    return data + (row * stride + part.first_column) * base::size_of(type);
  };
  WideResult result{
      .c = part.operands.c + (row * spec.c_stride + part.first_column) * base::size_of(spec.c_type),
      .addend = nullptr,
      .c_is_bf16 = spec.c_type == DType::bf16,
      .addend_is_bf16 = spec.c_type == DType::bf16,
      .c_stride = spec.c_stride,
      .addend_stride = spec.c_stride,
      .alpha = spec.alpha};
  if (spec.add == Add::destination || part.first_k > 0) {
    result.addend = result.c;
  } else if (spec.add == Add::addend) {
    result.addend = at(part.operands.addend, spec.addend_type, spec.addend_stride);
    result.addend_is_bf16 = spec.addend_type == DType::bf16;
    result.addend_stride = spec.addend_stride;
  }
  return result;
}

void multiply_block(const Part& part, int64_t begin, int64_t end) {
  const ThinFactor a = factor(part.operands.a, part.spec.a_strides, begin, part.first_k);
  WideBlock block{.a = a.data,
                  .a_stride = a.row_stride,
                  .b = part.b,
                  .rows = end - begin,
                  .columns = part.columns,
                  .k = part.depth(),
                  .result = result_of(part, begin),
                  .low_a_stride = part.wide.low_depth,
                  .low_k = part.wide.low_depth};
  std::byte* const scratch =
      part.blocks + current_thread() * (part.wide.block_bytes + part.wide.low_block_bytes);
  if (part.wide.low_depth > 0) {
    auto* packed = reinterpret_cast<uint16_t*>(scratch + part.wide.block_bytes);
    const LowRankSpec& low = part.spec.low;
    const auto* from = reinterpret_cast<const uint16_t*>(part.operands.low_a);
    part.kernels.thin_product->pack_rows({from + begin * low.a_stride, low.a_stride, 1}, block.rows,
                                         low.k, packed, part.wide.low_depth);
    block.low_a = packed;
  }
  if (part.wide.packs_a || block.rows % kWidePanel != 0) {
    auto* packed = reinterpret_cast<uint16_t*>(scratch);
    part.kernels.thin_product->pack_rows(a, block.rows, part.k, packed, part.wide.packed_stride);
    block.a = packed;
    block.a_stride = part.wide.packed_stride;
  }
  part.kernels.wide_product->multiply(block);
}

}  // namespace

bool is_wide_product(const MatmulSpec& spec, const CpuContext& context) {
  return context.kernels.wide_product->multiply != nullptr && spec.a_type == DType::bf16 &&
         std::min({spec.m, spec.n, spec.k}) >= kMinColumns;
}

bool wide_takes_low_rank(const MatmulSpec& spec) {
  int exponent = 0;
  const bool scales_exactly =
      spec.alpha != 0.0F && std::abs(std::frexp(spec.low.alpha / spec.alpha, &exponent)) == 0.5F;
  return spec.a_strides[1] == 1 && scales_exactly;
}

int64_t wide_scratch_bytes(const MatmulSpec& spec, const CpuContext& context) {
  const Wide wide = wide_of(spec);
  return wide.part_bytes + (wide.block_bytes + wide.low_block_bytes) * context.threads;
}

void multiply_wide(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                   const CpuContext& context) {
  const Wide wide = wide_of(spec);
  for (int64_t k = 0; k < spec.k; k += wide.step)
    for (int64_t column = 0; column < spec.n; column += wide.part_columns) {
      const Part part{.wide = wide,
                      .spec = spec,
                      .operands = operands,
                      .kernels = context.kernels,
                      .b = reinterpret_cast<uint16_t*>(scratch),
                      .blocks = scratch + wide.part_bytes,
                      .first_k = k,
                      .k = std::min(wide.step, spec.k - k),
                      .first_column = column,
                      .columns = std::min(wide.part_columns, spec.n - column)};
      pack_part(part);
      parallel_ranges(spec.m, wide.block_rows,
                      [&](int64_t begin, int64_t end) { multiply_block(part, begin, end); });
    }
}

}  // namespace snug::backends::cpu
