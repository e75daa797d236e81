#include "backends/cuda/needs/matmul.h"
#include "backends/cuda/few_rows.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/matrices.h"
#include "backends/cuda/tune_product.h"

namespace snug::backends::cuda {
namespace {

using program::Matmul;
using program::OperationView;

StoredMatrix result_matrix(const Matmul& matmul, const OperationView& view) {
  const StoredMatrix c = stored_matrix(view[Matmul::kC]);
  return matmul.stochastic ? dense_matrix(base::DType::f32, c.rows, c.columns) : c;
}

// The product that comes first, which reads the addend or what c holds before.
ProductShape first_shape(const Matmul& matmul, const OperationView& view) {
  ProductShape shape;
  shape.c = result_matrix(matmul, view);
  shape.beta = matmul.addend || (matmul.accumulate && !matmul.stochastic) ? 1.0F : 0.0F;
  shape.addend = matmul.addend ? stored_matrix(view[Matmul::kAddend]) : shape.c;
  return shape;
}

ProductShape main_shape(const Matmul& matmul, const OperationView& view) {
  ProductShape shape = first_shape(matmul, view);
  shape.a = stored_matrix(view[Matmul::kA]);
  shape.b = stored_matrix(view[Matmul::kB]);
  shape.transpose_a = matmul.transpose_a;
  shape.transpose_b = matmul.transpose_b;
  shape.alpha = matmul.alpha;
  if (!matmul.augmented) return shape;
  shape.addend = shape.c;
  shape.beta = 1.0F;
  return shape;
}

ProductShape low_shape(const Matmul& matmul, const OperationView& view) {
  ProductShape shape = first_shape(matmul, view);
  shape.a = stored_matrix(view[Matmul::kLowA]);
  shape.b = stored_matrix(view[Matmul::kLowB]);
  shape.transpose_b = matmul.low_transpose_b;
  shape.alpha = matmul.low_alpha;
  return shape;
}

class PreparedMatmul : public Prepared {
 public:
  PreparedMatmul(const Matmul& matmul, const OperationView& view, CublasLt& library)
      : product_bytes_(product_bytes(matmul, view)),
        main_(library.product(main_shape(matmul, view))) {
    if (matmul.augmented) low_ = library.product(low_shape(matmul, view));
  }

  // Calls each(product, addresses, the library's scratch) in the order in which they run.
  template <typename F>
  void for_each(const Matmul& matmul, const Invocation& invocation, const F& each) const {
    const Buffer& c = invocation[Matmul::kC];
    std::byte* const scratch = invocation.workspace.data;
    Product::Addresses addresses{
        .a = invocation[Matmul::kA].data,
        .b = invocation[Matmul::kB].data,
        .addend = matmul.addend ? invocation[Matmul::kAddend].data : c.data,
        .c = matmul.stochastic ? scratch : c.data};
    if (low_ != nullptr) {
      Product::Addresses low = addresses;
      low.a = invocation[Matmul::kLowA].data;
      low.b = invocation[Matmul::kLowB].data;
      each(*low_, low, scratch + product_bytes_);
      addresses.addend = addresses.c;
    }
    each(*main_, addresses, scratch + product_bytes_);
  }

 private:
  int64_t product_bytes_;
  std::shared_ptr<Product> main_;
  std::shared_ptr<Product> low_;  // of an adapter, run first; null without one
};

void run_few_rows(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  const Matrix y = matrix_of(invocation[Matmul::kC]);
  Operand addend = matmul.accumulate ? y.operand : Operand{};
  if (matmul.addend) addend = matrix_of(invocation[Matmul::kAddend]).operand;
  int64_t products = 0;
  const auto multiply = [&](const Matrix& x, const Matrix& weight, float alpha) {
    ++products;
    multiply_few_rows(FewRowsProduct{x, weight, addend, y, alpha}, context);
    addend = y.operand;
  };
  if (matmul.augmented)
    multiply(matrix_of(invocation[Matmul::kLowA]), matrix_of(invocation[Matmul::kLowB]),
             matmul.low_alpha);
  multiply(matrix_of(invocation[Matmul::kA]), matrix_of(invocation[Matmul::kB]), matmul.alpha);
  invocation.note_decision("products", products);
}

std::unique_ptr<Prepared> prepare(const Matmul& matmul, const OperationView& view,
                                  CudaContext& context) {
  if (has_few_rows(matmul, view)) return nullptr;
  return std::make_unique<PreparedMatmul>(matmul, view, context.cublas_lt);
}

void tune(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  if (invocation.prepared == nullptr) return;
  static_cast<const PreparedMatmul&>(*invocation.prepared)
      .for_each(matmul, invocation, [&](Product& product, const auto& addresses, void* scratch) {
        tune_product(product, addresses, {scratch, context.stream.get()}, context.cublas_lt);
      });
}

void run(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  if (invocation.prepared == nullptr) return run_few_rows(matmul, invocation, context);
  int64_t products = 0;
  static_cast<const PreparedMatmul&>(*invocation.prepared)
      .for_each(matmul, invocation,
                [&](const Product& product, const auto& addresses, void* scratch) {
                  product.multiply(addresses, scratch, context.stream.get());
                  ++products;
                });
  invocation.note_decision("products", products);
  if (!matmul.stochastic) return;
  const Matrix sum = matrix_of(invocation[Matmul::kC]);
  add_rounded({.walk = walk_rows({&sum}),
               .x = {invocation.workspace.data, sum.columns, false},
               .y = sum.operand,
               .key = {matmul.seed, matmul.site, integers_of(invocation[Matmul::kRandom])}},
              context.stream.get());
}

void run_together(const Matmul&, std::span<const Invocation> list, CudaContext& context) {
  run_few_rows_together(list, context);
}

}  // namespace

SNUG_CUDA_KIND(Matmul, .run_together = run_together, .prepare = prepare, .tune = tune);

}  // namespace snug::backends::cuda
