// Gated and plain activations, and softcap: splits operands into tasks and calls the kernels.
#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kind_functions.h"
#include "backends/cpu/rows.h"
#include "backends/gated_product.h"
#include "backends/operation_checks.h"
#include "program/kinds/elementwise/clamped_swiglu.h"
#include "program/kinds/elementwise/gelu.h"
#include "program/kinds/elementwise/relu.h"
#include "program/kinds/elementwise/softcap.h"
#include "program/kinds/elementwise/xielu.h"

namespace snug::backends::cpu {
namespace {

using program::ClampedSwiglu;
using program::ClampedSwigluGrad;
using program::Gelu;
using program::GeluGrad;
using program::Relu;
using program::ReluGrad;
using program::Softcap;
using program::SoftcapGrad;
using program::Xielu;
using program::XieluGrad;
using program::XieluSlope;

void run(const Relu&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Relu::kX]), rows_of(invocation[Relu::kY])};
  const auto forward = context.kernels.elementwise->relu[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n); });
}

void run(const ReluGrad&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[ReluGrad::kDY]), rows_of(invocation[ReluGrad::kY]),
                           rows_of(invocation[ReluGrad::kDX])};
  const auto backward = context.kernels.elementwise
                            ->relu_grad[tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n); });
}

void run(const Gelu& gelu, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Gelu::kX]), rows_of(invocation[Gelu::kY])};
  const auto forward =
      context.kernels.elementwise->gelu[gelu.tanh][tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n); });
}

void run(const GeluGrad& grad, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[GeluGrad::kDY]), rows_of(invocation[GeluGrad::kX]),
                           rows_of(invocation[GeluGrad::kDX])};
  const auto backward =
      context.kernels.elementwise
          ->gelu_grad[grad.tanh][tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n); });
}

float number_of(const Buffer& buffer) {
  const Rows rows = one_row_of(buffer);
  return value_at(rows.at(0), rows.element, 0);
}

// log(1 + exp(x)).
float softplus_of(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }

template <typename Struct>
XieluFactors factors_of(const Invocation& invocation) {
  const float beta = number_of(invocation[Struct::kBeta]);
  return {softplus_of(number_of(invocation[Struct::kAlphaP])),
          beta + softplus_of(number_of(invocation[Struct::kAlphaN])), beta,
          number_of(invocation[Struct::kEpsilon])};
}

void run(const Xielu&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Xielu::kX]), rows_of(invocation[Xielu::kY])};
  const XieluFactors by = factors_of<Xielu>(invocation);
  const auto forward = context.kernels.elementwise->xielu[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n, by); });
}

void run(const XieluGrad&, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[XieluGrad::kDY]), rows_of(invocation[XieluGrad::kX]),
                           rows_of(invocation[XieluGrad::kDX])};
  const XieluFactors by = factors_of<XieluGrad>(invocation);
  const auto backward =
      context.kernels.elementwise
          ->xielu_grad[tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n, by); });
}

// The slope is xielu without its linear part, with one of its factors.
void run(const XieluSlope& form, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[XieluSlope::kX]),
                           rows_of(invocation[XieluSlope::kSlope])};
  const float factor = 1.0F / (1.0F + std::exp(-number_of(invocation[XieluSlope::kAlpha])));
  const XieluFactors by{form.negative ? 0.0F : factor, form.negative ? factor : 0.0F, 0.0F,
                        number_of(invocation[XieluSlope::kEpsilon])};
  const auto forward = context.kernels.elementwise->xielu[tensors[0].element][tensors[1].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n, by); });
}

void run(const Softcap& softcap, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Softcap::kX]), rows_of(invocation[Softcap::kY])};
  const auto forward = context.kernels.elementwise->softcap[tensors[0].element][tensors[1].element];
  parallel_elements(tensors,
                    [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], n, softcap.cap); });
}

void run(const SoftcapGrad& grad, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[SoftcapGrad::kDY]),
                           rows_of(invocation[SoftcapGrad::kY]),
                           rows_of(invocation[SoftcapGrad::kDX])};
  const auto backward =
      context.kernels.elementwise
          ->softcap_grad[tensors[0].element][tensors[1].element][tensors[2].element];
  parallel_elements(
      tensors, [&](auto at, int64_t, int64_t n) { backward(at[0], at[1], at[2], n, grad.cap); });
}

