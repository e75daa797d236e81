#include "backends/cpu/product/product.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/product/few_rows.h"
#include "backends/cpu/product/gemm.h"
#include "backends/cpu/product/thin_product.h"
#include "backends/cpu/product/wide_product.h"
#include "base/error.h"

namespace snug::backends::cpu {
namespace {

using base::DType;
using Add = MatmulSpec::Add;

MatmulSpec in_place_of(MatmulSpec spec) {
  spec.add = Add::destination;
  spec.addend_type = DType::f32;
  spec.addend_stride = 0;
  return spec;
}

bool is_transposed(const int64_t (&strides)[2]) { return strides[0] == 1 && strides[1] != 1; }

// Changes a factor's strides to those of the same matrix without gaps, transposed or not. Returns
// the size of a copy in bytes; 0 where there were no gaps.
int64_t close_factor(int64_t rows, int64_t columns, DType type, int64_t (&strides)[2]) {
  const bool transposed = is_transposed(strides);
  const int64_t lines = transposed ? columns : rows;
  const int64_t length = transposed ? rows : columns;
  int64_t& stride = strides[transposed ? 1 : 0];
  if (stride == length) return 0;
  stride = length;
  return lines == 1 ? 0 : whole_lines(rows * columns * base::size_of(type));
}

int64_t close_result(const MatmulSpec& spec, DType type, int64_t& stride) {
  if (stride == spec.n) return 0;
  stride = spec.n;
  return spec.m == 1 ? 0 : whole_lines(spec.m * spec.n * base::size_of(type));
}

// With a transposed bf16 factor, oneDNN 2.6.3 reaches 0.5 to 0.7 TFLOP/s per core without steps and
// 0.9 to 1.1 with steps of 512 (AMX, 576 to 1536 wide).
constexpr int64_t kLibraryStep = 512;

// Whether the product can be computed in steps: its sums in c must be fp32.
bool takes_steps(const MatmulSpec& spec) {
  return is_transposed(spec.a_strides) && spec.m > 1 && spec.a_type == DType::bf16 &&
         spec.c_type == DType::f32 && spec.low.k == 0;
}

// Lines of `bytes` bytes each, with one stride in the source and another in the copy.
struct Lines {
  std::byte* to;
  int64_t to_stride;
  const std::byte* from;
  int64_t from_stride;
  int64_t count;
  int64_t bytes;
};

void copy_lines(const Lines& lines) {
  parallel_ranges(lines.count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line)
      std::memcpy(lines.to + line * lines.to_stride, lines.from + line * lines.from_stride,
                  static_cast<size_t>(lines.bytes));
  });
}

// A factor's lines: its rows, or its columns when it is transposed. This is decided by the original
// strides, since the dense ones are ambiguous where lines have one element.
Lines factor_lines(const std::byte* from, std::byte* to, const int64_t (&strides)[2],
                   const int64_t (&dense)[2], int64_t rows_columns[2], DType type) {
  const int line = is_transposed(strides) ? 1 : 0;
  const int64_t size = base::size_of(type);
  return {.to = to,
          .to_stride = dense[line] * size,
          .from = from,
          .from_stride = strides[line] * size,
          .count = rows_columns[line],
          .bytes = rows_columns[1 - line] * size};
}

}  // namespace

int64_t step_of(const MatmulSpec& spec, ProductAlgorithm algorithm) {
  if (!takes_steps(spec)) return 0;
  if (algorithm == ProductAlgorithm::library) return spec.k > kLibraryStep ? kLibraryStep : 0;
  return algorithm == ProductAlgorithm::wide ? wide_step(spec) : 0;
}

ProductCopies copies_of(const MatmulSpec& spec, ProductAlgorithm algorithm) {
  if (algorithm != ProductAlgorithm::library) return {};
  MatmulSpec dense = spec;
  return {.a = close_factor(spec.m, spec.k, spec.a_type, dense.a_strides) > 0,
          .b = close_factor(spec.k, spec.n, spec.b_type, dense.b_strides) > 0,
          .addend = spec.add == Add::addend &&
                    close_result(spec, spec.addend_type, dense.addend_stride) > 0,
          .c = close_result(spec, spec.c_type, dense.c_stride) > 0};
}

bool supports_product(DType a, DType b, DType c, const CpuContext& context) {
  if (a != b) return false;
  if (a == DType::f32) return c == DType::f32;
  if (a == DType::f16) return c == DType::f32 || c == DType::f16;
  return a == DType::bf16 && (c == DType::f32 || c == DType::bf16) &&
         has_bf16_products(context.isa);
}

