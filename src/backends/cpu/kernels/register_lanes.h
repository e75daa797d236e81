// Sixteen lanes as registers of eight (AVX) or four (SSE) lanes, for kernel files only. With gcc
// 12, a 64-byte vector that fits in no register goes through the stack with every operation and is
// compared lane by lane; this type works one register at a time. It has the operators of such a
// vector: between lanes, or lanes and one element, and comparisons that give lanes of all ones or
// zeros.
#pragma once

#include <cstdint>
#include <type_traits>

namespace snug::backends::cpu::SNUG_ISA {

#define SNUG_INLINE static inline __attribute__((always_inline))

constexpr int64_t kLanes = 16;

// The number of 32-bit lanes in a register.
#if defined(__AVX512F__)
constexpr int64_t kRegisterLanes = 16;
#elif defined(__AVX__)
constexpr int64_t kRegisterLanes = 8;
#else
constexpr int64_t kRegisterLanes = 4;
#endif
constexpr int64_t kRegisters = kLanes / kRegisterLanes;

template <typename Element>
struct VectorTypes {
  typedef Element Register __attribute__((vector_size(kRegisterLanes * sizeof(Element))));
  typedef Element Whole __attribute__((vector_size(kLanes * sizeof(Element))));
};
// Vectors of as many elements as a register has lanes, and of all sixteen elements.
template <typename Element>
using RegisterOf = typename VectorTypes<Element>::Register;
template <typename Element>
using WholeOf = typename VectorTypes<Element>::Whole;

template <typename Element>
struct LanesOf {
  RegisterOf<Element> part[kRegisters];

  Element operator[](int64_t lane) const {
    return part[lane / kRegisterLanes][lane % kRegisterLanes];
  }
};

#define SNUG_LANES_BINARY(op, Result)                                                   \
  template <typename Element>                                                           \
  SNUG_INLINE Result operator op(LanesOf<Element> a, LanesOf<Element> b) {              \
    Result result;                                                                      \
    for (int64_t i = 0; i < kRegisters; ++i) result.part[i] = a.part[i] op b.part[i];   \
    return result;                                                                      \
  }                                                                                     \
  template <typename Element>                                                           \
  SNUG_INLINE Result operator op(LanesOf<Element> a, std::type_identity_t<Element> b) { \
    Result result;                                                                      \
    for (int64_t i = 0; i < kRegisters; ++i) result.part[i] = a.part[i] op b;           \
    return result;                                                                      \
  }                                                                                     \
  template <typename Element>                                                           \
  SNUG_INLINE Result operator op(std::type_identity_t<Element> a, LanesOf<Element> b) { \
    Result result;                                                                      \
    for (int64_t i = 0; i < kRegisters; ++i) result.part[i] = a op b.part[i];           \
    return result;                                                                      \
  }
#define SNUG_LANES_ARITHMETIC(op)                                              \
  SNUG_LANES_BINARY(op, LanesOf<Element>)                                      \
  template <typename Element, typename Other>                                  \
  SNUG_INLINE LanesOf<Element>& operator op##=(LanesOf<Element>& a, Other b) { \
    a = a op b;                                                                \
    return a;                                                                  \
  }

SNUG_LANES_ARITHMETIC(+)
SNUG_LANES_ARITHMETIC(-)
SNUG_LANES_ARITHMETIC(*)
SNUG_LANES_ARITHMETIC(/)
SNUG_LANES_ARITHMETIC(&)
SNUG_LANES_ARITHMETIC(|)
SNUG_LANES_ARITHMETIC(^)
SNUG_LANES_ARITHMETIC(<<)
SNUG_LANES_ARITHMETIC(>>)
SNUG_LANES_BINARY(<, LanesOf<int32_t>)
SNUG_LANES_BINARY(>, LanesOf<int32_t>)
SNUG_LANES_BINARY(<=, LanesOf<int32_t>)
SNUG_LANES_BINARY(>=, LanesOf<int32_t>)
SNUG_LANES_BINARY(==, LanesOf<int32_t>)
SNUG_LANES_BINARY(!=, LanesOf<int32_t>)
#undef SNUG_LANES_ARITHMETIC
#undef SNUG_LANES_BINARY

template <typename Element>
SNUG_INLINE LanesOf<Element> operator-(LanesOf<Element> x) {
  for (int64_t i = 0; i < kRegisters; ++i) x.part[i] = -x.part[i];
  return x;
}

template <typename Element>
SNUG_INLINE LanesOf<Element> operator~(LanesOf<Element> x) {
  for (int64_t i = 0; i < kRegisters; ++i) x.part[i] = ~x.part[i];
  return x;
}

template <typename Element>
SNUG_INLINE LanesOf<Element> select(LanesOf<int32_t> mask, LanesOf<Element> yes,
                                    LanesOf<Element> no) {
  LanesOf<Element> result;
  for (int64_t i = 0; i < kRegisters; ++i) result.part[i] = mask.part[i] ? yes.part[i] : no.part[i];
  return result;
}

// The larger value in each lane; b if either is NaN.
SNUG_INLINE LanesOf<float> maximum(LanesOf<float> a, LanesOf<float> b) {
  return select(a > b, a, b);
}
SNUG_INLINE LanesOf<float> minimum(LanesOf<float> a, LanesOf<float> b) {
  return select(a < b, a, b);
}

// Loads, stores and casts also go one register at a time, since copying all bytes at once would
// keep them in memory.
template <typename Element>
SNUG_INLINE LanesOf<Element> load_lanes(const Element* x) {
  LanesOf<Element> lanes;
  for (int64_t i = 0; i < kRegisters; ++i)
    __builtin_memcpy(&lanes.part[i], x + i * kRegisterLanes, sizeof lanes.part[i]);
  return lanes;
}
template <typename Element>
SNUG_INLINE void store_lanes(Element* out, LanesOf<Element> lanes) {
  for (int64_t i = 0; i < kRegisters; ++i)
    __builtin_memcpy(out + i * kRegisterLanes, &lanes.part[i], sizeof lanes.part[i]);
}
template <typename To, typename From>
SNUG_INLINE LanesOf<To> cast_lanes(LanesOf<From> lanes) {
  LanesOf<To> result;
  for (int64_t i = 0; i < kRegisters; ++i)
    result.part[i] = __builtin_bit_cast(RegisterOf<To>, lanes.part[i]);
  return result;
}

// Widens narrower integers to lanes, and narrows lanes to their lowest bits.
template <typename Narrow>
SNUG_INLINE LanesOf<uint32_t> widened(const Narrow& all) {
  using Part = RegisterOf<std::remove_cvref_t<decltype(all[0])>>;
  LanesOf<uint32_t> lanes;
  for (int64_t i = 0; i < kRegisters; ++i) {
    Part part;
    __builtin_memcpy(&part, reinterpret_cast<const char*>(&all) + i * int64_t{sizeof part},
                     sizeof part);
    lanes.part[i] = __builtin_convertvector(part, RegisterOf<uint32_t>);
  }
  return lanes;
}
template <typename Narrow>
SNUG_INLINE Narrow narrowed(LanesOf<uint32_t> lanes) {
  Narrow all = {};
  using Part = RegisterOf<std::remove_cvref_t<decltype(all[0])>>;
  for (int64_t i = 0; i < kRegisters; ++i) {
    const Part part = __builtin_convertvector(lanes.part[i], Part);
    __builtin_memcpy(reinterpret_cast<char*>(&all) + i * int64_t{sizeof part}, &part, sizeof part);
  }
  return all;
}

}  // namespace snug::backends::cpu::SNUG_ISA
