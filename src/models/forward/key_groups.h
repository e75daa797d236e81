// Groups of attention layers whose caches keep the same tokens, and so share a table of pages: all
// layers that see every token before them, those of each window, and those that read the encoder's
// output. A group's pools differ in width from layer to layer, but not in their pages.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_streams.h"
#include "models/blocks.h"

namespace snug::models {

struct KeyGroup {
  base::TokenStream stream = base::TokenStream::decoder;  // that the keys are computed from
  int64_t window = 0;  // a query sees this many keys, its own included; 0: all
  auto operator<=>(const KeyGroup&) const = default;
};

// The group of a block of the decoder.
KeyGroup key_group(const AttentionBlock& attention);

// The groups of a decoder's layers, in ascending order: full attention, the windows, the encoder's
// stream.
std::vector<KeyGroup> key_groups(const Stack& stack);

// The name of a batch tensor of a group: "pages", "window_1024.pages", "encoder.pages".
std::string group_name(const KeyGroup& group, std::string_view name);

// The pages of each of a group's pools.
struct KeyPool {
  KeyGroup group;
  int64_t pages = 0;
};

}  // namespace snug::models
