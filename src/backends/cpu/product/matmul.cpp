#include <algorithm>
#include <optional>

#include "backends/cpu/kind_functions.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product/product.h"
#include "backends/formulas/random_bits.h"
#include "base/error.h"
#include "program/kinds/product/matmul.h"
#include "program/verify/verify_regions.h"

namespace snug::backends::cpu {
namespace {

using program::EdgedChoice;
using program::Matmul;
using program::ProductChoice;

// A stochastically rounded product is computed in fp32 in the workspace, some rows at a time, and
// then added: this size keeps the rows in the second-level cache in between.
constexpr int64_t kRoundedBytes = int64_t{1} << 20;

// Whether the addend is the previous content of c: lowering made c a view of it.
bool adds_to_destination(const program::OperationView& view) {
  const program::TensorId addend = id_of(view.operation, Matmul::kAddend);
  const program::TensorId c = id_of(view.operation, Matmul::kC);
  if (view.program.are_same_place(addend, c)) return true;
  SNUG_CHECK(!overlap(region_of(view.program, addend), region_of(view.program, c)),
             "an addend of another layout shares bytes of c");
  return false;
}

MatmulSpec spec_of(const Matmul& matmul, const program::OperationView& view) {
  const MatrixLayout a = matrix_layout(view[Matmul::kA]);
  const MatrixLayout b = matrix_layout(view[Matmul::kB]);
  const MatrixLayout c = matrix_layout(view[Matmul::kC]);
  MatmulSpec spec{.m = c.rows, .n = c.columns, .k = matmul.transpose_a ? a.rows : a.columns};
  spec.a_type = a.dtype;
  spec.b_type = b.dtype;
  spec.c_type = c.dtype;
  spec.a_strides[0] = matmul.transpose_a ? 1 : a.row_stride;
  spec.a_strides[1] = matmul.transpose_a ? a.row_stride : 1;
  spec.b_strides[0] = matmul.transpose_b ? 1 : b.row_stride;
  spec.b_strides[1] = matmul.transpose_b ? b.row_stride : 1;
  spec.c_stride = c.row_stride;
  spec.alpha = matmul.alpha;
  if (matmul.accumulate || (matmul.addend && adds_to_destination(view))) {
    spec.add = MatmulSpec::Add::destination;
  } else if (matmul.addend) {
    const MatrixLayout addend = matrix_layout(view[Matmul::kAddend]);
    spec.add = MatmulSpec::Add::addend;
    spec.addend_type = addend.dtype;
    spec.addend_stride = addend.row_stride;
  }
  if (matmul.augmented) {
    const MatrixLayout low_a = matrix_layout(view[Matmul::kLowA]);
    const MatrixLayout low_b = matrix_layout(view[Matmul::kLowB]);
    spec.low = {.k = low_a.columns, .a_stride = low_a.row_stride, .alpha = matmul.low_alpha};
    spec.low.b_strides[0] = matmul.low_transpose_b ? 1 : low_b.row_stride;
    spec.low.b_strides[1] = matmul.low_transpose_b ? low_b.row_stride : 1;
  }
  return spec;
}

// The rows that a stochastically rounded product computes at once.
int64_t block_rows_of(const MatmulSpec& spec) {
  const int64_t fitting = kRoundedBytes / (spec.n * static_cast<int64_t>(sizeof(float)));
  const int64_t rows = std::clamp<int64_t>(fitting / 16 * 16, 16, std::max<int64_t>(spec.m, 16));
  return std::min(rows, spec.m);
}

// The product of some rows, in fp32 and without gaps.
MatmulSpec some_rows_of(MatmulSpec spec, int64_t rows) {
  spec.m = rows;
  spec.c_type = base::DType::f32;
  spec.c_stride = spec.n;
  spec.add = MatmulSpec::Add::nothing;
  return spec;
}

// What a matmul keeps between runs, as its attributes say. A stochastic one is cut into blocks of
// rows and a rest.
class PreparedMatmul : public Prepared {
 public:
  PreparedMatmul(const Matmul& matmul, const program::OperationView& view,
                 const CpuContext& context)
      : spec_(spec_of(matmul, view)) {
    SNUG_CHECK(matmul.products.count == 1 && (matmul.choice.block_rows > 0) == matmul.stochastic &&
                   matmul.products.low == ProductAlgorithm::loops,
               "a matmul of {} products in blocks of {} rows, which the cpu backend does not run",
               matmul.products.count, matmul.choice.block_rows);
    const bool has_rest = matmul.stochastic && spec_.m % matmul.choice.block_rows != 0;
    SNUG_CHECK(has_rest || matmul.choice.rest == ProductChoice{},
               "a matmul with last rows by algorithm {}, of which there are none",
               base::word_of(matmul.choice.rest.algorithm));
    const ProductChoice& main = matmul.choice.main;
    spec_.step = main.sum_step;
    if (!matmul.stochastic) {
      whole_.emplace(spec_, main.algorithm, context);
      check_copies(matmul);
      return;
    }
    block_rows_ = matmul.choice.block_rows;
    whole_.emplace(some_rows_of(spec_, block_rows_), main.algorithm, context);
    if (has_rest) {
      MatmulSpec rest = some_rows_of(spec_, spec_.m % block_rows_);
      rest.step = matmul.choice.rest.sum_step;
      rest_.emplace(rest, matmul.choice.rest.algorithm, context);
    }
    check_copies(matmul);
  }

