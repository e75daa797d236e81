// Mlps with a gate and without.
#include <vector>

#include "base/error.h"
#include "models/forward/forward_builder.h"
#include "program/kinds/elementwise/gelu.h"
#include "program/kinds/elementwise/gelu_mul.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/silu_mul.h"
#include "program/kinds/elementwise/xielu.h"

namespace snug::models {

using namespace program;  // NOLINT: this file speaks the program's words throughout

TensorId ForwardBuilder::gated_hidden(TensorId x, const GatedMlp& by, const std::string& prefix) {
  const Projections& projections = by.gate_up;
  const std::string gate = prefix + "gate";
  const std::string up = prefix + "up";
  const std::vector<const char*> names{gate.c_str(), up.c_str()};
  const std::vector<TensorId> both =
      projections.is_fused()
          ? split(linear(x, projections.whole(), prefix + "gate_up"), projections, names)
          : project(x, projections, names);
  const TensorId gated = activation(prefix + "gated", by.down.in);
  switch (by.activation) {
    case Activation::silu:
      builder_.emit(SiluMul{}, {both[0], both[1]}, {gated});
      break;
    case Activation::gelu:
    case Activation::gelu_tanh:
      builder_.emit(GeluMul{.tanh = by.activation == Activation::gelu_tanh}, {both[0], both[1]},
                    {gated});
      break;
    case Activation::relu:
    case Activation::xielu:
      SNUG_CHECK(false, "a gated mlp of an activation that has no gate: {}", by.down.module);
  }
  return gated;
}

TensorId ForwardBuilder::mlp(TensorId x, const GatedMlp& by) {
  return linear(gated_hidden(x, by, ""), by.down, "mlp_output");
}

TensorId ForwardBuilder::mlp(TensorId x, const Mlp& by) {
  SNUG_CHECK(by.activation != Activation::silu, "a plain mlp of silu: {}", by.up.module);
  const TensorId up = linear(x, by.up, "up");
  const TensorId activated = activation("activated", by.down.in);
  if (by.activation == Activation::xielu)
    builder_.emit(Xielu{},
                  {up, weight(by.learned + ".alpha_p"), weight(by.learned + ".alpha_n"),
                   weight(by.learned + ".beta"), weight(by.learned + ".eps")},
                  {activated});
  else if (by.activation == Activation::relu)
    builder_.emit(Relu{}, {up}, {activated});
  else
    builder_.emit(Gelu{.tanh = by.activation == Activation::gelu_tanh}, {up}, {activated});
  return linear(activated, by.down, "mlp_output");
}

}  // namespace snug::models
