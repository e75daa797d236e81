#include "backends/cpu/product/gemm.h"

#include <algorithm>

#include "backends/cpu/norm/finish_row.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {
namespace {

// A packed block of b, 256 x 192 floats, takes 192 KiB of the second-level cache; the panel of a
// that the inner loop reads, 6 KiB, stays in the first. A tile has many rows, since each tile packs
// b again.
constexpr int64_t kTileRows = 64 * kGemmRows;
constexpr int64_t kTileColumns = 12 * kGemmColumns;
constexpr int64_t kMaxPackedDepth = 256;

// Steps of k of about equal length, so that none is too short to justify reading and writing c.
int64_t packed_depth(int64_t k) {
  return round_up(ceil_div(k, std::max<int64_t>(1, ceil_div(k, kMaxPackedDepth))), kGemmColumns);
}

// Contiguous rows of fp32 are read in place.
bool reads_a_in_place(const MatmulSpec& spec) {
  return spec.a_type == base::DType::f32 && spec.a_strides[1] == 1;
}

// Floats per thread: a's block where it is packed, then b's.
int64_t packed_a_size(const MatmulSpec& spec) {
  if (reads_a_in_place(spec)) return 0;
  return round_up(std::min(spec.m, kTileRows), kGemmRows) * std::min(spec.k, packed_depth(spec.k));
}

int64_t packed_size(const MatmulSpec& spec) {
  return round_up(packed_a_size(spec) + round_up(std::min(spec.n, kTileColumns), kGemmColumns) *
                                            std::min(spec.k, packed_depth(spec.k)),
                  16);
}

struct Tile {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

// Where k takes several steps, a tile's sums stay in scratch until they are complete, so that c is
// written once. So do sums that are rounded at the end because c or the addend is fp16.
bool keeps_sums(const MatmulSpec& spec) {
  return spec.k > packed_depth(spec.k) || spec.c_type != base::DType::f32 ||
         (spec.add == MatmulSpec::Add::addend && spec.addend_type != base::DType::f32);
}

int64_t sums_size(const MatmulSpec& spec) {
  return keeps_sums(spec) ? std::min(spec.m, kTileRows) * std::min(spec.n, kTileColumns) : 0;
}

// Floats per thread: packed blocks, then sums.
int64_t thread_size(const MatmulSpec& spec) {
  return round_up(packed_size(spec) + sums_size(spec), 16);
}

// c itself, for a product in one step.
GemmDestination destination_of(const MatmulSpec& spec, const MatmulOperands& operands,
                               const Tile& tile) {
  float* c = reinterpret_cast<float*>(operands.c) + tile.row * spec.c_stride + tile.column;
  GemmDestination to{c, spec.c_stride, c, spec.c_stride, spec.alpha};
  if (spec.add == MatmulSpec::Add::destination) return to;
  to.addend = nullptr;
  if (spec.add == MatmulSpec::Add::addend) {
    to.addend_stride = spec.addend_stride;
    to.addend = reinterpret_cast<const float*>(operands.addend) + tile.row * spec.addend_stride +
                tile.column;
  }
  return to;
}

GemmDestination sums_of(const MatmulSpec& spec, const Tile& tile, float* sums, bool first) {
  return {sums, tile.columns, first ? nullptr : sums, tile.columns, spec.alpha};
}

// A block of a, in place or packed.
GemmRows block_rows(const MatmulSpec& spec, const GemmSource& block, int64_t rows, int64_t k,
                    float* packed, const GemmKernels& kernels) {
  if (reads_a_in_place(spec))
    return {static_cast<const float*>(block.data), block.row_stride, 1,
            kGemmRows * block.row_stride};
  kernels.pack_a[element_of(spec.a_type)](block, rows, k, packed);
  return {packed, 1, kGemmRows, kGemmRows * k};
}

void multiply_tile(const MatmulSpec& spec, const MatmulOperands& operands, const Tile& tile,
                   float* packed, const Kernels& all_kernels) {
  const GemmKernels& kernels = *all_kernels.gemm;
  const Element element = element_of(spec.a_type);
  const int64_t size = base::size_of(spec.a_type);
  const std::byte* const a = operands.a + tile.row * spec.a_strides[0] * size;
  const std::byte* const b = operands.b + tile.column * spec.b_strides[1] * size;
  float* const packed_b = packed + packed_a_size(spec);
  float* const sums = packed + packed_size(spec);
  const int64_t depth = packed_depth(spec.k);
  for (int64_t p = 0; p < spec.k; p += depth) {
    const int64_t k = std::min(depth, spec.k - p);
    const GemmSource block_of_a{a + p * spec.a_strides[1] * size, spec.a_strides[0],
                                spec.a_strides[1]};
    kernels.pack_b[element](
        {b + p * spec.b_strides[0] * size, spec.b_strides[0], spec.b_strides[1]}, k, tile.columns,
        packed_b);
    kernels.block(block_rows(spec, block_of_a, tile.rows, k, packed, kernels), packed_b,
                  {tile.rows, tile.columns, k},
                  keeps_sums(spec) ? sums_of(spec, tile, sums, p == 0)
                                   : destination_of(spec, operands, tile));
  }
  if (!keeps_sums(spec)) return;
  for (int64_t i = 0; i < tile.rows; ++i)
    finish_row(spec, operands, {tile.row + i, tile.column, tile.column + tile.columns},
               sums + i * tile.columns, *all_kernels.elementwise);
}

}  // namespace

bool is_gemm(base::DType type, const CpuContext& context) {
  return type == base::DType::f16 || context.isa < Isa::v4;
}

int64_t gemm_scratch_bytes(const MatmulSpec& spec, const CpuContext& context) {
  return thread_size(spec) * context.threads * static_cast<int64_t>(sizeof(float));
}

void gemm(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
          const CpuContext& context) {
  const int64_t across = ceil_div(spec.n, kTileColumns);
  parallel_for(ceil_div(spec.m, kTileRows) * across, [&](int64_t index) {
    const int64_t row = index / across * kTileRows;
    const int64_t column = index % across * kTileColumns;
    const Tile tile{row, column, std::min(kTileRows, spec.m - row),
                    std::min(kTileColumns, spec.n - column)};
    float* packed = reinterpret_cast<float*>(scratch) + current_thread() * thread_size(spec);
    multiply_tile(spec, operands, tile, packed, context.kernels);
  });
}

}  // namespace snug::backends::cpu
