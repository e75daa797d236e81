// The meaning of every kind: run<T>(attributes, invocation), computed in T = float or double. It is
// in an anonymous namespace of the file of the kind's group, which lists it at its end;
// program/kinds/ describes what a kind means.
//
//   SNUG_REFERENCE_KIND(RmsNormGrad, .scratch_elements = scratch_elements);
#pragma once

#include <type_traits>

#include "backends/invocation.h"

namespace snug::backends::reference {

template <typename Struct>
struct KindMeaning {
  void (*run_in_float)(const Struct&, const Invocation&);
  void (*run_in_double)(const Struct&, const Invocation&);
  // The size of the scratch, in elements of T. Null: none.
  int64_t (*scratch_elements)(const Struct&, const program::OperationView&) = nullptr;
};

// The meaning of a kind, defined in its file.
template <typename Struct>
struct MeaningOf {
  static const KindMeaning<Struct> kDefined;
};

#define SNUG_KIND(Struct, name) \
  template <>                   \
  const KindMeaning<program::Struct> MeaningOf<program::Struct>::kDefined;
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

#define SNUG_REFERENCE_KIND(Struct, ...)                                                \
  template <>                                                                           \
  const KindMeaning<program::Struct> MeaningOf<program::Struct>::kDefined {             \
    .run_in_float = run<float>, .run_in_double = run<double> __VA_OPT__(, ) __VA_ARGS__ \
  }

template <typename T, typename Struct>
void run_kind(const Struct& attributes, const Invocation& invocation) {
  const KindMeaning<Struct>& kind = MeaningOf<Struct>::kDefined;
  if constexpr (std::is_same_v<T, double>)
    kind.run_in_double(attributes, invocation);
  else
    kind.run_in_float(attributes, invocation);
}

}  // namespace snug::backends::reference