template <GatedProduct Kind>
bool supports(const Kind&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[Kind::kY].dtype);
}

template <GatedProduct Kind>
void run(const Kind& kind, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Kind::kGate]), rows_of(invocation[Kind::kUp]),
                           rows_of(invocation[Kind::kY])};
  const auto forward =
      context.kernels.gated_mul->forward[static_cast<int>(activation_of(kind))][tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) { forward(at[0], at[1], at[2], n); });
}

template <GatedProductGrad Kind>
bool supports(const Kind&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[Kind::kDY].dtype);
}

template <GatedProductGrad Kind>
void run(const Kind& kind, const Invocation& invocation, CpuContext& context) {
  const std::array tensors{rows_of(invocation[Kind::kDY]), rows_of(invocation[Kind::kGate]),
                           rows_of(invocation[Kind::kUp]), rows_of(invocation[Kind::kDGate]),
                           rows_of(invocation[Kind::kDUp])};
  const auto backward = context.kernels.gated_mul
                            ->backward[static_cast<int>(activation_of(kind))][tensors[0].element];
  parallel_elements(tensors, [&](auto at, int64_t, int64_t n) {
    backward({at[0], at[1], at[2], at[3], at[4], n});
  });
}

// The number of rows in a task when a row has `pairs` pairs.
int64_t rows_of_pairs(int64_t pairs) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, pairs));
}

bool supports(const ClampedSwiglu&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[ClampedSwiglu::kY].dtype);
}

void run(const ClampedSwiglu& swiglu, const Invocation& invocation, CpuContext& context) {
  const Rows gate_up = rows_of(invocation[ClampedSwiglu::kGateUp]);
  const Rows y = rows_of(invocation[ClampedSwiglu::kY]);
  const auto forward = context.kernels.clamped_swiglu->forward[y.element];
  parallel_ranges(y.rows, rows_of_pairs(y.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      forward({swiglu.limit, swiglu.alpha}, gate_up.at(row), y.at(row), y.columns);
  });
}

bool supports(const ClampedSwigluGrad&, const program::OperationView& view, const CpuContext&) {
  return is_all_of(view, view[ClampedSwigluGrad::kDY].dtype);
}

void run(const ClampedSwigluGrad& grad, const Invocation& invocation, CpuContext& context) {
  const Rows dy = rows_of(invocation[ClampedSwigluGrad::kDY]);
  const Rows gate_up = rows_of(invocation[ClampedSwigluGrad::kGateUp]);
  const Rows dgate_up = rows_of(invocation[ClampedSwigluGrad::kDGateUp]);
  const auto backward = context.kernels.clamped_swiglu->backward[dy.element];
  parallel_ranges(dy.rows, rows_of_pairs(dy.columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      backward(
          {{grad.limit, grad.alpha}, dy.at(row), gate_up.at(row), dgate_up.at(row), dy.columns});
  });
}

}  // namespace

SNUG_CPU_KIND(Relu);
SNUG_CPU_KIND(ReluGrad);
SNUG_CPU_KIND(Gelu);
SNUG_CPU_KIND(GeluGrad);
SNUG_CPU_KIND(Softcap);
SNUG_CPU_KIND(SoftcapGrad);
SNUG_CPU_KIND(Xielu);
SNUG_CPU_KIND(XieluGrad);
SNUG_CPU_KIND(XieluSlope);
SNUG_CPU_KIND(Multiply, .supports = supports);
SNUG_CPU_KIND(MultiplyGrad, .supports = supports);
SNUG_CPU_KIND(SigmoidMul, .supports = supports);
SNUG_CPU_KIND(SigmoidMulGrad, .supports = supports);
SNUG_CPU_KIND(SiluMul, .supports = supports);
SNUG_CPU_KIND(SiluMulGrad, .supports = supports);
SNUG_CPU_KIND(GeluMul, .supports = supports);
SNUG_CPU_KIND(GeluMulGrad, .supports = supports);
SNUG_CPU_KIND(ClampedSwiglu, .supports = supports);
SNUG_CPU_KIND(ClampedSwigluGrad, .supports = supports);

}  // namespace snug::backends::cpu
