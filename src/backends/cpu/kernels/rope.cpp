#include "backends/cpu/kernels/rope.h"

#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

template <typename X>
void turn(const void* x_bytes, const float* table, void* y_bytes, const RopeForm& form) {
  const int64_t half = form.head_dim / 2;
  const float direction = form.direction;
  for (int64_t head = 0; head < form.heads; ++head) {
    const X* x = static_cast<const X*>(x_bytes) + head * form.head_dim;
    X* y = static_cast<X*>(y_bytes) + head * form.head_dim;
    for_each_lanes(half, [=](int64_t i, auto part) {
      const Float16Lanes cosine = load(table + i, part);
      const Float16Lanes sine = load(table + half + i, part) * direction;
      const Float16Lanes first = load(x + i, part);
      const Float16Lanes second = load(x + half + i, part);
      store(y + i, first * cosine - second * sine, part);
      store(y + half + i, second * cosine + first * sine, part);
    });
  }
}

}  // namespace

extern const RopeKernels kRopeKernels;
const RopeKernels kRopeKernels = {.turn = {turn<float>, turn<uint16_t>}};

}  // namespace snug::backends::cpu::SNUG_ISA
