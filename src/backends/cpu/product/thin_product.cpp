#include "backends/cpu/product/thin_product.h"

#include <algorithm>

#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

using base::DType;

constexpr int64_t kThinnest = 8;
// For thicker products the library is as fast (AMX, 576 wide).
constexpr int64_t kThickestInner = 32;
constexpr int64_t kThickestNarrow = kThinStep;
constexpr int64_t kThickestResult = kThinRows;
// Narrower products are too small to matter.
constexpr int64_t kWide = 128;
// A thin factor that would fill more than the second-level cache is left to the library.
constexpr int64_t kPackedBytes = int64_t{2} << 20;
// Rows of the result that a thread writes at a time.
constexpr int64_t kWrittenRows = 4 * kThinRows;
// Rows of a wide factor that a thread multiplies at a time.
constexpr int64_t kNarrowed = 4 * kNarrowRows;
// The inner dimension is cut into at most kParts blocks with separate sums, of at least kPartDepth
// rows each.
constexpr int64_t kParts = 8;
constexpr int64_t kPartDepth = 256;
// Columns of the wide factor that a thread sums at a time.
constexpr int64_t kPartColumns = 1536;
// One thread packs up to this many elements in less time than another takes to wake up.
constexpr int64_t kPackedAlone = int64_t{1} << 16;

// The product, transposed if that makes n the thin dimension, and the sizes of its scratch in
// bytes.
struct Thin {
  bool spreads;  // k is the thin dimension
  bool narrows;  // n is the thin dimension, and a is stored in rows
  bool transposed;
  int64_t m, n, k;
  int64_t a_strides[2];
  int64_t b_strides[2];
  int64_t part_depth;
  int64_t parts;
  int64_t packed_bytes;
  int64_t sums_bytes;   // the size of the sums of all parts
  int64_t block_bytes;  // the size of one thread's packed block
  int64_t thread_bytes;
};

// The depth of the packed thin factor.
int64_t packed_depth(const Thin& thin) {
  return round_up(thin.k, kThinStep) + (thin.spreads || thin.narrows ? 0 : 2 * kThinGap);
}

void lay_out_scratch(Thin& thin) {
  const int64_t width = round_up(thin.n, kThinStep);
  const int64_t depth = packed_depth(thin);
  thin.packed_bytes = width * depth * 2;
  thin.block_bytes = thin.spreads   ? kThinStep * depth * 2
                     : thin.narrows ? kNarrowRows * (depth + kThinStep) * 2
                                    : kThinBlockBytes;
  thin.thread_bytes = thin.block_bytes + (thin.spreads ? kThinSpreadBytes : 0);
  if (thin.spreads || thin.narrows) return;
  thin.part_depth = std::max(kPartDepth, round_up(ceil_div(thin.k, kParts), kThinStep));
  thin.parts = ceil_div(thin.k, thin.part_depth);
  thin.sums_bytes = thin.parts * round_up(thin.n, kThinRows) * round_up(thin.m, kThinStep) * 4;
}

Thin thin_of(const MatmulSpec& spec) {
  Thin thin{};
  thin.spreads = spec.k <= std::min(spec.m, spec.n);
  thin.transposed = !thin.spreads && spec.m < spec.n;
  thin.m = thin.transposed ? spec.n : spec.m;
  thin.n = thin.transposed ? spec.m : spec.n;
  thin.k = spec.k;
  for (int side = 0; side < 2; ++side) {
    thin.a_strides[side] = thin.transposed ? spec.b_strides[1 - side] : spec.a_strides[side];
    thin.b_strides[side] = thin.transposed ? spec.a_strides[1 - side] : spec.b_strides[side];
  }
  thin.narrows = !thin.spreads && thin.a_strides[0] != 1;
  lay_out_scratch(thin);
  return thin;
}

ThinFactor factor(const std::byte* data, const int64_t (&strides)[2]) {
  return {reinterpret_cast<const uint16_t*>(data), strides[0], strides[1]};
}

