#include "backends/cpu/kernels/elementwise.h"

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/random_lanes.h"

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

// Sixteen or fewer elements of a rounding block, from its lane `lane` on.
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
  const RoundingStream stream = stream_of_all;  // a copy that y cannot alias
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
  // Rows are read as they lie; two at a time halve the traffic of the sums.
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

template <typename X, typename Y>
void dropout(const void* x_bytes, void* y_bytes, int64_t n, const DropoutStream& stream_of_all) {
  const DropoutStream stream = stream_of_all;  // a copy that y cannot alias
  const X* x = static_cast<const X*>(x_bytes);
  Y* y = static_cast<Y*>(y_bytes);
  constexpr int64_t kBlock = 64;
  for (int64_t block = 0; block * kBlock < n; ++block) {
    const uint32_t counter[3] = {static_cast<uint32_t>(block * 16), stream.position, stream.row};
    const PhiloxLanes words = philox(counter, stream.key);
    const int64_t first = block * kBlock;
    const int64_t left = n - first < kBlock ? n - first : kBlock;
    const auto apply = [&](int64_t i, auto part) {
      const Int16Lanes keep = words.word[i / kLanes] >= Uint16Lanes{} + stream.threshold;
      const Float16Lanes kept = load(x + first + i, part) * stream.scale;
      store(y + first + i, select(keep, kept, Float16Lanes{}), part);
    };
    for_each_lanes(left, apply);
  }
}

// gelu(x) = x factor, gelu'(x) = factor + x slope.
struct GeluGate {
  Float16Lanes factor, slope;
};

SNUG_INLINE Float16Lanes magnitude(Float16Lanes x) { return select(x < Float16Lanes{}, -x, x); }

// The normal distribution function Phi and its density. With a = |x|, Phi(-a) = exp(-a^2 / 2) t
// P(t) where t = 1 / (1 + 0.35 a): P is the polynomial of degree 8 whose largest relative error on
// 0 <= a <= 13.5 is smallest, 3.2e-8; exp is 0 from 13.2 on. The factor is within 3e-7, and where x
// lies in [-4, 0], where it is small, within 1e-6 of itself; factor + x slope is within 3e-7.
struct NormalGate {
  SNUG_INLINE GeluGate at(Float16Lanes x) {
    const Float16Lanes a = minimum(splat(16.0F), magnitude(x));
    const Float16Lanes e = exp(-0.5F * a * a);
    const Float16Lanes t = reciprocal(1.0F + 0.35F * a);
    Float16Lanes p = splat(-0.0291261505F);
    p = p * t + 0.143873587F;
    p = p * t - 0.255507261F;
    p = p * t + 0.158932239F;
    p = p * t - 0.0229390636F;
    p = p * t + 0.105433702F;
    p = p * t + 0.11985226F;
    p = p * t + 0.13985911F;
    p = p * t + 0.139621571F;
    const Float16Lanes tail = e * (t * p);
    constexpr float kDensityAtZero = 0.398942280F;  // 1 / sqrt(2 pi)
    return {select(x < Float16Lanes{}, tail, 1.0F - tail), e * kDensityAtZero};
  }
};

// (1 + tanh(u)) / 2 is the sigmoid of 2 u = sqrt(8 / pi) (x + 0.044715 x^3), and with
// e = exp(-2 |u|) its slope is (2 u)' e / (1 + e)^2, which cancels nothing. Beyond 16 the sigmoid
// is 0 or 1. The factor is within 3e-7, in [-4, 0] within 2e-6 of itself, the sum within 4e-7.
struct TanhGate {
  SNUG_INLINE GeluGate at(Float16Lanes x) {
    constexpr float kLinear = 1.59576912F;  // sqrt(8 / pi)
    constexpr float kCubic = 1.59576912F * 0.044715F;
    const Float16Lanes a = minimum(splat(16.0F), magnitude(x));
    const Float16Lanes e = exp(-a * (kLinear + kCubic * a * a));
    const Float16Lanes r = reciprocal(1.0F + e);
    const Float16Lanes slope = (kLinear + 3.0F * kCubic * a * a) * (e * r * r);
    return {select(x < Float16Lanes{}, e * r, r), slope};
  }
};

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

#define SNUG_BY_Y(function, ...) \
  { function<__VA_ARGS__, float>, function<__VA_ARGS__, uint16_t> }

#define SNUG_BY_X_AND_Y(function, ...) \
  { SNUG_BY_Y(function, __VA_ARGS__, float), SNUG_BY_Y(function, __VA_ARGS__, uint16_t) }

extern const ElementwiseKernels kElementwiseKernels;
const ElementwiseKernels kElementwiseKernels = {
    .convert = {SNUG_BY_Y(convert, float), SNUG_BY_Y(convert, uint16_t)},
    .add = {{SNUG_BY_Y(add, float, float), SNUG_BY_Y(add, float, uint16_t)},
            {SNUG_BY_Y(add, uint16_t, float), SNUG_BY_Y(add, uint16_t, uint16_t)}},
    .accumulate_stochastically = {accumulate_stochastically<float>,
                                  accumulate_stochastically<uint16_t>},
    .sum_rows = {sum_rows<float>, sum_rows<uint16_t>},
    .add_partials = {add_partials<float>, add_partials<uint16_t>},
    .dropout = {SNUG_BY_Y(dropout, float), SNUG_BY_Y(dropout, uint16_t)},
    .gelu = {SNUG_BY_X_AND_Y(gelu, NormalGate), SNUG_BY_X_AND_Y(gelu, TanhGate)},
    .gelu_grad = {{SNUG_BY_X_AND_Y(gelu_grad, NormalGate, float),
                   SNUG_BY_X_AND_Y(gelu_grad, NormalGate, uint16_t)},
                  {SNUG_BY_X_AND_Y(gelu_grad, TanhGate, float),
                   SNUG_BY_X_AND_Y(gelu_grad, TanhGate, uint16_t)}},
};

}  // namespace snug::backends::cpu::SNUG_ISA
