// attention_sink_grad: what attention's sinks (attention.h) get. What q, k and v get needs no kind
// of its own: lse and o have the sinks in them, and attention_grad reads those.
#pragma once

#include <array>

#include "program/kinds/field.h"
#include "program/kinds/operands.h"
#include "program/kinds/traits.h"

namespace snug::program {

// reads: do, o (q_tokens, heads * head_dim), lse (heads, q_tokens), sinks (heads). writes: dsinks
// (heads): minus the sum over queries of exp(sink - lse) times the dot product of do and o. Queries
// outside all segments have an o of zeros, and so give nothing.
struct AttentionSinkGrad {
  bool operator==(const AttentionSinkGrad&) const = default;
  static constexpr std::tuple<> kFields{};
  static constexpr auto kDO = read<AttentionSinkGrad>(0, "do");
  static constexpr auto kO = read<AttentionSinkGrad>(1, "o");
  static constexpr auto kLse = read<AttentionSinkGrad>(2, "lse");
  static constexpr auto kSinks = read<AttentionSinkGrad>(3, "sinks");
  static constexpr auto kDSinks = write<AttentionSinkGrad>(4, "dsinks");
  static constexpr std::array kOperands{kDO, kO, kLse, kSinks, kDSinks};
};

}  // namespace snug::program
