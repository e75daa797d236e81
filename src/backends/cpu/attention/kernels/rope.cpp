#include "backends/cpu/attention/kernels/rope.h"

#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

// Copies the elements of a head that are not rotated.
template <typename X>
SNUG_INLINE void copy_rest(const X* x, X* y, const RopeForm& form) {
  if (x == y) return;
  const int64_t rest = form.head_dim - form.width;
  if (rest > 0)
    __builtin_memcpy(y + form.width, x + form.width, static_cast<uint64_t>(rest) * sizeof(X));
}

template <typename X>
void rotate(const void* x_bytes, const float* table, void* y_bytes, const RopeForm& form) {
  const int64_t half = form.width / 2;
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
    copy_rest(x, y, form);
  }
}

// Separates sixteen pairs of adjacent elements, and joins them again.
struct Neighbours {
  Float16Lanes even, odd;  // joined: the first sixteen elements, and the next sixteen
};

SNUG_INLINE Neighbours split(Float16Lanes low, Float16Lanes high) {
  return {lanes_as<Float16Lanes>(__builtin_shufflevector(whole(low), whole(high), 0, 2, 4, 6, 8, 10,
                                                         12, 14, 16, 18, 20, 22, 24, 26, 28, 30)),
          lanes_as<Float16Lanes>(__builtin_shufflevector(whole(low), whole(high), 1, 3, 5, 7, 9, 11,
                                                         13, 15, 17, 19, 21, 23, 25, 27, 29, 31))};
}

SNUG_INLINE Neighbours join(Float16Lanes even, Float16Lanes odd) {
  return {
      lanes_as<Float16Lanes>(__builtin_shufflevector(whole(even), whole(odd), 0, 16, 1, 17, 2, 18,
                                                     3, 19, 4, 20, 5, 21, 6, 22, 7, 23)),
      lanes_as<Float16Lanes>(__builtin_shufflevector(whole(even), whole(odd), 8, 24, 9, 25, 10, 26,
                                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31))};
}

// Loads up to `count` of the next sixteen elements; `count` may be below 0 or above 16.
template <typename X>
SNUG_INLINE Float16Lanes load_up_to(const X* x, int64_t count) {
  if (count >= kLanes) return load(x);
  return count > 0 ? load_partial(x, count, 0.0F) : Float16Lanes{};
}
template <typename X>
SNUG_INLINE void store_up_to(X* y, Float16Lanes value, int64_t count) {
  if (count >= kLanes)
    store(y, value);
  else if (count > 0)
    store_partial(y, value, count);
}

template <typename X>
void rotate_neighbours(const void* x_bytes, const float* table, void* y_bytes,
                       const RopeForm& form) {
  const int64_t half = form.width / 2;
  const float direction = form.direction;
  for (int64_t head = 0; head < form.heads; ++head) {
    const X* x = static_cast<const X*>(x_bytes) + head * form.head_dim;
    X* y = static_cast<X*>(y_bytes) + head * form.head_dim;
    for_each_lanes(half, [=](int64_t i, auto part) {
      const Float16Lanes cosine = load(table + i, part);
      const Float16Lanes sine = load(table + half + i, part) * direction;
      const int64_t count = 2 * (half - i);
      const Neighbours pairs =
          split(load_up_to(x + 2 * i, count), load_up_to(x + 2 * i + kLanes, count - kLanes));
      const Neighbours rotated =
          join(pairs.even * cosine - pairs.odd * sine, pairs.odd * cosine + pairs.even * sine);
      store_up_to(y + 2 * i, rotated.even, count);
      store_up_to(y + 2 * i + kLanes, rotated.odd, count - kLanes);
    });
    copy_rest(x, y, form);
  }
}

}  // namespace

extern const RopeKernels kRopeKernels;
const RopeKernels kRopeKernels = {
    .rotate = SNUG_BY_ELEMENT(rotate),
    .rotate_neighbours = SNUG_BY_ELEMENT(rotate_neighbours),
};

}  // namespace snug::backends::cpu::SNUG_ISA