bool takes_low_rank(const MatmulSpec& spec, const CpuContext& context) {
  return algorithm_of(spec, context) == ProductAlgorithm::wide && wide_takes_low_rank(spec);
}

ProductAlgorithm algorithm_of(const MatmulSpec& spec, const CpuContext& context) {
  for (const ProductAlgorithm algorithm :
       {ProductAlgorithm::few_rows, ProductAlgorithm::thin, ProductAlgorithm::wide})
    if (runs_product(spec, algorithm, context)) return algorithm;
  return algorithm_of_any(spec.a_type, context);
}

ProductAlgorithm algorithm_of_any(DType type, const CpuContext& context) {
  return is_gemm(type, context) ? ProductAlgorithm::blocked : ProductAlgorithm::library;
}

bool runs_product(const MatmulSpec& spec, ProductAlgorithm algorithm, const CpuContext& context) {
  switch (algorithm) {
    case ProductAlgorithm::few_rows:
      return is_few_rows(spec, context);
    case ProductAlgorithm::blocked:
      return is_gemm(spec.a_type, context);
    case ProductAlgorithm::thin:
      return context.isa >= Isa::v4 && is_thin_product(spec, context);
    case ProductAlgorithm::wide:
      return context.isa >= Isa::v4 && is_wide_product(spec, context);
    case ProductAlgorithm::library:
      return !is_gemm(spec.a_type, context);
    case ProductAlgorithm::loops:
    case ProductAlgorithm::few_rows_tensor_cores:
    case ProductAlgorithm::blocked_tensor_cores:
    case ProductAlgorithm::timed:
      return false;
  }
  return false;
}

Product::Product(const MatmulSpec& spec, ProductAlgorithm algorithm, const CpuContext& context)
    : spec_(spec), algorithm_(algorithm), dense_(spec) {
  SNUG_CHECK(runs_product(spec, algorithm, context),
             "a product ({} x {}) ({} x {}) by algorithm {}, which does not compute it here",
             spec.m, spec.k, spec.k, spec.n, base::word_of(algorithm));
  SNUG_CHECK(spec.low.k == 0 || (algorithm == ProductAlgorithm::wide && wide_takes_low_rank(spec)),
             "a low-rank part that is not taken");
  SNUG_CHECK(spec.step == 0 || (takes_steps(spec) && (algorithm == ProductAlgorithm::library ||
                                                      (algorithm == ProductAlgorithm::wide &&
                                                       spec.step % kWidePanel == 0))),
             "a product by algorithm {} in steps of {}, which it does not make",
             base::word_of(algorithm), spec.step);
  dense_.step = 0;
  if (algorithm == ProductAlgorithm::blocked) {
    own_scratch_bytes_ = gemm_scratch_bytes(spec, context);
  } else if (algorithm == ProductAlgorithm::thin) {
    own_scratch_bytes_ = thin_scratch_bytes(spec, context);
  } else if (algorithm == ProductAlgorithm::wide) {
    own_scratch_bytes_ = wide_scratch_bytes(spec, context);
  } else if (algorithm == ProductAlgorithm::library) {
    close_gaps();
    make_steps();
  }
}

void Product::make_steps() {
  const int64_t length = spec_.step > 0 ? spec_.step : spec_.k;
  for (int64_t begin = 0; begin < dense_.k; begin += length) {
    MatmulSpec spec = begin == 0 ? dense_ : in_place_of(dense_);
    spec.k = std::min(length, dense_.k - begin);
    const Step step{begin, &matmul_primitive(spec)};
    own_scratch_bytes_ =
        std::max(own_scratch_bytes_, whole_lines(cpu::scratch_bytes(*step.primitive)));
    steps_.push_back(step);
  }
}

void Product::close_gaps() {
  copied_bytes_[kA] = close_factor(dense_.m, dense_.k, dense_.a_type, dense_.a_strides);
  copied_bytes_[kB] = close_factor(dense_.k, dense_.n, dense_.b_type, dense_.b_strides);
  copied_bytes_[kC] = close_result(dense_, dense_.c_type, dense_.c_stride);
  if (dense_.add == Add::addend)
    copied_bytes_[kAddend] = close_result(dense_, dense_.addend_type, dense_.addend_stride);
}

int64_t Product::scratch_bytes() const {
  int64_t bytes = own_scratch_bytes_;
  for (const int64_t copied : copied_bytes_) bytes += copied;
  return bytes;
}

void Product::create() const {
  for (const Step& step : steps_) cpu::create(*step.primitive);
}

