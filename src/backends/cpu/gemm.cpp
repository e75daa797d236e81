#include "backends/cpu/gemm.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

// A packed block of b, 256 x 192 floats, fills 192 KiB of the second-level cache; the panel of a
// that the inner loop reads, 6 KiB, stays in the first. Rows are many, since each tile packs b
// again.
constexpr int64_t kTileRows = 32 * kGemmRows;
constexpr int64_t kTileColumns = 12 * kGemmColumns;
constexpr int64_t kPackedDepth = 256;

// Floats of one thread: a's block, then b's.
int64_t packed_a_size(const MatmulSpec& spec) {
  return round_up(std::min(spec.m, kTileRows), kGemmRows) * std::min(spec.k, kPackedDepth);
}

int64_t packed_size(const MatmulSpec& spec) {
  return round_up(packed_a_size(spec) + round_up(std::min(spec.n, kTileColumns), kGemmColumns) *
                                            std::min(spec.k, kPackedDepth),
                  16);
}

struct Tile {
  int64_t row;
  int64_t column;
  int64_t rows;
  int64_t columns;
};

// The destination of a tile's first step adds what the product asks for, later ones to c itself.
GemmDestination destination_of(const MatmulSpec& spec, const MatmulOperands& operands,
                               const Tile& tile, bool first) {
  float* c = reinterpret_cast<float*>(operands.c) + tile.row * spec.c_stride + tile.column;
  GemmDestination to{c, spec.c_stride, c, spec.c_stride, spec.alpha};
  if (!first || spec.add == MatmulSpec::Add::destination) return to;
  to.addend = nullptr;
  if (spec.add == MatmulSpec::Add::addend) {
    to.addend_stride = spec.addend_stride;
    to.addend = reinterpret_cast<const float*>(operands.addend) + tile.row * spec.addend_stride +
                tile.column;
  }
  return to;
}

void multiply_tile(const MatmulSpec& spec, const MatmulOperands& operands, const Tile& tile,
                   float* packed, const GemmKernels& kernels) {
  const auto* a = reinterpret_cast<const float*>(operands.a) + tile.row * spec.a_strides[0];
  const auto* b = reinterpret_cast<const float*>(operands.b) + tile.column * spec.b_strides[1];
  float* packed_b = packed + packed_a_size(spec);
  for (int64_t p = 0; p < spec.k; p += kPackedDepth) {
    const int64_t k = std::min(kPackedDepth, spec.k - p);
    kernels.pack_a({a + p * spec.a_strides[1], spec.a_strides[0], spec.a_strides[1]}, tile.rows, k,
                   packed);
    kernels.pack_b({b + p * spec.b_strides[0], spec.b_strides[0], spec.b_strides[1]}, k,
                   tile.columns, packed_b);
    kernels.block(packed, packed_b, {tile.rows, tile.columns, k},
                  destination_of(spec, operands, tile, p == 0));
  }
}

}  // namespace

int64_t gemm_scratch_bytes(const MatmulSpec& spec, const CpuContext& context) {
  return packed_size(spec) * context.threads * static_cast<int64_t>(sizeof(float));
}

void gemm(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
          const CpuContext& context) {
  const int64_t across = ceil_div(spec.n, kTileColumns);
  parallel_for(ceil_div(spec.m, kTileRows) * across, [&](int64_t index) {
    const int64_t row = index / across * kTileRows;
    const int64_t column = index % across * kTileColumns;
    const Tile tile{row, column, std::min(kTileRows, spec.m - row),
                    std::min(kTileColumns, spec.n - column)};
    float* packed = reinterpret_cast<float*>(scratch) + current_thread() * packed_size(spec);
    multiply_tile(spec, operands, tile, packed, *context.kernels.gemm);
  });
}

}  // namespace snug::backends::cpu
