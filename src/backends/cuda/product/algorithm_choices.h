// The algorithm chosen by timing for each product, and the text that carries the choices to a later
// run: the algorithm determines the order of a sum, and so its last bits.
//
// The text is JSON: {"format", "chosen_on": the GPU and the library's version, "workspace_bytes",
// "products": [{"shape", "algorithm": the library's 64 opaque bytes in hex or the name of Snug's
// own kernel, "microseconds"}]}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "backends/cuda/library/cublas_lt_api.h"
#include "backends/cuda/product/product_shape.h"

namespace snug::backends::cuda {

// A way to compute a product.
struct Algorithm {
  bool is_own = false;                // Snug's own kernel for thin products; otherwise:
  cublasLtMatmulAlgo_t of_library{};  // opaque, 64 bytes
};

class AlgorithmChoices {
 public:
  // The choices are valid only where they were made: on a GPU with this name and size, with this
  // version of the library, and with this much workspace.
  AlgorithmChoices(std::string chosen_on, int64_t workspace_bytes)
      : chosen_on_(std::move(chosen_on)), workspace_bytes_(workspace_bytes) {}

  // Null where no choice was made. Valid until the next keep() or take().
  const Algorithm* find(const ProductShape& shape) const;
  void keep(const ProductShape& shape, const Algorithm& algorithm, double seconds);

  // The text for a later run: all choices, including those taken from an earlier run. Empty if
  // there are none.
  std::string text() const;
  // Takes the choices from a result of text(). If they are not valid here, takes none and returns
  // the reason as a sentence that names `file`; empty if all were taken.
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