std::byte* Product::copy_factor(const std::byte* from, Matrix matrix, std::byte* to) const {
  if (matrix == kA) {
    int64_t sizes[2] = {spec_.m, spec_.k};
    copy_lines(factor_lines(from, to, spec_.a_strides, dense_.a_strides, sizes, spec_.a_type));
  } else {
    int64_t sizes[2] = {spec_.k, spec_.n};
    copy_lines(factor_lines(from, to, spec_.b_strides, dense_.b_strides, sizes, spec_.b_type));
  }
  return to;
}

MatmulOperands Product::copy_in(const MatmulOperands& operands, std::byte* scratch,
                                ProductCopies& copies) const {
  MatmulOperands dense = operands;
  const auto take = [&](Matrix matrix) {
    std::byte* const taken = scratch;
    scratch += copied_bytes_[matrix];
    return taken;
  };
  const auto copy_rows = [&](std::byte* to, const std::byte* from, int64_t stride, DType type) {
    const int64_t size = base::size_of(type);
    copy_lines({to, spec_.n * size, from, stride * size, spec_.m, spec_.n * size});
  };
  if (copied_bytes_[kA] > 0) {
    dense.a = copy_factor(operands.a, kA, take(kA));
    copies.a = true;
  }
  if (copied_bytes_[kB] > 0) {
    dense.b = copy_factor(operands.b, kB, take(kB));
    copies.b = true;
  }
  if (copied_bytes_[kC] > 0) {
    dense.c = take(kC);
    if (spec_.add == Add::destination) copy_rows(dense.c, operands.c, spec_.c_stride, spec_.c_type);
  }
  if (copied_bytes_[kAddend] > 0) {
    std::byte* const to = take(kAddend);
    copy_rows(to, operands.addend, spec_.addend_stride, spec_.addend_type);
    dense.addend = to;
    copies.addend = true;
  }
  return dense;
}

RanProduct Product::multiply(const MatmulOperands& operands, std::byte* scratch,
                             CpuContext& context) const {
  if (algorithm_ == ProductAlgorithm::few_rows) {
    few_rows_product(spec_, operands, context);
    return {ProductAlgorithm::few_rows};
  }
  if (algorithm_ == ProductAlgorithm::blocked) {
    gemm(spec_, operands, scratch, context);
    return {ProductAlgorithm::blocked};
  }
  if (algorithm_ == ProductAlgorithm::library) return multiply_by_library(operands, scratch);
  if (algorithm_ == ProductAlgorithm::thin) {
    multiply_thin(spec_, operands, scratch, context);
    return {ProductAlgorithm::thin};
  }
  return {ProductAlgorithm::wide, multiply_wide(spec_, operands, scratch, context)};
}

RanProduct Product::multiply_by_library(const MatmulOperands& operands, std::byte* scratch) const {
  RanProduct ran{ProductAlgorithm::library};
  const MatmulOperands dense = copy_in(operands, scratch + own_scratch_bytes_, ran.copies);
  for (const Step& step : steps_) {
    MatmulOperands part = dense;
    part.a += step.begin * dense_.a_strides[1] * base::size_of(dense_.a_type);
    part.b += step.begin * dense_.b_strides[0] * base::size_of(dense_.b_type);
    execute(*step.primitive, part, scratch);
  }
  ran.step = ran_step(spec_, steps_.size() > 1 ? steps_[1].begin : spec_.k);
  if (copied_bytes_[kC] == 0) return ran;
  const int64_t size = base::size_of(spec_.c_type);
  copy_lines({operands.c, spec_.c_stride * size, dense.c, spec_.n * size, spec_.m, spec_.n * size});
  ran.copies.c = true;
  return ran;
}

MatrixLayout matrix_layout(const program::Tensor& tensor) {
  const program::Shape& shape = tensor.shape;
  SNUG_CHECK(shape.rank() == 1 || shape.rank() == 2, "{} {} is no matrix", tensor.name,
             to_string(shape));
  MatrixLayout layout{shape.rank() == 2 ? shape[0] : 1, shape.columns(), shape.columns(),
                      tensor.dtype};
  if (!tensor.is_view()) return layout;
  const auto last = static_cast<size_t>(shape.rank() - 1);
  SNUG_CHECK(tensor.view.strides[last] == 1 || layout.columns == 1,
             "the columns of {} have stride {}", tensor.name, tensor.view.strides[last]);
  if (layout.rows > 1) layout.row_stride = tensor.view.strides[0];
  return layout;
}

}  // namespace snug::backends::cpu
