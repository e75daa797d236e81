#include "backends/cpu/elementwise/kernels/elementwise.h"

#include "backends/cpu/elementwise/kernels/gelu_gate.h"
#include "backends/cpu/kernels/element_table.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/random_lanes.h"
#include "backends/cpu/kernels/tanh.h"

namespace snug::backends::cpu::SNUG_ISA {
namespace {

template <typename X, typename Y>
void convert(const void* x_bytes, void* y_bytes, int64_t n) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) { store(y + i, load(x + i, part), part); });
}

template <typename A, typename B, typename C>
void add(const void* a_bytes, const void* b_bytes, void* c_bytes, int64_t n) {
  const A* a = static_cast<const A*>(a_bytes);
  const B* b = static_cast<const B*>(b_bytes);
  C* c = static_cast<C*>(c_bytes);
  for_each_lanes(
      n, [=](int64_t i, auto part) { store(c + i, load(a + i, part) + load(b + i, part), part); });
}

// Rounds sixteen or fewer elements of a rounding block, starting at its lane `lane`.
template <typename X>
void accumulate_lanes(const X* x, uint16_t* y, int64_t n, Uint16Lanes bits, int64_t lane) {
  float wide[2 * kLanes] = {};
  store(wide, load_partial(x, n, 0.0F) + load_partial(y, n, 0.0F));
  uint32_t drawn[2 * kLanes] = {};
  __builtin_memcpy(drawn, &bits, sizeof bits);
  __builtin_memcpy(&bits, drawn + lane, sizeof bits);
  const Half16Lanes half = round_stochastically(load(wide), bits);
  __builtin_memcpy(y, &half, static_cast<uint64_t>(n) * sizeof(uint16_t));
}

template <typename X>
void accumulate_stochastically(const void* x_bytes, uint16_t* y, int64_t n,
                               const RoundingStream& stream_of_all) {
  const X* x = static_cast<const X*>(x_bytes);
  const RoundingStream stream = stream_of_all;  // a local copy, which y cannot alias
  constexpr int64_t kBlock = 128;
  for (int64_t done = 0; done < n;) {
    const int64_t element = stream.first + done;
    const RoundingLanes drawn = rounding_lanes(stream.key, 0, element / kBlock);
    const int64_t end = element - element % kBlock + kBlock - stream.first;
    while (done < n && done < end) {
      const int64_t within = (stream.first + done) % kBlock;
      const int64_t lane = within % kLanes;
      int64_t count = kLanes - lane;
      if (count > n - done) count = n - done;
      const Uint16Lanes bits = drawn.bits[within / kLanes];
      if (count == kLanes) {
        const Half16Lanes half = round_stochastically(load(x + done) + load(y + done), bits);
        __builtin_memcpy(y + done, &half, sizeof half);
      } else {
        accumulate_lanes(x + done, y + done, count, bits, lane);
      }
      done += count;
    }
  }
}

template <typename X>
void sum_rows(const void* x_bytes, int64_t stride, int64_t rows, int64_t columns, float* sums) {
  const X* x = static_cast<const X*>(x_bytes);
  for_each_lanes(columns, [=](int64_t i, auto part) { store(sums + i, load(x + i, part), part); });
  // Rows are read in order; taking two at a time halves the memory traffic of the sums.
  int64_t row = 1;
  for (; row + 2 <= rows; row += 2)
    for_each_lanes(columns, [=](int64_t i, auto part) {
      const X* first = x + row * stride + i;
      store(sums + i, load(sums + i, part) + (load(first, part) + load(first + stride, part)),
            part);
    });
  if (row < rows)
    for_each_lanes(columns, [=](int64_t i, auto part) {
      store(sums + i, load(sums + i, part) + load(x + row * stride + i, part), part);
    });
}

template <typename Y>
void add_partials(const Partials& partials, bool accumulate, void* y_bytes, int64_t n) {
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    Float16Lanes sum = {};
    for (int64_t k = 0; k < partials.count; ++k)
      sum += load(partials.data + k * partials.stride + i, part);
    if (accumulate) sum += load(y + i, part);
    store(y + i, sum, part);
  });
}

