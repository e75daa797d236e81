// What a gated product does with its gate.
#pragma once

namespace snug::backends {

// The two forms of gelu are those of the kind gelu; `none` multiplies by the gate itself.
enum class GateActivation { sigmoid, silu, gelu, gelu_tanh, none };
inline constexpr int kGateActivations = 5;

}  // namespace snug::backends
