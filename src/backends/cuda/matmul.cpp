#include "backends/cuda/kernels/few_rows.h"

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/needs/matmul.h"
#include "backends/cuda/product.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::Matmul;
using program::OperationView;

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
