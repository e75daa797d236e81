// What recipes say of each optimizer: its names, and the keys that it reads, with their defaults.
// What it does with them stands in methods/optimizer.h.
#pragma once

#include <span>
#include <string_view>

#include "formats/recipe/choices.h"

namespace snug::formats {

// A key that only some optimizers read, and the default that it has with one of them, as a user
// would write it.
struct OptimizerKey {
  std::string_view name;
  std::string_view default_text;
};

struct OptimizerKeys {
  Optimizer optimizer;
  std::string_view help;                               // what it keeps, in a few words
  std::span<const std::string_view> other_names = {};  // that mean it too
  std::span<const OptimizerKey> keys = {};
};

// One for each optimizer, in the order of the words.
std::span<const OptimizerKeys> optimizer_keys();
const OptimizerKeys& optimizer_keys_of(Optimizer optimizer);
// Whether only some optimizers read it.
bool is_optimizer_key(std::string_view key);
// Nullptr: the optimizer does not read the key.
const OptimizerKey* find_optimizer_key(Optimizer optimizer, std::string_view key);

}  // namespace snug::formats
