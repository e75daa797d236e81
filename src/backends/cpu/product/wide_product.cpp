#include "backends/cpu/product/wide_product.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/parallel.h"

namespace snug::backends::cpu {
namespace {

using base::DType;
using Add = MatmulSpec::Add;

// For fewer columns, squares of tiles are mostly padding, and the library is as fast.
constexpr int64_t kMinColumns = kWidePanel;
// A part of b, which stays in a second-level cache of 2 MiB together with some rows of a and c.
constexpr int64_t kPartBytes = int64_t{768} << 10;
// With narrower parts of b, a is read so often that memory cannot keep up.
constexpr int64_t kMinPartColumns = 192;
// The most of k at once, so that a part of b can be kMinPartColumns wide.
constexpr int64_t kMaxDepth = 2048;
// The most of k at once where sums go through c: as deep as a part of b can be when it is half as
// wide as deep.
constexpr int64_t kMaxDepthThroughC = 1024;
// The size of a packed copy of a; more rows are copied some at a time.
constexpr int64_t kCopiedBytes = int64_t{4} << 20;
// The most rows whose sums wait for the next step of k.
constexpr int64_t kMaxSummedRows = 1024;

// How a product is cut. A thread takes one part of b's columns and one group of a's rows at a time.
struct Wide {
  int64_t outer_step;    // step of k, between which sums are in c
  int64_t step;          // step of k within an outer step, between which sums are in scratch
  int64_t part_columns;  // in whole panels
  int64_t group_rows;    // in whole panels
  int64_t copied_rows;   // rows of a that all threads pack at once; 0: a is read in place
  int64_t copied_stride;
  int64_t low_depth;  // k of the low-rank factors, in whole panels
  // The parts of the scratch in bytes: first what all threads share, then what each has for itself.
  int64_t copied_bytes;
  int64_t part_bytes;
  int64_t rows_bytes;  // the size of a panel of rows, where the last rows of a do not fill one
  int64_t low_rows_bytes;
  int64_t sums_bytes;  // the size of sums between steps; 0 if k is not cut

  int64_t thread_bytes() const { return part_bytes + rows_bytes + low_rows_bytes + sums_bytes; }
};

// The length of pieces, in whole panels, when a dimension is cut into the fewest pieces of at most
// `most` elements, all about equally long.
int64_t piece_of(int64_t total, int64_t most) {
  const int64_t pieces = ceil_div(total, std::max(kWidePanel, most / kWidePanel * kWidePanel));
  return round_up(ceil_div(total, pieces), kWidePanel);
}

// The number of parts of b's columns: the fewest possible, or as many as keep all threads equally
// busy.
int64_t parts_of(int64_t columns, int64_t most, int threads) {
  const int64_t least = ceil_div(columns, most);
  return std::max(least, std::min(round_up(least, threads), columns / kMinPartColumns));
}

Wide wide_of(const MatmulSpec& spec, int threads) {
  Wide wide{};
  const bool transposed = spec.a_strides[1] != 1;
  wide.outer_step = spec.step > 0 ? std::min(spec.step, spec.k) : spec.k;
  wide.step = piece_of(wide.outer_step, kMaxDepth);
  wide.low_depth = round_up(spec.low.k, kWidePanel);
  const int64_t depth = wide.step + wide.low_depth;
  const int64_t most_columns =
      std::max(kWidePanel, kPartBytes / (2 * depth) / kWidePanel * kWidePanel);
  const int64_t parts = parts_of(spec.n, most_columns, threads);
  wide.part_columns = round_up(ceil_div(spec.n, parts), kWidePanel);
  int64_t rows = spec.m;
  if (transposed || spec.k % kWidePanel != 0) {
    wide.copied_stride = round_up(wide.outer_step, kWidePanel) + kWidePanel;
    rows = wide.copied_rows = piece_of(spec.m, kCopiedBytes / (2 * wide.copied_stride));
    wide.copied_bytes = wide.copied_rows * wide.copied_stride * 2;
  } else if (spec.m % kWidePanel != 0) {
    wide.rows_bytes = kWidePanel * (wide.step + kWidePanel) * 2;
  }
  const bool sums = wide.step < wide.outer_step;
  const int64_t groups = parts >= threads ? 1 : ceil_div(threads, parts);
  const int64_t most_rows = round_up(ceil_div(rows, groups), kWidePanel);
  wide.group_rows = piece_of(rows, sums ? std::min(most_rows, kMaxSummedRows) : most_rows);
  wide.part_bytes = wide.part_columns * depth * 2;
  wide.low_rows_bytes = wide.group_rows * wide.low_depth * 2;
  if (sums) wide.sums_bytes = wide.group_rows * wide.part_columns * 4;
  return wide;
}

ThinFactor factor(const std::byte* data, const int64_t (&strides)[2], int64_t row, int64_t column) {
  const auto* elements = reinterpret_cast<const uint16_t*>(data);
  return {elements + row * strides[0] + column * strides[1], strides[0], strides[1]};
}

// Multiplies by a power of two, which is exact except for the smallest numbers.
void scale(uint16_t* values, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::bit_cast<float>(uint32_t{values[i]} << 16) * factor;
    values[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  }
}

struct Span {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

// Rows of a with one stride, in place or copied; the first one is row `begin` of c.
struct RowsOfA {
  const uint16_t* data;  // points to the first element of the outer step's k
  int64_t stride;
  Span range;
};

// A thread's task: a group of rows times a part of b, over an outer step of k.
class PartTask {
 public:
  PartTask(const Wide& wide, const MatmulSpec& spec, const MatmulOperands& operands,
           const Kernels& kernels, std::byte* scratch, bool past_caches)
      : wide_(wide),
        spec_(spec),
        operands_(operands),
        kernels_(kernels),
        past_caches_(past_caches),
        b_(reinterpret_cast<uint16_t*>(scratch)),
        last_rows_(reinterpret_cast<uint16_t*>(scratch + wide.part_bytes)),
        low_rows_(reinterpret_cast<uint16_t*>(scratch + wide.part_bytes + wide.rows_bytes)),
        sums_(reinterpret_cast<float*>(scratch + wide.part_bytes + wide.rows_bytes +
                                       wide.low_rows_bytes)) {}

