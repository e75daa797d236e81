#include "models/stored/weight_patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>

#include "base/last_part.h"
#include "base/nearest.h"
#include "models/families/families.h"
#include "models/weights.h"

namespace snug::models {
namespace {

// The names of the weight in files and of its modules. A tied head is a second module of the
// embedding's tensor.
std::vector<std::string> names_of(const Weight& weight, const Stack& stack) {
  std::vector<std::string> names{weight.name};
  if (stack.tied_head && weight.name == embedding_weight(stack))
    names.push_back(head_weight(stack));
  return names;
}

// A tensor's name with the names of the modules that contain it: "model.norm.weight", "model.norm"
// and "model".
std::vector<std::string> with_modules(std::string name) {
  std::vector<std::string> names{name};
  for (size_t dot = name.rfind('.'); dot != std::string::npos; dot = name.rfind('.')) {
    name.resize(dot);
    names.push_back(name);
  }
  return names;
}

bool matches_last_parts(const std::string& pattern, const std::string& name) {
  for (size_t begin = 0;;) {
    if (::fnmatch(pattern.c_str(), name.c_str() + begin, FNM_NOESCAPE) == 0) return true;
    const size_t dot = name.find('.', begin);
    if (dot == std::string::npos) return false;
    begin = dot + 1;
  }
}

bool selects(const std::string& pattern, const std::string& weight) {
  const std::vector<std::string> names = with_modules(weight);
  return std::ranges::any_of(
      names, [&](const std::string& name) { return matches_last_parts(pattern, name); });
}

// Null where the block's linears have different inputs.
const Projections* projections_of(const Branch& branch) {
  if (const auto* attention = std::get_if<AttentionBlock>(&branch.block))
    return &attention->query_key_value;
  const auto* gated = std::get_if<GatedMlp>(&branch.block);
  return gated == nullptr ? nullptr : &gated->gate_up;
}

// Advice for a pattern that names separately what this family stores in one tensor.
std::string advice_on_fused(const Stack& stack, const std::string& pattern) {
  for (const Branch& branch : stack.layer(0).branches) {
    const Projections* projections = projections_of(branch);
    if (projections == nullptr || !projections->is_fused()) continue;
    for (const Linear& part : projections->parts)
      if (base::last_part(part.module) == base::last_part(pattern))
        return fmt::format("it is a part of \"{}\" here, which trains or is frozen whole; ",
                           projections->fused);
  }
  return {};
}

std::string module_of(const std::string& weight) { return weight.substr(0, weight.rfind('.')); }

// Returns "self_attn.q_proj" for "model.layers.0.self_attn.q_proj".
std::string part_of_layer(const std::string& module, const std::string& layer) {
  return module.substr(layer.size() + 1);
}

// Whether the weight's name begins with the name of its layer.
bool is_within(const Weight& weight, const Stack& stack) {
  return weight.layer >= 0 && weight.name.starts_with(stack.layer_name(weight.layer) + ".");
}

// Lists layers [first, end), which all have the same modules as the first of them.
std::string layers_text(const Stack& stack, int64_t first, int64_t end) {
  std::vector<std::string> inside;
  for (const Weight& weight : weights_of(stack)) {
    if (weight.layer != first || !is_within(weight, stack)) continue;
    const std::string part = part_of_layer(module_of(weight.name), stack.layer_name(first));
    // A module's bias follows its weight, so a repeated name is adjacent.
    if (inside.empty() || inside.back() != part) inside.push_back(part);
  }
  return fmt::format("{} to {}, and in each layer {}", stack.layer_name(first),
                     stack.layer_name(end - 1), fmt::join(inside, ", "));
}

}  // namespace

std::vector<std::string> weights_matching(const ModelConfig& config, const std::string& pattern) {
  const Stack stack = stack_of(config);
  std::vector<std::string> found;
  for (const Weight& weight : weights_of(stack)) {
    const std::vector<std::string> names = names_of(weight, stack);
    if (std::ranges::any_of(names, [&](const std::string& name) { return selects(pattern, name); }))
      found.push_back(weight.name);
  }
  return found;
}

std::string known_names(const ModelConfig& config, const std::string& pattern) {
  const Stack stack = stack_of(config);
  std::set<std::string> candidates;
  std::vector<std::string> outside;
  for (const Weight& weight : weights_of(stack))
    for (const std::string& name : names_of(weight, stack)) {
      for (const std::string& part : with_modules(name)) {
        candidates.insert(part);
        candidates.insert(base::last_part(part));
      }
      const std::string module = module_of(name);
      if (!is_within(weight, stack)) outside.push_back(module);
    }
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  std::string advice = advice_on_fused(stack, pattern);
  if (const auto nearest = base::nearest_name(pattern, views); nearest && advice.empty())
    advice = fmt::format("did you mean \"{}\"? ", *nearest);
  const int64_t encoder_end = stack.encoder_layers();
  std::string layers = layers_text(stack, encoder_end, stack.layer_count());
  if (encoder_end > 0) layers = fmt::format("{}; {}", layers_text(stack, 0, encoder_end), layers);
  return fmt::format("{}the model has {}, {}", advice, fmt::join(outside, ", "), layers);
}

}  // namespace snug::models
