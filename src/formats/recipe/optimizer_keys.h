// What recipes need to know about each optimizer: its names, and the keys that it reads, with their
// defaults. methods/optimizer.h says what it does with them.
#pragma once

#include <span>
#include <string_view>

#include "formats/recipe/choices.h"

namespace snug::formats {

// A key that only some optimizers read, and its default for one of them, as a user would write it.
struct OptimizerKey {
  std::string_view name;
  std::string_view default_text;
};

struct OptimizerKeys {
  Optimizer optimizer;
  std::string_view help;                               // what state it keeps, in a few words
  std::span<const std::string_view> other_names = {};  // other names of the same optimizer
  std::span<const OptimizerKey> keys = {};
};

// One entry for each optimizer, in the order of the words.
std::span<const OptimizerKeys> optimizer_keys();
const OptimizerKeys& optimizer_keys_of(Optimizer optimizer);
// Whether only some optimizers read the key.
bool is_optimizer_key(std::string_view key);
// nullptr if the optimizer does not read the key.
const OptimizerKey* find_optimizer_key(Optimizer optimizer, std::string_view key);

}  // namespace snug::formats