  void create() const {
    whole_->create();
    if (rest_) rest_->create();
  }
  int64_t workspace_bytes() const {
    const int64_t rest = rest_ ? rest_->scratch_bytes() : 0;
    return product_bytes() + std::max(whole_->scratch_bytes(), rest);
  }
  // The size of the fp32 rows, which come before the product's scratch.
  int64_t product_bytes() const {
    return whole_lines(block_rows_ * spec_.n * static_cast<int64_t>(sizeof(float)));
  }
  const MatmulSpec& spec() const { return spec_; }
  int64_t block_rows() const { return block_rows_; }
  const Product& product(int64_t rows) const {
    return block_rows_ == 0 || rows == block_rows_ ? *whole_ : *rest_;
  }

 private:
  void check_copies(const Matmul& matmul) const {
    ProductCopies needed = whole_->copies();
    if (rest_) needed |= rest_->copies();
    SNUG_CHECK(needed == matmul.dense,
               "a matmul by algorithm {} that copies other operands (a {}, b {}, addend {}, c {}) "
               "than have gaps",
               base::word_of(matmul.choice.main.algorithm), matmul.dense.a, matmul.dense.b,
               matmul.dense.addend, matmul.dense.c);
  }

  MatmulSpec spec_;
  int64_t block_rows_ = 0;  // 0 without stochastic rounding
  std::optional<Product> whole_;
  std::optional<Product> rest_;
};

void add_rounded(const float* sums, const RoundingStream& stream, const MatmulSpec& spec,
                 uint16_t* c, const CpuContext& context) {
  context.kernels.elementwise->accumulate_stochastically[kF32](sums, c, spec.n, stream);
}

// What computed a product: of all rows, of blocks of them, or of the rows after the last block.
template <auto rows>
void note(const Invocation& invocation, const RanProduct& ran) {
  invocation.note_decision<&Matmul::choice, rows, &ProductChoice::algorithm>(ran.algorithm);
  invocation.note_decision<&Matmul::choice, rows, &ProductChoice::sum_step>(ran.step);
}

void run_stochastic(const Matmul& matmul, const PreparedMatmul& prepared,
                    const Invocation& invocation, CpuContext& context) {
  const MatmulSpec& spec = prepared.spec();
  const auto* random = invocation[Matmul::kRandom].as<int32_t>();
  const base::PhiloxKey key = stream_key(
      {.seed = matmul.seed, .site = matmul.site, .step = random[0], .first_row = random[1]},
      RandomPurpose::rounding);
  const int64_t a_row_bytes = spec.a_strides[0] * base::size_of(spec.a_type);
  auto* c = invocation[Matmul::kC].as<uint16_t>();
  auto* sums = invocation.workspace.as<float>();
  std::byte* scratch = invocation.workspace.data + prepared.product_bytes();
  RanProduct of_blocks;
  std::optional<RanProduct> of_rest;
  int64_t most_rows = 0;
  for (int64_t row = 0; row < spec.m; row += prepared.block_rows()) {
    const int64_t rows = std::min(prepared.block_rows(), spec.m - row);
    const MatmulOperands operands{.a = invocation[Matmul::kA].data + row * a_row_bytes,
                                  .b = invocation[Matmul::kB].data,
                                  .c = invocation.workspace.data};
    const RanProduct ran = prepared.product(rows).multiply(operands, scratch, context);
    if (rows < most_rows)
      of_rest = ran;
    else
      of_blocks = ran;
    most_rows = std::max(most_rows, rows);
    parallel_ranges(rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        add_rounded(sums + i * spec.n, {{key[0], key[1]}, (row + i) * spec.n}, spec,
                    c + (row + i) * spec.c_stride, context);
    });
  }
  note<&EdgedChoice::main>(invocation, of_blocks);
  invocation.note_decision<&Matmul::choice, &EdgedChoice::block_rows>(most_rows);
  ProductCopies copies = of_blocks.copies;
  if (of_rest) {
    note<&EdgedChoice::rest>(invocation, *of_rest);
    copies |= of_rest->copies;
  }
  invocation.note_decision<&Matmul::dense>(copies);
}

const PreparedMatmul& prepared_of(const Invocation& invocation) {
  SNUG_CHECK(invocation.prepared != nullptr, "a matmul that was not prepared");
  return static_cast<const PreparedMatmul&>(*invocation.prepared);
}

void run(const Matmul& matmul, const Invocation& invocation, CpuContext& context) {
  const PreparedMatmul& prepared = prepared_of(invocation);
  if (matmul.stochastic) return run_stochastic(matmul, prepared, invocation, context);
  const Buffer& c = invocation[Matmul::kC];
  MatmulOperands operands{.a = invocation[Matmul::kA].data,
                          .b = invocation[Matmul::kB].data,
                          .c = c.data,
                          .addend = matmul.addend ? invocation[Matmul::kAddend].data : nullptr};
  if (matmul.augmented) {
    operands.low_a = invocation[Matmul::kLowA].data;
    operands.low_b = invocation[Matmul::kLowB].data;
  }
  const RanProduct ran =
      prepared.product(prepared.spec().m).multiply(operands, invocation.workspace.data, context);
  note<&EdgedChoice::main>(invocation, ran);
  invocation.note_decision<&Matmul::dense>(ran.copies);
}

bool supports(const Matmul& matmul, const program::OperationView& view, const CpuContext& context) {
  const base::DType c = view[Matmul::kC].dtype;
  if (matmul.augmented && !takes_low_rank(spec_of(matmul, view), context)) return false;
  return supports_product(view[Matmul::kA].dtype, view[Matmul::kB].dtype, c, context);
}

// What is fastest for a product, and in what steps.
ProductChoice choice_of(const MatmulSpec& spec, const CpuContext& context) {
  const ProductAlgorithm algorithm = algorithm_of(spec, context);
  return {algorithm, step_of(spec, algorithm)};
}

Matmul decide(const Matmul& matmul, const program::OperationView& view, const CpuContext& context) {
  const MatmulSpec spec = spec_of(matmul, view);
  Matmul decided = matmul;
  decided.products.count = 1;
  EdgedChoice& choice = decided.choice;
  if (!matmul.stochastic) {
    choice.main = choice_of(spec, context);
    decided.dense = copies_of(spec, choice.main.algorithm);
    return decided;
  }
  choice.block_rows = block_rows_of(spec);
  const MatmulSpec block = some_rows_of(spec, choice.block_rows);
  choice.main = choice_of(block, context);
  decided.dense = copies_of(block, choice.main.algorithm);
  const int64_t rest_rows = spec.m % choice.block_rows;
  if (rest_rows == 0) return decided;
  const MatmulSpec rest = some_rows_of(spec, rest_rows);
  choice.rest = choice_of(rest, context);
  decided.dense |= copies_of(rest, choice.rest.algorithm);
  return decided;
}

int64_t workspace_bytes(const Matmul& matmul, const program::OperationView& view,
                        const CpuContext& context) {
  return PreparedMatmul(matmul, view, context).workspace_bytes();
}

bool asks_library(const Matmul& matmul) {
  return matmul.choice.main.algorithm == ProductAlgorithm::library ||
         matmul.choice.rest.algorithm == ProductAlgorithm::library;
}

std::unique_ptr<Prepared> prepare(const Matmul& matmul, const program::OperationView& view,
                                  CpuContext& context) {
  auto prepared = std::make_unique<PreparedMatmul>(matmul, view, context);
  prepared->create();
  return prepared;
}

}  // namespace

SNUG_CPU_KIND(Matmul, .supports = supports, .decide = decide, .workspace_bytes = workspace_bytes,
              .asks_library = asks_library, .prepare = prepare);

}  // namespace snug::backends::cpu