ThinFactor transpose(const ThinFactor& f) { return {f.data, f.column_stride, f.row_stride}; }

ThinFactor at(const ThinFactor& f, int64_t row, int64_t column) {
  return {f.data + row * f.row_stride + column * f.column_stride, f.row_stride, f.column_stride};
}

// A product with its kernels and operands.
struct Run {
  const Thin& thin;
  const ThinKernels& kernels;
  ThinFactor a;
  ThinFactor b;
  ThinResult result;
  uint16_t* packed;
  float* sums;
  std::byte* threads;

  std::byte* scratch_of_thread() const { return threads + current_thread() * thin.thread_bytes; }
};

ThinResult result_of(const MatmulSpec& spec, const MatmulOperands& operands, bool transposed) {
  ThinResult result{};
  result.c = operands.c;
  result.c_is_bf16 = spec.c_type == DType::bf16;
  result.c_stride = spec.c_stride;
  result.transposed = transposed;
  result.alpha = spec.alpha;
  if (spec.add == MatmulSpec::Add::destination) {
    result.addend = operands.c;
    result.addend_is_bf16 = result.c_is_bf16;
    result.addend_stride = spec.c_stride;
  } else if (spec.add == MatmulSpec::Add::addend) {
    result.addend = operands.addend;
    result.addend_is_bf16 = spec.addend_type == DType::bf16;
    result.addend_stride = spec.addend_stride;
  }
  return result;
}

// The result, moved by `lines` lines and by `along` elements within a line.
ThinResult moved(ThinResult result, int64_t lines, int64_t along) {
  const int64_t c_size = result.c_is_bf16 ? 2 : 4;
  const int64_t addend_size = result.addend_is_bf16 ? 2 : 4;
  result.c = static_cast<std::byte*>(result.c) + (lines * result.c_stride + along) * c_size;
  if (result.addend != nullptr)
    result.addend = static_cast<const std::byte*>(result.addend) +
                    (lines * result.addend_stride + along) * addend_size;
  return result;
}

// Packs b (k, n) as pairs along k.
void pack_b(const Run& run) {
  const int64_t k = run.thin.k;
  const int64_t n = run.thin.n;
  const int64_t width = round_up(n, kThinStep);
  const int64_t block = std::max(kThinStep, kPackedAlone / width / kThinStep * kThinStep);
  parallel_ranges(k, block, [&](int64_t begin, int64_t end) {
    run.kernels.pack_pairs(at(run.b, begin, 0), end - begin, n, run.packed + begin * width, width);
  });
}

void multiply_rows(const Run& run, int64_t begin, int64_t end) {
  std::byte* const scratch = run.scratch_of_thread();
  for (int64_t row = begin; row < end; row += kThinRows)
    run.kernels.spread({.a = at(run.a, row, 0),
                        .rows = std::min(kThinRows, end - row),
                        .next_rows = std::clamp<int64_t>(end - row - kThinRows, 0, kThinRows),
                        .k = run.thin.k,
                        .n = run.thin.n,
                        .b = run.packed,
                        .packed = reinterpret_cast<uint16_t*>(scratch),
                        .sums = reinterpret_cast<float*>(scratch + run.thin.block_bytes),
                        .result = moved(run.result, row, 0)});
}

void narrow_rows(const Run& run, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row += kNarrowRows)
    run.kernels.narrow(
        {.a = at(run.a, row, 0).data,
         .a_stride = run.a.row_stride,
         .rows = std::min(kNarrowRows, end - row),
         .k = run.thin.k,
         .n = run.thin.n,
         .b = run.packed,
         .packed = reinterpret_cast<uint16_t*>(run.scratch_of_thread()),
         .result = run.result.transposed ? moved(run.result, 0, row) : moved(run.result, row, 0)});
}

