#include "backends/cpu/optimizer/kernels/adafactor.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// Clears lanes beyond the end, each of which would add an epsilon.
SNUG_INLINE Float16Lanes present(Float16Lanes x, Whole) { return x; }
SNUG_INLINE Float16Lanes present(Float16Lanes x, Part part) {
  float all[kLanes];
  store(all, x);
  return load_partial(all, part.count, 0.0F);
}

template <typename G>
float sum_squares_and_columns(const void* gradient_bytes, float factor, float epsilon,
                              float* columns, int64_t n) {
  const G* gradient = static_cast<const G*>(gradient_bytes);
  Float16Lanes sum = {};
  for_each_lanes(n, [&](int64_t i, auto part) {
    const Float16Lanes g = load(gradient + i, part) * factor;
    const Float16Lanes square = present(g * g + epsilon, part);
    store(columns + i, load(columns + i, part) + square, part);
    sum += square;
  });
  return reduce_add(sum);
}

void advance_columns(const AdafactorColumns& columns) {
  for_each_lanes(columns.n, [&](int64_t i, auto part) {
    const Float16Lanes square = load(columns.squares + i, part) * columns.of_square;
    const Float16Lanes state =
        load(columns.state + i, part) * columns.keep + square * columns.share;
    store(columns.state + i, state, part);
    store(columns.inverse + i, 1.0F / square_root(state), part);
  });
}

template <typename G>
float size_of_update(const AdafactorRow& row) {
  const G* gradient = static_cast<const G*>(row.gradient);
  Float16Lanes sum = {};
  for_each_lanes(row.n, [&](int64_t i, auto part) {
    const Float16Lanes update = load(gradient + i, part) * row.scale * load(row.inverse + i, part);
    sum += update * update;
  });
  return reduce_add(sum);
}

template <typename G, typename W>
void step_adafactor(const AdafactorRow& row, const AdafactorTarget& target) {
  const G* gradient = static_cast<const G*>(row.gradient);
  W* weight = static_cast<W*>(target.weight);
  float* master = target.master;
  for_each_lanes(row.n, [&](int64_t i, auto part) {
    const Float16Lanes update = load(gradient + i, part) * row.scale * load(row.inverse + i, part);
    const Float16Lanes next = load(master + i, part) * target.keep - update;
    store(master + i, next, part);
    if constexpr (sizeof(W) != sizeof(float)) store(weight + i, next, part);
  });
}

}  // namespace

extern const AdafactorKernels kAdafactorKernels;
const AdafactorKernels kAdafactorKernels = {
    .sum_squares = SNUG_BY_ELEMENT(sum_squares_and_columns),
    .advance_columns = advance_columns,
    .size_of_update = SNUG_BY_ELEMENT(size_of_update),
    .step = SNUG_BY_TWO_ELEMENTS(step_adafactor),
};

}  // namespace snug::backends::cpu::SNUG_ISA
