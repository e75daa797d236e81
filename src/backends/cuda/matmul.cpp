#include "backends/cuda/kernels/few_rows.h"

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/launch_shape.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/product.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::Matmul;
using program::OperationView;

const program::Tensor& result_of(const Matmul& matmul, const OperationView& view) {
  return matmul.accumulate ? view.update(0) : view.write(0);
}

// Decoding: y = x W^T of a few rows, bound by reading W once.
bool has_few_rows(const Matmul& matmul, const OperationView& view) {
  return matmul.transpose_b && !matmul.transpose_a && !matmul.accumulate &&
         view.read(0).shape[0] <= kFewRows;
}

// A stochastic sum leaves the product in f32 scratch, ahead of the library's own.
int64_t product_bytes(const Matmul& matmul, const OperationView& view) {
  if (!matmul.stochastic) return 0;
  constexpr int64_t kAlignment = 256;
  const int64_t bytes = result_of(matmul, view).shape.elements() * int64_t{sizeof(float)};
  return ceil_div(bytes, kAlignment) * kAlignment;
}

ProductShape shape_of(const Matmul& matmul, const OperationView& view) {
  ProductShape shape{
      .a = stored_matrix(view.read(0)),
      .b = stored_matrix(view.read(1)),
      .addend = {},
      .c = stored_matrix(result_of(matmul, view)),
      .transpose_a = matmul.transpose_a,
      .transpose_b = matmul.transpose_b,
      .alpha = matmul.alpha,
      .beta = matmul.addend || (matmul.accumulate && !matmul.stochastic) ? 1.0F : 0.0F};
  if (matmul.stochastic) shape.c = dense_matrix(base::DType::f32, shape.c.rows, shape.c.columns);
  shape.addend = matmul.addend ? stored_matrix(view.read(2)) : shape.c;
  return shape;
}

class PreparedMatmul : public Prepared {
 public:
  PreparedMatmul(std::shared_ptr<const Product> product, int64_t product_bytes)
      : product_(std::move(product)), product_bytes_(product_bytes) {}
  const Product& product() const { return *product_; }
  int64_t product_bytes() const { return product_bytes_; }

 private:
  std::shared_ptr<const Product> product_;
  int64_t product_bytes_;
};

void run_few_rows(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  const Matrix x = matrix_of(invocation.reads[0]);
  const Matrix weight = matrix_of(invocation.reads[1]);
  const Matrix y = matrix_of(invocation.writes[0]);
  multiply_few_rows({.inputs = walk_rows({&x, &weight}),
                     .outputs = y.columns,
                     .x = x.operand,
                     .weight = weight.operand,
                     .addend = matmul.addend ? matrix_of(invocation.reads[2]).operand : Operand{},
                     .y = y.operand,
                     .alpha = matmul.alpha},
                    context.stream.get());
}

}  // namespace

bool supports(const Matmul& matmul, const OperationView& view, const CudaContext&) {
  if (has_few_rows(matmul, view)) return true;
  const base::DType c = matmul.stochastic ? base::DType::f32 : result_of(matmul, view).dtype;
  const bool fits = supports_product(view.read(0).dtype, view.read(1).dtype, c);
  return fits && (!matmul.addend || view.read(2).dtype == c);
}

int64_t workspace_bytes(const Matmul& matmul, const OperationView& view,
                        const CudaContext& context) {
  if (has_few_rows(matmul, view)) return 0;
  return product_bytes(matmul, view) + context.cublas_lt.workspace_bytes();
}

std::unique_ptr<Prepared> prepare(const Matmul& matmul, const OperationView& view,
                                  CudaContext& context) {
  if (has_few_rows(matmul, view)) return nullptr;
  return std::make_unique<PreparedMatmul>(context.cublas_lt.product(shape_of(matmul, view)),
                                          product_bytes(matmul, view));
}

void run(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  if (invocation.prepared == nullptr) return run_few_rows(matmul, invocation, context);
  const auto& prepared = static_cast<const PreparedMatmul&>(*invocation.prepared);
  const Buffer& c = matmul.accumulate ? invocation.updates[0] : invocation.writes[0];
  std::byte* scratch = invocation.workspace.data;
  const Product::Addresses addresses{.a = invocation.reads[0].data,
                                     .b = invocation.reads[1].data,
                                     .addend = matmul.addend ? invocation.reads[2].data : c.data,
                                     .c = matmul.stochastic ? scratch : c.data};
  prepared.product().multiply(addresses, scratch + prepared.product_bytes(), context.stream.get());
  if (!matmul.stochastic) return;
  const Matrix sum = matrix_of(c);
  add_rounded({.walk = walk_rows({&sum}),
               .x = {scratch, sum.columns, false},
               .y = sum.operand,
               .key = {matmul.seed, matmul.site, integers_of(invocation.reads[2])}},
              context.stream.get());
}

}  // namespace snug::backends::cuda
