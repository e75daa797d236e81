// The last step of a product with f32 sums.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/product/onednn_matmul.h"
#include "backends/cpu/rows.h"

namespace snug::backends::cpu {

// The outputs [begin, end) of a row.
struct RowPart {
  int64_t row;
  int64_t begin;
  int64_t end;
};

// c = sums [+ addend], rounded once.
inline void finish_row(const MatmulSpec& spec, const MatmulOperands& operands, const RowPart& part,
                       const float* sums, const ElementwiseKernels& kernels) {
  const auto at = [&](auto* data, base::DType type, int64_t stride) {
    return data + (part.row * stride + part.begin) * base::size_of(type);
  };
  const int64_t count = part.end - part.begin;
  const Element element = element_of(spec.c_type);
  std::byte* const c = at(operands.c, spec.c_type, spec.c_stride);
  switch (spec.add) {
    case MatmulSpec::Add::nothing:
      return kernels.convert[kF32][element](sums, c, count);
    case MatmulSpec::Add::destination:
      return kernels.add[kF32][element][element](sums, c, c, count);
    case MatmulSpec::Add::addend:
      return kernels.add[kF32][element_of(spec.addend_type)][element](
          sums, at(operands.addend, spec.addend_type, spec.addend_stride), c, count);
  }
}

}  // namespace snug::backends::cpu
