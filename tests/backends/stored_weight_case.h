// The operands of a weight that is stored as NF4, for cases of operations.
#pragma once

#include <vector>

#include "operation_case.h"
#include "program/kinds/product/nf4.h"

namespace snug::backends::test {

inline std::vector<program::TensorId> stored_weight(CaseBuilder& builder, int64_t elements,
                                                    bool nested) {
  const int64_t blocks = program::nf4_blocks(elements);
  Random& random = builder.random();
  const int64_t bytes = program::nf4_code_bytes(elements);
  const program::TensorId codes =
      builder.input({bytes, 1}, program::DType::u8, integers(random, bytes, 0, 255));
  if (!nested) return {codes, builder.measure({blocks}, normal(random, blocks, 0.5, 0.1))};
  const int64_t nested_blocks = program::nf4_nested_blocks(elements);
  return {codes, builder.input({blocks}, program::DType::u8, integers(random, blocks, 0, 255)),
          builder.measure({nested_blocks}, normal(random, nested_blocks, 0.5, 0.1)),
          builder.measure({256}, normal(random, 256)), builder.measure({1}, {0.25})};
}

}  // namespace snug::backends::test
