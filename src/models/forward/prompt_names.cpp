#include "models/forward/prompt_names.h"

#include <fmt/format.h>

namespace snug::models {
namespace {

constexpr std::string_view kPromptSuffix = ".adaption_prompt";
constexpr std::string_view kGateSuffix = ".adaption_gate";
constexpr std::string_view kBiasSuffix = ".adapter_bias";
constexpr std::string_view kScaleSuffix = ".adapter_scale";

}  // namespace

std::string prompt_module(const AttentionBlock& block) {
  const std::string& output = block.output.module;
  return output.substr(0, output.rfind('.'));
}

std::string prompt_name(std::string_view module) {
  return fmt::format("{}{}", module, kPromptSuffix);
}
std::string gate_name(std::string_view module) { return fmt::format("{}{}", module, kGateSuffix); }

bool is_prompt(std::string_view tensor) { return tensor.ends_with(kPromptSuffix); }
bool is_gate(std::string_view tensor) { return tensor.ends_with(kGateSuffix); }

std::string adjusting_bias_name(std::string_view module) {
  return fmt::format("{}{}", module, kBiasSuffix);
}
std::string adjusting_scale_name(std::string_view module) {
  return fmt::format("{}{}", module, kScaleSuffix);
}
bool is_adjusting_bias(std::string_view tensor) { return tensor.ends_with(kBiasSuffix); }
bool is_adjusting_scale(std::string_view tensor) { return tensor.ends_with(kScaleSuffix); }

program::Shape stored_prompt_shape(std::string_view tensor, const program::Shape& shape) {
  return is_prompt(tensor) ? program::Shape{1, shape[0], shape[1]} : shape;
}

}  // namespace snug::models
