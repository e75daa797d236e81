#include "backends/cuda/product/kernels/nf4.h"

#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/few_rows.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "backends/cuda/product/matrices.h"
#include "base/error.h"
#include "program/kinds/product/grouped_matmul.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cuda {

using program::DequantizeNf4;
using program::MatmulNf4;

template <typename Attributes>
Nf4Weight nf4_weight(const Attributes& attributes, const Invocation& invocation) {
  const Buffer& absmax = invocation[Attributes::kAbsmax];
  Nf4Weight stored{.codes = bytes_of(invocation[Attributes::kCodes])};
  if (!attributes.nested) {
    stored.absmax = floats_of(absmax);
    return stored;
  }
  stored.absmax_codes = bytes_of(absmax);
  stored.nested_absmax = floats_of(invocation[Attributes::kNestedAbsmax]);
  stored.nested_map = floats_of(invocation[Attributes::kNestedMap]);
  stored.nested_offset = floats_of(invocation[Attributes::kNestedOffset]);
  return stored;
}

template Nf4Weight nf4_weight(const MatmulNf4& attributes, const Invocation& invocation);
template Nf4Weight nf4_weight(const program::GroupedMatmul& attributes,
                              const Invocation& invocation);

namespace {

// Kernels read codes as words. The arena's address is a multiple of more than a word, so the
// offsets of the view decide whether that is possible.
template <typename Attributes>
void check_codes(const program::OperationView& view) {
  constexpr int64_t kWordBytes = 4;
  SNUG_CHECK(view[Attributes::kCodes].view.offset % kWordBytes == 0,
             "the codes of a weight do not lie at a multiple of {}", kWordBytes);
}

std::unique_ptr<Prepared> prepare(const DequantizeNf4&, const program::OperationView& view,
                                  CudaContext&) {
  check_codes<DequantizeNf4>(view);
  return nullptr;
}

void run(const DequantizeNf4& dequantize, const Invocation& invocation, CudaContext& context) {
  Matrix w = matrix_of(invocation[DequantizeNf4::kW]);
  const Walk walk = walk_flat({&w});
  dequantize_nf4({walk, nf4_weight(dequantize, invocation), w.operand}, context.stream.get());
}

std::unique_ptr<Prepared> prepare(const MatmulNf4& matmul, const program::OperationView& view,
                                  CudaContext&) {
  check_codes<MatmulNf4>(view);
  const auto best = few_rows_nf4_algorithm(view[MatmulNf4::kX], view[MatmulNf4::kCodes]);
  const bool is_known =
      matmul.algorithm == best || matmul.algorithm == program::ProductAlgorithm::few_rows;
  SNUG_CHECK(is_known && are_few_rows(view[MatmulNf4::kX].shape.rows(), matmul.algorithm, true),
             "a product with a stored weight by algorithm {}, which does not compute it here",
             base::word_of(matmul.algorithm));
  return nullptr;
}

void run(const MatmulNf4& matmul, const Invocation& invocation, CudaContext& context) {
  invocation.note_decision<&MatmulNf4::algorithm>(
      multiply_few_rows(product_of(matmul, invocation), matmul.algorithm, context));
}

void run_together(const MatmulNf4&, std::span<const Invocation> list, CudaContext& context) {
  run_few_rows_together(list, context);
}

}  // namespace

SNUG_CUDA_KIND(DequantizeNf4, .prepare = prepare);
SNUG_CUDA_KIND(MatmulNf4, .run_together = run_together, .prepare = prepare);

}  // namespace snug::backends::cuda
