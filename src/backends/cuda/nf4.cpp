#include "backends/cuda/kernels/nf4.h"

#include "backends/cuda/kernels/few_rows.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

// The operands of a stored weight, from its codes on.
StoredNf4 stored_weight(std::span<const Buffer> operands, bool nested) {
  StoredNf4 stored{.codes = bytes_of(operands[0])};
  constexpr uintptr_t kWordBytes = 4;
  SNUG_CHECK(reinterpret_cast<uintptr_t>(stored.codes) % kWordBytes == 0,
             "the codes of a weight do not lie at a multiple of {}", kWordBytes);
  if (!nested) {
    stored.absmax = floats_of(operands[1]);
    return stored;
  }
  stored.absmax_codes = bytes_of(operands[1]);
  stored.nested_absmax = floats_of(operands[2]);
  stored.nested_map = floats_of(operands[3]);
  stored.nested_offset = floats_of(operands[4]);
  return stored;
}

}  // namespace

void run(const program::DequantizeNf4& dequantize, const Invocation& invocation,
         CudaContext& context) {
  Matrix w = matrix_of(invocation.writes[0]);
  const Walk walk = walk_flat({&w});
  dequantize_nf4({walk, stored_weight(invocation.reads, dequantize.nested), w.operand},
                 context.stream.get());
}

void run(const program::MatmulNf4& matmul, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix y = matrix_of(invocation.writes[0]);
  multiply_few_rows_nf4({.inputs = walk_rows({&x}),
                         .outputs = y.columns,
                         .x = x.operand,
                         .weight = stored_weight(invocation.reads.subspan(1), matmul.nested),
                         .y = y.operand},
                        context.stream.get());
}

}  // namespace snug::backends::cuda
