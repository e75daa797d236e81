#include "backends/cuda/product/thin_product.h"

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/product/matrices.h"

namespace snug::backends::cuda {
namespace {

DeviceRows operand_of(const StoredMatrix& matrix) {
  return {nullptr, matrix.stride, format_of(matrix.dtype)};
}

}  // namespace

std::optional<ThinRun> thin_form(const ProductShape& shape) {
  if (!is_thin_product(shape)) return std::nullopt;
  const int64_t m = shape.c.rows;
  const int64_t n = shape.c.columns;
  ThinRun run;
  run.depth = shape.transpose_a ? shape.a.rows : shape.a.columns;
  run.addend = operand_of(shape.addend);
  run.result = operand_of(shape.c);
  run.alpha = shape.alpha;
  run.beta = shape.beta;
  run.across = shape.transpose_a;
  run.small_by_depth = !shape.transpose_b;
  run.result_by_thin = is_result_by_thin(shape);
  run.wide = run.result_by_thin ? n : m;
  run.thin = run.result_by_thin ? m : n;
  run.large = operand_of(run.result_by_thin ? shape.b : shape.a);
  run.small = operand_of(run.result_by_thin ? shape.a : shape.b);
  return run;
}

ThinRun thin_run(const ThinRun& form, const Product::Addresses& addresses, void* workspace,
                 int64_t multiprocessors, int64_t bytes) {
  ThinRun run = form;
  run.large.data = const_cast<void*>(run.result_by_thin ? addresses.b : addresses.a);
  run.small.data = const_cast<void*>(run.result_by_thin ? addresses.a : addresses.b);
  run.addend.data = const_cast<void*>(addresses.addend);
  run.result.data = addresses.c;
  run.parts = thin_parts(run.wide, run.depth, run.thin, multiprocessors, bytes);
  run.partial_sums = static_cast<float*>(workspace);
  return run;
}

}  // namespace snug::backends::cuda
