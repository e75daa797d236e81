#include "program/kinds/product/matmul.h"
#include "backends/cuda/elementwise/kernels/elementwise.h"
#include "backends/cuda/kind_functions.h"
#include "backends/cuda/product/few_rows.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "backends/cuda/product/matmul_needs.h"
#include "backends/cuda/product/matrices.h"
#include "backends/cuda/product/tune_product.h"
#include "backends/operation_checks.h"
#include "base/error.h"

namespace snug::backends::cuda {
namespace {

using program::EdgedChoice;
using program::Matmul;
using program::OperationView;
using program::ProductAlgorithm;
using program::ProductChoice;
using program::ProductCount;

class PreparedMatmul : public Prepared {
 public:
  PreparedMatmul(const Matmul& matmul, const OperationView& view, CublasLt& library)
      : product_bytes_(product_bytes(matmul, view)),
        main_(library.product(main_shape(matmul, view))) {
    if (matmul.augmented) low_ = library.product(low_shape(matmul, view));
    check(matmul.choice.main.algorithm, main_->algorithm());
    if (low_ != nullptr) check(matmul.products.low, low_->algorithm());
    check_workspace(view, product_bytes_ + main_->workspace_bytes(), "cuBLASLt");
  }

  // Calls each(product, addresses, the library's scratch) for each product, in the order in which
  // they run.
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

  const Product& main() const { return *main_; }
  const Product* low() const { return low_.get(); }

 private:
  static void check(ProductAlgorithm planned, ProductAlgorithm possible) {
    SNUG_CHECK(planned == possible, "a product is planned by algorithm {}, and has {} here",
               base::word_of(planned), base::word_of(possible));
  }

  int64_t product_bytes_;
  std::shared_ptr<Product> main_;
  std::shared_ptr<Product> low_;  // an adapter's product, which runs first; null without one
};

void note(const Invocation& invocation, int32_t products, ProductAlgorithm algorithm,
          ProductAlgorithm low_algorithm) {
  invocation.note_decision<&Matmul::products>({products, low_algorithm});
  invocation.note_decision<&Matmul::choice, &EdgedChoice::main, &ProductChoice::algorithm>(
      algorithm);
}

void note_choices(const PreparedMatmul& prepared, const Invocation& invocation) {
  note_choice<&Matmul::choice, &EdgedChoice::main, &ProductChoice::algorithm>(prepared.main(),
                                                                              invocation);
  if (prepared.low() != nullptr)
    note_choice<&Matmul::products, &ProductCount::low>(*prepared.low(), invocation);
}

void run_few_rows(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  const Matrix y = matrix_of(invocation[Matmul::kC]);
  DeviceRows addend = matmul.accumulate ? y.operand : DeviceRows{};
  if (matmul.addend) addend = matrix_of(invocation[Matmul::kAddend]).operand;
  ProductAlgorithm low_algorithm = ProductAlgorithm::loops;
  if (matmul.augmented) {
    low_algorithm = multiply_few_rows(
        FewRowsProduct{matrix_of(invocation[Matmul::kLowA]), matrix_of(invocation[Matmul::kLowB]),
                       addend, y, matmul.low_alpha},
        matmul.products.low, context);
    addend = y.operand;
  }
  FewRowsProduct product = product_of(matmul, invocation);
  product.addend = addend;
  const ProductAlgorithm algorithm =
      multiply_few_rows(product, matmul.choice.main.algorithm, context);
  note(invocation, matmul.augmented ? 2 : 1, algorithm, low_algorithm);
}

std::unique_ptr<Prepared> prepare(const Matmul& matmul, const OperationView& view,
                                  CudaContext& context) {
  const auto& [block_rows, main, rest] = matmul.choice;
  SNUG_CHECK(matmul.products.count == (matmul.augmented ? 2 : 1) && block_rows == 0 &&
                 main.sum_step == 0 && rest.sum_step == 0,
             "a matmul of {} products in blocks of {} rows and steps of {} and {}, which a card "
             "does not run",
             matmul.products.count, block_rows, main.sum_step, rest.sum_step);
  SNUG_CHECK(rest.algorithm == ProductAlgorithm::loops &&
                 (matmul.augmented || matmul.products.low == ProductAlgorithm::loops),
             "a matmul with algorithms for products that it does not have: {} of low rank, {} of "
             "the last rows",
             base::word_of(matmul.products.low), base::word_of(rest.algorithm));
  SNUG_CHECK(!copies_operands(matmul), "a matmul that copies its operands, as no card does");
  if (!is_of_few_rows(main.algorithm))
    return std::make_unique<PreparedMatmul>(matmul, view, context.cublas_lt);
  const bool low_fits =
      !matmul.augmented ||
      allows_few_rows(matmul.products.low, view[Matmul::kLowA], view[Matmul::kLowB]);
  SNUG_CHECK(has_few_rows(matmul, view) && low_fits &&
                 allows_few_rows(main.algorithm, view[Matmul::kA], view[Matmul::kB]),
             "a matmul by algorithm {}, which does not compute it here",
             base::word_of(main.algorithm));
  return nullptr;
}

void tune(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  if (invocation.prepared == nullptr) return;
  static_cast<const PreparedMatmul&>(*invocation.prepared)
      .for_each(matmul, invocation, [&](Product& product, const auto& addresses, void* scratch) {
        tune_product(product, addresses, {scratch, context.stream.get()}, context.cublas_lt);
      });
}

void run(const Matmul& matmul, const Invocation& invocation, CudaContext& context) {
  if (is_of_few_rows(matmul.choice.main.algorithm))
    return run_few_rows(matmul, invocation, context);
  const auto& prepared = static_cast<const PreparedMatmul&>(*invocation.prepared);
  int32_t products = 0;
  prepared.for_each(matmul, invocation,
                    [&](const Product& product, const auto& addresses, void* scratch) {
                      product.multiply(addresses, scratch, context.stream.get());
                      ++products;
                    });
  const Product* low = prepared.low();
  note(invocation, products, prepared.main().algorithm(),
       low != nullptr ? low->algorithm() : ProductAlgorithm::loops);
  note_choices(prepared, invocation);
  if (!matmul.stochastic) return;
  const Matrix sum = matrix_of(invocation[Matmul::kC]);
  add_rounded({.walk = walk_rows({&sum}),
               .x = {invocation.workspace.data, sum.columns},
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
