#include "models/forward/key_groups.h"

#include <fmt/format.h>

#include <set>
#include <variant>

#include "program/ir/tensor_names.h"

namespace snug::models {

KeyGroup key_group(const AttentionBlock& attention) {
  return {attention.reads_encoder ? base::TokenStream::encoder : base::TokenStream::decoder,
          attention.window};
}

std::vector<KeyGroup> key_groups(const Stack& stack) {
  std::set<KeyGroup> groups;
  for (const Layer& layer : stack.layers)
    for (const Branch& branch : layer.branches)
      if (const auto* attention = std::get_if<AttentionBlock>(&branch.block))
        groups.insert(key_group(*attention));
  return {groups.begin(), groups.end()};
}

std::string group_name(const KeyGroup& group, std::string_view name) {
  const std::string within =
      group.window > 0 ? fmt::format("window_{}.{}", group.window, name) : std::string(name);
  return program::stream_name(group.stream, within);
}

}  // namespace snug::models
