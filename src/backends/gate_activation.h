// What a gated product does with its gate.
#pragma once

namespace snug::backends {

// The two forms of gelu are those of the kind gelu.
enum class GateActivation { sigmoid, silu, gelu, gelu_tanh };
inline constexpr int kGateActivations = 4;

}  // namespace snug::backends
