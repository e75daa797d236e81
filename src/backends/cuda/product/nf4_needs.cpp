#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cuda {
namespace {

// Other products are expanded: dequantising the weight, then a product of many rows.
bool supports(const program::MatmulNf4&, const OperationView& view, const Card&) {
  const program::Tensor& x = view[program::MatmulNf4::kX];
  return x.shape.columns() % program::kNf4BlockSize == 0 &&
         are_few_rows(x.shape.rows(), few_rows_nf4_algorithm(x, view[program::MatmulNf4::kCodes]),
                      true);
}

program::MatmulNf4 decide(const program::MatmulNf4& matmul, const OperationView& view,
                          const Card&) {
  program::MatmulNf4 decided = matmul;
  decided.algorithm =
      few_rows_nf4_algorithm(view[program::MatmulNf4::kX], view[program::MatmulNf4::kCodes]);
  return decided;
}

}  // namespace

SNUG_CARD_NEEDS(MatmulNf4, .supports = supports, .decide = decide,
                .launched_together = few_rows_together);
SNUG_CARD_NEEDS(DequantizeNf4);

}  // namespace snug::backends::cuda