// Calls apply(i, bits, part) for the elements of a row, with the random bits of each: those of a
// stream are a function of its key, its row and its position in the row.
template <typename Stream, typename Apply>
void for_each_random_lanes(const Stream& stream, int64_t n, const Apply& apply) {
  constexpr int64_t kBlock = 64;
  for (int64_t block = 0; block * kBlock < n; ++block) {
    const uint32_t counter[3] = {static_cast<uint32_t>(block * 16), stream.position, stream.row};
    const PhiloxLanes words = philox(counter, stream.key);
    const int64_t first = block * kBlock;
    const int64_t left = n - first < kBlock ? n - first : kBlock;
    for_each_lanes(left,
                   [&](int64_t i, auto part) { apply(first + i, words.word[i / kLanes], part); });
  }
}

template <typename X, typename Y>
void dropout(const void* x_bytes, void* y_bytes, int64_t n, const DropoutStream& stream_of_all) {
  const DropoutStream stream = stream_of_all;  // a local copy, which y cannot alias
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_random_lanes(stream, n, [&](int64_t i, const Uint16Lanes& bits, auto part) {
    const Int16Lanes keep = bits >= Uint16Lanes{} + stream.threshold;
    store(y + i, select(keep, load(x + i, part) * stream.scale, Float16Lanes{}), part);
  });
}

template <typename X, typename Y>
void add_noise(const void* x_bytes, void* y_bytes, int64_t n, const NoiseStream& stream_of_all) {
  const NoiseStream stream = stream_of_all;  // a local copy, which y cannot alias
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_random_lanes(stream, n, [&](int64_t i, const Uint16Lanes& bits, auto part) {
    const Float16Lanes unit = lanes_as<Float16Lanes>((bits >> 9) | 0x40000000U) - 3.0F;
    store(y + i, load(x + i, part) + unit * stream.scale, part);
  });
}

template <typename X, typename Y>
void scale(const void* x_bytes, void* y_bytes, int64_t n, float factor) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) { store(y + i, load(x + i, part) * factor, part); });
}

// NaN stays NaN.
template <typename X, typename Y>
void relu(const void* x_bytes, void* y_bytes, int64_t n) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes v = load(x + i, part);
    store(y + i, select(v < Float16Lanes{}, Float16Lanes{}, v), part);
  });
}

template <typename DY, typename Y, typename DX>
void relu_grad(const void* dy_bytes, const void* y_bytes, void* dx_bytes, int64_t n) {
  const DY* dy = static_cast<const DY*>(dy_bytes);
  const Y* y = static_cast<const Y*>(y_bytes);
  DX* dx = static_cast<DX*>(dx_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Int16Lanes passes = load(y + i, part) > Float16Lanes{};
    store(dx + i, select(passes, load(dy + i, part), Float16Lanes{}), part);
  });
}

template <typename X, typename Y>
void softcap(const void* x_bytes, void* y_bytes, int64_t n, float cap) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  const float inverse = 1.0F / cap;
  for_each_lanes(n, [=](int64_t i, auto part) {
    store(y + i, tanh(load(x + i, part) * inverse) * cap, part);
  });
}

template <typename DY, typename Y, typename DX>
void softcap_grad(const void* dy_bytes, const void* y_bytes, void* dx_bytes, int64_t n, float cap) {
  const DY* dy = static_cast<const DY*>(dy_bytes);
  const Y* y = static_cast<const Y*>(y_bytes);
  DX* dx = static_cast<DX*>(dx_bytes);
  const float inverse = 1.0F / cap;
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes share = load(y + i, part) * inverse;
    store(dx + i, load(dy + i, part) * (1.0F - share * share), part);
  });
}

// exp(x) - 1 - x for x of at most 0; close to 0, where the difference would cancel, the series.
SNUG_INLINE Float16Lanes exp_above_line(Float16Lanes x) {
  Float16Lanes p = splat(1.0F / 40320.0F);
  p = p * x + 1.0F / 5040.0F;
  p = p * x + 1.0F / 720.0F;
  p = p * x + 1.0F / 120.0F;
  p = p * x + 1.0F / 24.0F;
  p = p * x + 1.0F / 6.0F;
  p = p * x + 0.5F;
  return select(x > splat(-0.5F), p * x * x, exp(x) - 1.0F - x);
}

