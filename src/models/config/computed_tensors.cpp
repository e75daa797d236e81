#include "models/config/computed_tensors.h"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <variant>

#include "models/blocks.h"
#include "models/config/rope.h"
#include "models/families/families.h"

namespace snug::models {
namespace {

// Adds the tensors of the first table: longrope has two.
void add_frequencies(const Rotary& rotary, int64_t max_position,
                     std::vector<ComputedTensor>& tensors) {
  for (const int64_t sequence_tokens : {int64_t{0}, max_position}) {
    std::string name = frequencies_name(rotary, sequence_tokens);
    if (tensors.empty() || tensors.back().name != name)
      tensors.push_back({std::move(name), inverse_frequencies(rotary, sequence_tokens)});
  }
}

std::set<int64_t> widths_without_weight(const Stack& stack) {
  std::set<int64_t> widths;
  for (const Layer& layer : stack.layers)
    for (const Branch& branch : layer.branches)
      if (const auto* attention = std::get_if<AttentionBlock>(&branch.block))
        for (const auto& norm : {attention->query_norm, attention->key_norm, attention->value_norm})
          if (norm && (norm->form == NormForm::rms_without_weight || norm->heads > 0))
            widths.insert(norm->width);
  return widths;
}

}  // namespace

std::vector<ComputedTensor> computed_tensors(const ModelConfig& config) {
  const Stack stack = stack_of(config);
  std::vector<ComputedTensor> tensors;
  const auto is_read = [&](bool local) {
    return reads_rotary(stack, base::TokenStream::decoder, local) ||
           (stack.encoder && reads_rotary(stack, base::TokenStream::encoder, local));
  };
  if (is_read(false)) add_frequencies(stack.rotary, config.max_position, tensors);
  if (is_read(true))
    tensors.push_back({local_frequencies_name(), inverse_frequencies(*stack.local_rotary)});
  for (const int64_t width : widths_without_weight(stack))
    tensors.push_back({ones_name(width), std::vector<float>(static_cast<size_t>(width), 1.0F)});
  return tensors;
}

std::string ones_name(int64_t width) { return fmt::format("ones.{}", width); }

}  // namespace snug::models
