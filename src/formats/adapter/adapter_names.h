// Names of the tensors in an adapter's file. Training scripts may wrap a model before they save it,
// or train the text part of a larger model, and PEFT's names may contain an adapter's name. Here
// each tensor gets the name that PEFT gives it in the unwrapped model:
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

// The prefix of PEFT's tensor names.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

// A module's name without the parts that wrappers add.
std::string plain_module(std::string_view module);

// The module to which an A tensor belongs, by the name that it had in training, which includes the
// parts of wrappers inside the model. Nothing if the tensor is not an A.
std::optional<std::string> adapted_module(std::string_view stored);

// Whether the tensor belongs to a multimodal model's encoder of images or sound, which no model
// here has.
bool is_of_other_part(std::string_view tensor);

// PEFT's name for a tensor. A name without PEFT's prefix is returned unchanged.
std::string plain_adapter_tensor(std::string_view stored);

}  // namespace snug::formats