// With m = min(x, epsilon): exp(m) - 1 - x = (exp(m) - 1 - m) + (m - x).
template <typename X, typename Y>
void xielu(const void* x_bytes, void* y_bytes, int64_t n, const XieluFactors& given) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  const XieluFactors by = given;  // a local copy, which y cannot alias
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes v = load(x + i, part);
    const Float16Lanes m = minimum(splat(by.epsilon), v);
    const Float16Lanes below = by.negative * (exp_above_line(m) + (m - v));
    const Float16Lanes bent = select(v > Float16Lanes{}, by.positive * v * v, below);
    store(y + i, bent + by.beta * v, part);
  });
}

template <typename DY, typename X, typename DX>
void xielu_grad(const void* dy_bytes, const void* x_bytes, void* dx_bytes, int64_t n,
                const XieluFactors& given) {
  const DY* dy = static_cast<const DY*>(dy_bytes);
  const X* x = static_cast<const X*>(x_bytes);
  DX* dx = static_cast<DX*>(dx_bytes);
  const XieluFactors by = given;  // a local copy, which dx cannot alias
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes v = load(x + i, part);
    const Float16Lanes m = minimum(splat(by.epsilon), v);
    const Float16Lanes below = select(v < splat(by.epsilon), exp_above_line(m) + m, splat(-1.0F));
    const Float16Lanes slope =
        select(v > Float16Lanes{}, 2.0F * by.positive * v, by.negative * below);
    store(dx + i, load(dy + i, part) * (slope + by.beta), part);
  });
}

template <typename Gate, typename X, typename Y>
void gelu(const void* x_bytes, void* y_bytes, int64_t n) {
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes v = load(x + i, part);
    store(y + i, v * Gate::at(v).factor, part);
  });
}

template <typename Gate, typename DY, typename X, typename DX>
void gelu_grad(const void* dy_bytes, const void* x_bytes, void* dx_bytes, int64_t n) {
  const DY* dy = static_cast<const DY*>(dy_bytes);
  const X* x = static_cast<const X*>(x_bytes);
  DX* dx = static_cast<DX*>(dx_bytes);
  for_each_lanes(n, [=](int64_t i, auto part) {
    const Float16Lanes v = load(x + i, part);
    const GeluGate gate = Gate::at(v);
    store(dx + i, load(dy + i, part) * (gate.factor + v * gate.slope), part);
  });
}

}  // namespace

extern const ElementwiseKernels kElementwiseKernels;
const ElementwiseKernels kElementwiseKernels = {
    .convert = SNUG_BY_TWO_ELEMENTS(convert),
    .add = SNUG_BY_THREE_ELEMENTS(add),
    .accumulate_stochastically = {accumulate_stochastically<float>,
                                  accumulate_stochastically<uint16_t>, nullptr},
    .sum_rows = SNUG_BY_ELEMENT(sum_rows),
    .add_partials = SNUG_BY_ELEMENT(add_partials),
    .scale = SNUG_BY_TWO_ELEMENTS(scale),
    .relu = SNUG_BY_TWO_ELEMENTS(relu),
    .relu_grad = SNUG_BY_THREE_ELEMENTS(relu_grad),
    .softcap = SNUG_BY_TWO_ELEMENTS(softcap),
    .softcap_grad = SNUG_BY_THREE_ELEMENTS(softcap_grad),
    .dropout = SNUG_BY_TWO_ELEMENTS(dropout),
    .gelu = {SNUG_BY_TWO_ELEMENTS(gelu, NormalGate), SNUG_BY_TWO_ELEMENTS(gelu, TanhGate)},
    .gelu_grad = {SNUG_BY_THREE_ELEMENTS(gelu_grad, NormalGate),
                  SNUG_BY_THREE_ELEMENTS(gelu_grad, TanhGate)},
    .add_noise = SNUG_BY_TWO_ELEMENTS(add_noise),
    .xielu = SNUG_BY_TWO_ELEMENTS(xielu),
    .xielu_grad = SNUG_BY_THREE_ELEMENTS(xielu_grad),
};

}  // namespace snug::backends::cpu::SNUG_ISA