  void run(const RowsOfA& a, Span columns, Span k) const {
    for (int64_t from = k.begin; from < k.end; from += wide_.step) {
      const Span step{from, std::min(k.end, from + wide_.step)};
      const bool is_last = step.end == k.end;
      const int64_t low_depth = is_last ? wide_.low_depth : 0;
      pack_part(columns, step, low_depth);
      multiply(a, columns, k, step, low_depth);
    }
  }

 private:
  static int64_t depth(Span k) { return round_up(k.size(), kWidePanel); }

  void pack_part(Span columns, Span k, int64_t low_depth) const {
    const auto pack = kernels_.thin_product->pack_pairs;
    const int64_t stride = depth(k) + low_depth;
    // Goes along the stored rows of b, so that memory is read in order.
    const int64_t at_once = spec_.b_strides[1] == 1 ? kWidePanel : k.size();
    for (int64_t i = 0; i < k.size(); i += at_once)
      for (int64_t j = 0; j < columns.size(); j += kWidePanel)
        pack(factor(operands_.b, spec_.b_strides, k.begin + i, columns.begin + j),
             std::min(at_once, k.size() - i), std::min(kWidePanel, columns.size() - j),
             b_ + j * stride + i * kWidePanel, kWidePanel);
    for (int64_t j = 0; low_depth > 0 && j < columns.size(); j += kWidePanel) {
      const int64_t count = std::min(kWidePanel, columns.size() - j);
      uint16_t* const panel = b_ + j * stride + depth(k) * kWidePanel;
      pack(factor(operands_.low_b, spec_.low.b_strides, 0, columns.begin + j), spec_.low.k, count,
           panel, kWidePanel);
      if (spec_.low.alpha != spec_.alpha)
        scale(panel, low_depth * kWidePanel, spec_.low.alpha / spec_.alpha);
    }
  }

  // The result, starting at row `row` and column `column` of c.
  WideResult result_of(int64_t row, int64_t column, bool adds_to_c) const {
    const auto at = [&](const std::byte* data, DType type, int64_t stride) {
      return data + (row * stride + column) * base::size_of(type);
    };
    WideResult result{.c = const_cast<std::byte*>(at(operands_.c, spec_.c_type, spec_.c_stride)),
                      .addend = nullptr,
                      .c_is_bf16 = spec_.c_type == DType::bf16,
                      .addend_is_bf16 = spec_.c_type == DType::bf16,
                      .c_stride = spec_.c_stride,
                      .addend_stride = spec_.c_stride,
                      .alpha = spec_.alpha,
                      .past_caches = past_caches_};
    if (spec_.add == Add::destination || adds_to_c) {
      result.addend = result.c;
    } else if (spec_.add == Add::addend) {
      result.addend = at(operands_.addend, spec_.addend_type, spec_.addend_stride);
      result.addend_is_bf16 = spec_.addend_type == DType::bf16;
      result.addend_stride = spec_.addend_stride;
    }
    return result;
  }

  void pack_low_rows(Span rows, int64_t low_depth) const {
    const auto* low = reinterpret_cast<const uint16_t*>(operands_.low_a);
    const int64_t stride = spec_.low.a_stride;
    kernels_.thin_product->pack_rows({low + rows.begin * stride, stride, 1}, rows.size(),
                                     spec_.low.k, low_rows_, low_depth);
  }

