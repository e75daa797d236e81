// LoRA on the matrices of experts, as PEFT applies it to parameters (target_parameters):
//
//   before   y = grouped_matmul(x, W, bounds)
//   after    y.base   = grouped_matmul(x, W, bounds)
//            y.hidden = grouped_matmul(x, A, bounds) {transpose_b}             (rows, r)
//            y.scaled = scale(y.hidden)
//            B.split  = embedding(B, numbers) {transposed}                     (experts, out * r)
//            y.delta  = grouped_matmul(y.scaled, B.split, bounds) {transpose_b}
//            y        = add(y.base, y.delta)
//
// A (experts, r, in) and B (out, r, experts) have the elements of PEFT's tensors in their order, so
// files need no other one. Products need the B of each expert (out, r) by itself: the numbers of
// all experts are looked up in B, which gives its transpose. A route of as many tokens to one
// expert makes these numbers, in the program itself: they are the places of its rows.
//
// PEFT wraps a module of experts once for each adapted parameter, the first one innermost. So where
// both matrices have an adapter, that of gate and up is MODULE.base_layer.lora_A.weight, and that
// of down MODULE.lora_A.weight.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "methods/lora.h"
#include "program/ir/program.h"

namespace snug::methods {

// A product by matrices of experts that get an adapter.
struct AdaptedExperts {
  size_t operation = 0;   // its number in the forward program
  std::string parameter;  // "model.layers.0.mlp.experts.gate_up_proj"
  std::string module;     // "model.layers.0.mlp.experts.base_layer"
};
// Throws UserError for an entry of `target_parameters` that is the end of no parameter's name.
std::vector<AdaptedExperts> adapted_experts(const program::Program& forward,
                                            const std::vector<std::string>& target_parameters);

// Gives these products their adapters.
program::Program with_adapted_experts(const program::Program& forward, const LoraOptions& options);

// The shape in which files hold a tensor of LoRA that has this shape in memory.
program::Shape stored_lora_shape(std::string_view name, const program::Shape& shape);

}  // namespace snug::methods
