// The slopes of attention with ALiBi, made once.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "backends/backend.h"
#include "base/error.h"
#include "program/kinds/attention.h"

namespace snug::backends::cpu {

// Of each head.
struct AlibiSlopes : Prepared {
  template <typename Attributes>
  explicit AlibiSlopes(const Attributes& attention) {
    for (int64_t head = 0; head < attention.heads; ++head)
      slopes.push_back(
          static_cast<float>(static_cast<double>(attention.alibi_scale) *
                             std::exp2(-program::alibi_exponent(attention.heads, head))));
  }
  std::vector<float> slopes;
};

template <typename Attributes>
std::unique_ptr<Prepared> prepare_slopes(const Attributes& attention) {
  if (attention.alibi_scale == 0.0F) return nullptr;
  return std::make_unique<AlibiSlopes>(attention);
}

// Of all heads; null without ALiBi.
template <typename Attributes>
const float* slopes_of(const Attributes& attention, const Invocation& invocation) {
  if (attention.alibi_scale == 0.0F) return nullptr;
  SNUG_CHECK(invocation.prepared != nullptr, "an attention with ALiBi that was not prepared");
  return static_cast<const AlibiSlopes&>(*invocation.prepared).slopes.data();
}

// Of the heads from `head` on.
inline const float* slopes_from(const float* slopes, int64_t head) {
  return slopes == nullptr ? nullptr : slopes + head;
}

}  // namespace snug::backends::cpu
