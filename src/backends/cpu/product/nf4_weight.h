// A weight stored as NF4 (program/kinds/product/nf4.h), as kernels take it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/context.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/rows.h"
#include "backends/invocation.h"
#include "base/dtype.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::cpu {

// The weight operand of an operation in its stored form.
template <typename Kind>
Nf4Weight weight_of(const Kind& kind, const Invocation& invocation) {
  Nf4Weight weight{};
  weight.codes = invocation[Kind::kCodes].template as<const uint8_t>();
  weight.values = formats::kNf4Codes.data();
  if (!kind.nested) {
    weight.absmax = invocation[Kind::kAbsmax].template as<const float>();
    return weight;
  }
  weight.nested_codes = invocation[Kind::kAbsmax].template as<const uint8_t>();
  weight.nested_absmax = invocation[Kind::kNestedAbsmax].template as<const float>();
  weight.nested_map = invocation[Kind::kNestedMap].template as<const float>();
  weight.nested_offset = *invocation[Kind::kNestedOffset].template as<const float>();
  return weight;
}

// Writes the values of elements [first, first + count) to `to`, on all threads; `first` begins a
// block.
inline void dequantize_elements(const Nf4Weight& weight, int64_t first, int64_t count,
                                base::DType dtype, std::byte* to, const CpuContext& context) {
  static_assert(kElementsPerTask % program::kNf4BlockSize == 0);
  const auto values = context.kernels.nf4->dequantize[element_of(dtype)];
  const int64_t width = base::size_of(dtype);
  parallel_ranges(count, kElementsPerTask, [&](int64_t begin, int64_t end) {
    values(weight, first + begin, end - begin, to + begin * width);
  });
}

}  // namespace snug::backends::cpu
