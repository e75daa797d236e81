// What the tensors of an adapter's file are called. Training scripts wrap a model before they save
// it, or train the text part of a larger one, and PEFT's own names may still have an adapter's name
// in them; here each has the name that PEFT gives it in the model alone:
//
//   module.base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight   (torch's DDP)
//   base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight   (multimodal)
//   base_model.model.language_model.model.layers.0.self_attn.q_proj.lora_A.weight   (the same)
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight                  (all of these)
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace snug::formats {

// What PEFT's names of tensors begin with.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

// A module's name without the parts that wrappers add.
std::string plain_module(std::string_view module);

// The module whose A a tensor is, as the model in training called it: with the parts that wrappers
// within the model add. Nothing: it is no A.
std::optional<std::string> adapted_module(std::string_view stored);

// Whether it is of the part of a multimodal model that reads images or sounds, which no model here
// has.
bool is_of_other_part(std::string_view tensor);

// PEFT's name of a tensor. One that does not have PEFT's prefix is left as it is.
std::string plain_adapter_tensor(std::string_view stored);

}  // namespace snug::formats
