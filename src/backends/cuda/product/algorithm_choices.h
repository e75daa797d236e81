// Which algorithm each product takes, once timed, and the text that carries the
// choices to a later run: the order of a sum, and so its last bits, is the algorithm's.
//
// The text is JSON: {"format", "chosen_on": the card and the library's version,
// "workspace_bytes", "products": [{"shape", "algorithm": the library's 64 opaque bytes in hex or
// the own kernel's name, "microseconds"}]}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "backends/cuda/library/cublas_lt_api.h"
#include "backends/cuda/product/product_shape.h"

namespace snug::backends::cuda {

// A way to make a product.
struct Algorithm {
  bool is_own = false;                // the kernel for thin products; else the library's:
  cublasLtMatmulAlgo_t of_library{};  // opaque, 64 bytes
};

class AlgorithmChoices {
 public:
  // The choices hold only where they were made: on a card of this name and size, with this version
  // of the library, in a workspace of so many bytes.
  AlgorithmChoices(std::string chosen_on, int64_t workspace_bytes)
      : chosen_on_(std::move(chosen_on)), workspace_bytes_(workspace_bytes) {}

  // Null where none was made. Valid until the next keep() or take().
  const Algorithm* find(const ProductShape& shape) const;
  void keep(const ProductShape& shape, const Algorithm& algorithm, double seconds);

  // The text for a later run: all choices, those that were taken from an earlier one too. It is
  // empty without any.
  std::string text() const;
  // Takes the choices of a text that text() made. Returns why they do not hold here, a sentence
  // that names `file`; then none is taken. Empty where all are.
  std::string take(std::string_view text, const std::string& file);

 private:
  struct Choice {
    Algorithm algorithm;
    double seconds;
  };
  std::string chosen_on_;
  int64_t workspace_bytes_;
  std::map<std::string, Choice> choices_;  // by the shape's text
};

}  // namespace snug::backends::cuda
