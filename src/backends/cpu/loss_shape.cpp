#include "backends/cpu/loss_shape.h"

#include <cstring>

#include "backends/cpu/softmax_rows.h"

namespace snug::backends::cpu {

int64_t list_trained_rows(const LossShape& shape, const int32_t* targets, float* losses,
                          const Rows& dhidden, int32_t* row_numbers) {
  int64_t trained = 0;
  for (int64_t t = 0; t < shape.tokens; ++t) {
    if (targets[t] >= 0) {
      checked_target(targets[t], shape.vocab);
      row_numbers[trained++] = static_cast<int32_t>(t);
      continue;
    }
    losses[t] = 0;
    if (shape.train)
      std::memset(dhidden.at(t), 0, static_cast<size_t>(dhidden.columns * dhidden.element_bytes()));
  }
  return trained;
}

}  // namespace snug::backends::cpu