// Computes the transpose, (n, m), of the requested product, as sums over blocks of rows of the
// stored a.
void multiply_sums(const Run& run) {
  const Thin& thin = run.thin;
  const int64_t depth = packed_depth(thin);
  const int64_t stride = round_up(thin.m, kThinStep);
  const int64_t part_stride = stride * round_up(thin.n, kThinRows);
  const ThinFactor narrow = transpose(run.b);
  const ThinFactor wide = transpose(run.a);
  const int64_t block = std::max(kThinStep, kPackedAlone / round_up(thin.n, kThinStep));
  parallel_ranges(thin.k, block / kThinStep * kThinStep, [&](int64_t begin, int64_t end) {
    run.kernels.pack_rows(at(narrow, 0, begin), thin.n, end - begin, run.packed + begin, depth);
  });
  const int64_t across = ceil_div(thin.m, kPartColumns);
  parallel_for(thin.parts * across, [&](int64_t index) {
    const int64_t part = index / across;
    const int64_t begin = part * thin.part_depth;
    const int64_t column = index % across * kPartColumns;
    run.kernels.sum({.a = run.packed + begin,
                     .a_stride = depth,
                     .k = std::min(thin.part_depth, thin.k - begin),
                     .columns = std::min(kPartColumns, thin.m - column),
                     .b = at(wide, begin, column),
                     .packed = reinterpret_cast<uint16_t*>(run.scratch_of_thread()),
                     .sums = run.sums + part * part_stride + column,
                     .sums_stride = stride});
  });
  const int64_t finished = round_up(ceil_div(kPackedAlone, thin.n * thin.parts), kThinStep);
  ThinResult result = run.result;
  result.transposed = !result.transposed;
  parallel_ranges(thin.m, finished, [&](int64_t begin, int64_t end) {
    const ThinResult to = result.transposed ? moved(result, begin, 0) : moved(result, 0, begin);
    run.kernels.finish(run.sums + begin, stride, {thin.n, end - begin, thin.parts}, part_stride,
                       to);
  });
}

}  // namespace

bool is_thin_product(const MatmulSpec& spec, const CpuContext& context) {
  if (context.kernels.thin_product->sum == nullptr || spec.a_type != DType::bf16) return false;
  int64_t sizes[3] = {spec.m, spec.n, spec.k};
  std::sort(std::begin(sizes), std::end(sizes));
  if (sizes[0] < kThinnest || sizes[1] < kWide) return false;
  const Thin thin = thin_of(spec);
  const int64_t thickest = thin.spreads   ? kThickestInner
                           : thin.narrows ? kThickestNarrow
                                          : kThickestResult;
  if (sizes[0] > thickest) return false;
  return thin.packed_bytes <= kPackedBytes;
}

int64_t thin_scratch_bytes(const MatmulSpec& spec, const CpuContext& context) {
  const Thin thin = thin_of(spec);
  return thin.packed_bytes + thin.sums_bytes + thin.thread_bytes * context.threads;
}

void multiply_thin(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                   const CpuContext& context) {
  const Thin thin = thin_of(spec);
  std::byte* const sums = scratch + thin.packed_bytes;
  const Run run{.thin = thin,
                .kernels = *context.kernels.thin_product,
                .a = factor(thin.transposed ? operands.b : operands.a, thin.a_strides),
                .b = factor(thin.transposed ? operands.a : operands.b, thin.b_strides),
                .result = result_of(spec, operands, thin.transposed),
                .packed = reinterpret_cast<uint16_t*>(scratch),
                .sums = reinterpret_cast<float*>(sums),
                .threads = sums + thin.sums_bytes};
  if (!thin.spreads && !thin.narrows) return multiply_sums(run);
  pack_b(run);
  if (thin.narrows)
    return parallel_ranges(thin.m, kNarrowed,
                           [&](int64_t begin, int64_t end) { narrow_rows(run, begin, end); });
  parallel_ranges(thin.m, kWrittenRows,
                  [&](int64_t begin, int64_t end) { multiply_rows(run, begin, end); });
}

}  // namespace snug::backends::cpu
