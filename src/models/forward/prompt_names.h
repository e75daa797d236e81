// Names of the tensors of a block's prompt, as in PEFT: "adaption_prompt" and "adaption_gate" of
// the module that contains the block's projections. Adapter v2's tensors have Lit-GPT's names:
// "adapter_bias" and "adapter_scale" of a linear.
#pragma once

#include <string>
#include <string_view>

#include "models/blocks.h"
#include "program/ir/tensor.h"

namespace snug::models {

// The block's module within its layer: "self_attn" for "self_attn.o_proj".
std::string prompt_module(const AttentionBlock& block);

std::string prompt_name(std::string_view module);  // (tokens, hidden)
std::string gate_name(std::string_view module);    // (heads) or (1)

bool is_prompt(std::string_view tensor);
bool is_gate(std::string_view tensor);

// Adapter v2's tensors (out) of a linear or of the head: y = scale (W x + b + bias).
std::string adjusting_bias_name(std::string_view module);
std::string adjusting_scale_name(std::string_view module);
bool is_adjusting_bias(std::string_view tensor);
bool is_adjusting_scale(std::string_view tensor);

// The shape in files of an adapter's tensor: a prompt (tokens, hidden) is (1, tokens, hidden)
// there.
program::Shape stored_prompt_shape(std::string_view tensor, const program::Shape& shape);

}  // namespace snug::models
