// silu_mul: the gated activation silu(gate) * up (SwiGLU, Shazeer 2020).
#pragma once

#include "program/kinds/field.h"

namespace snug::program {

// reads: gate, up (tokens, ff). writes: y = gate * sigmoid(gate) * up.
struct SiluMul {
  bool operator==(const SiluMul&) const = default;
  static constexpr std::tuple<> kFields{};
};

// reads: dy, gate, up. writes: dgate, dup, which may share the bytes of gate and up.
struct SiluMulGrad {
  bool operator==(const SiluMulGrad&) const = default;
  static constexpr std::tuple<> kFields{};
};

}  // namespace snug::program