  // Multiplies the rows that fill whole panels, or were copied with padding, then the remaining
  // rows, which are copied here.
  void multiply(const RowsOfA& a, Span columns, Span outer, Span k, int64_t low_depth) const {
    const int64_t rows = a.range.size();
    const int64_t filled = wide_.copied_rows > 0 ? rows : rows / kWidePanel * kWidePanel;
    if (low_depth > 0) pack_low_rows(a.range, low_depth);
    for (const auto [begin, end] : {Span{0, filled}, Span{filled, rows}}) {
      if (begin == end) continue;
      WideBlock block{.a = a.data + begin * a.stride + (k.begin - outer.begin),
                      .a_stride = a.stride,
                      .b = b_,
                      .rows = end - begin,
                      .columns = columns.size(),
                      .k = depth(k),
                      .result = result_of(a.range.begin + begin, columns.begin, outer.begin > 0),
                      .sums = sums_ + begin * wide_.part_columns,
                      .sums_stride = wide_.part_columns,
                      .is_first_step = k.begin == outer.begin,
                      .is_last_step = k.end == outer.end,
                      .low_a = low_rows_ + begin * low_depth,
                      .low_a_stride = low_depth,
                      .low_k = low_depth};
      if (begin == filled) {
        block.a_stride = wide_.step + kWidePanel;
        kernels_.thin_product->pack_rows({block.a, a.stride, 1}, block.rows, k.size(), last_rows_,
                                         block.a_stride);
        block.a = last_rows_;
      }
      kernels_.wide_product->multiply(block);
    }
  }

  const Wide& wide_;
  const MatmulSpec& spec_;
  const MatmulOperands& operands_;
  const Kernels& kernels_;
  bool past_caches_;
  uint16_t* b_;
  uint16_t* last_rows_;
  uint16_t* low_rows_;
  float* sums_;
};

struct Copy {
  uint16_t* data;
  int64_t stride;
};

// Packs rows of a along k, on all threads, along the lines in which a is stored.
void copy_rows(const MatmulSpec& spec, const std::byte* a, Span rows, Span k, Copy copy,
               const CpuContext& context) {
  const auto pack = context.kernels.thin_product->pack_rows;
  if (spec.a_strides[1] == 1)
    parallel_ranges(rows.size(), kWidePanel, [&](int64_t begin, int64_t end) {
      pack(factor(a, spec.a_strides, rows.begin + begin, k.begin), end - begin, k.size(),
           copy.data + begin * copy.stride, copy.stride);
    });
  else
    parallel_ranges(k.size(), kWidePanel, [&](int64_t begin, int64_t end) {
      pack(factor(a, spec.a_strides, rows.begin, k.begin + begin), rows.size(), end - begin,
           copy.data + begin, copy.stride);
    });
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
  const Wide wide = wide_of(spec, context.threads);
  return wide.copied_bytes + wide.thread_bytes() * context.threads;
}

int64_t wide_step(const MatmulSpec& spec) {
  const int64_t step = piece_of(spec.k, kMaxDepthThroughC);
  return step < spec.k ? step : 0;
}

int64_t multiply_wide(const MatmulSpec& spec, const MatmulOperands& operands, std::byte* scratch,
                      const CpuContext& context, bool past_caches) {
  const Wide wide = wide_of(spec, context.threads);
  auto* const copy = reinterpret_cast<uint16_t*>(scratch);
  const int64_t at_once = wide.copied_rows > 0 ? wide.copied_rows : spec.m;
  const int64_t parts = ceil_div(spec.n, wide.part_columns);
  for (int64_t first = 0; first < spec.m; first += at_once)
    for (int64_t k = 0; k < spec.k; k += wide.outer_step) {
      const Span rows{first, std::min(spec.m, first + at_once)};
      const Span step{k, std::min(spec.k, k + wide.outer_step)};
      if (wide.copied_rows > 0)
        copy_rows(spec, operands.a, rows, step, {copy, wide.copied_stride}, context);
      const ThinFactor a = wide.copied_rows > 0 ? ThinFactor{copy, wide.copied_stride, 1}
                                                : factor(operands.a, spec.a_strides, first, k);
      parallel_for(parts * ceil_div(rows.size(), wide.group_rows), [&](int64_t index) {
        const int64_t group = index / parts * wide.group_rows;
        const int64_t column = index % parts * wide.part_columns;
        const PartTask task(wide, spec, operands, context.kernels,
                            scratch + wide.copied_bytes + current_thread() * wide.thread_bytes(),
                            past_caches);
        task.run({.data = a.data + group * a.row_stride,
                  .stride = a.row_stride,
                  .range = {first + group, std::min(rows.end, first + group + wide.group_rows)}},
                 {column, std::min(spec.n, column + wide.part_columns)}, step);
      });
    }
  return ran_step(spec, wide.outer_step);
}

}  // namespace snug::backends::cpu
