#include "formats/adapter/renamed_modules.h"

#include <algorithm>
#include <array>

namespace snug::formats {
namespace {

struct RenamedModule {
  std::string_view own;
  std::string_view other;
};

constexpr std::array kRenamed{RenamedModule{"embed_out", "lm_head"}};
constexpr std::array<std::string_view, 2> kParts{".weight", ".bias"};

constexpr std::string_view kGateUp = "gate_up_proj";
constexpr std::string_view kDown = "down_proj";
constexpr std::string_view kInnermost = ".base_layer";
constexpr std::string_view kExperts = ".experts";

// Ends of the names of experts' modules in files, and what transformers calls these modules.
constexpr std::array kRenamedExperts{RenamedModule{".block_sparse_moe.experts", ".mlp.experts"}};

// Ends of the names of weights in files, and of the parameters that transformers makes of them.
constexpr std::array kRenamedParameters{
    RenamedModule{".block_sparse_moe.input_linear.weight",
                  ".block_sparse_moe.experts.gate_up_proj"},
    RenamedModule{".block_sparse_moe.output_linear.weight", ".block_sparse_moe.experts.down_proj"}};

std::string renamed_experts(std::string_view module) {
  for (const RenamedModule& renamed : kRenamedExperts)
    if (module.ends_with(renamed.own))
      return std::string(module.substr(0, module.size() - renamed.own.size())) +
             std::string(renamed.other);
  return std::string(module);
}

}  // namespace

std::string expert_parameter(std::string_view weight) {
  constexpr std::string_view kEach = ".*.";
  if (const size_t at = weight.find(kEach); at != std::string_view::npos) {
    const bool is_of_two = weight.find('+', at) != std::string_view::npos;
    return renamed_experts(weight.substr(0, at)) + "." + std::string(is_of_two ? kGateUp : kDown);
  }
  for (const RenamedModule& renamed : kRenamedParameters)
    if (weight.ends_with(renamed.own))
      return std::string(weight.substr(0, weight.size() - renamed.own.size())) +
             std::string(renamed.other);
  const size_t last = weight.rfind('.');
  if (last == std::string_view::npos || !weight.substr(0, last).ends_with(kExperts)) return {};
  const std::string_view name = weight.substr(last + 1);
  return name == kGateUp || name == kDown ? std::string(weight) : std::string{};
}

std::string wrapped_parameter(const std::string& module,
                              const std::vector<std::string>& target_parameters) {
  if (target_parameters.empty()) return module;
  if (module.ends_with(kInnermost))
    return module.substr(0, module.size() - kInnermost.size() + 1) + std::string(kGateUp);
  if (!module.ends_with(kExperts)) return module;
  const bool has_down = std::ranges::any_of(
      target_parameters, [&](const std::string& target) { return target.ends_with(kDown); });
  return module + "." + std::string(has_down ? kDown : kGateUp);
}

std::vector<std::string> names_of(std::string_view tensor) {
  std::vector<std::string> names{std::string(tensor)};
  for (const RenamedModule& module : kRenamed)
    for (const std::string_view part : kParts)
      if (tensor.starts_with(module.own) && tensor.substr(module.own.size()) == part)
        names.push_back(std::string(module.other) + std::string(part));
  return names;
}

}  // namespace snug::formats
