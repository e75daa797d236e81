// The algorithms of products: of matrices, of the logits of a loss, of experts and of stored codes.
#pragma once

#include <cstdint>

#include "base/words.h"

namespace snug::program {

// What computes a product. A target decides it, and a backend runs it or refuses it in prepare().
enum class ProductAlgorithm : uint8_t {
  loops,                  // one sum after the other: the reference, and what was not lowered
  few_rows,               // an own kernel that reads b once for all rows of a, which are few
  few_rows_tensor_cores,  // the same on tensor cores
  blocked,                // an own kernel in f32 that works in tiles
  blocked_tensor_cores,   // an own kernel on tensor cores that works in tiles
  thin,                   // an own kernel for products with one small dimension
  wide,                   // an own kernel on the processor's matrix tiles
  library,                // the vendor's library
  timed,                  // the faster of library and thin, timed once before the first step
};
constexpr auto words_of(ProductAlgorithm /*type*/) {
  return base::words<ProductAlgorithm>(
      {{ProductAlgorithm::loops, "loops"},
       {ProductAlgorithm::few_rows, "few_rows"},
       {ProductAlgorithm::few_rows_tensor_cores, "few_rows_tensor_cores"},
       {ProductAlgorithm::blocked, "blocked"},
       {ProductAlgorithm::blocked_tensor_cores, "blocked_tensor_cores"},
       {ProductAlgorithm::thin, "thin"},
       {ProductAlgorithm::wide, "wide"},
       {ProductAlgorithm::library, "library"},
       {ProductAlgorithm::timed, "timed"}});
}

}  // namespace snug::program
