// What recipes need to know about each method: its learning rates, the method that it becomes if
// linears are stored in 4 bits, and the keys that only some methods read. methods/method.h says
// what a method does.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "formats/recipe/choices.h"

namespace snug::formats {

struct MethodKeys {
  Method method;
  double learning_rate;
  // For losses that compare answers, which are steeper.
  double pair_learning_rate;
  // The method that this one becomes with load_in_4bit=true; nothing: it trains weights in 16 bits.
  std::optional<Method> in_4_bits;
  bool always_in_4_bits = false;
  bool trains_weights = false;  // otherwise it trains an adapter next to frozen weights
  // Why its result is not merged into the model; empty: it can be.
  std::string_view not_merged = {};
};

const MethodKeys& method_keys_of(Method method);

// Keys that some methods read.
struct MethodKeyGroup {
  std::span<const Method> readers;
  std::span<const std::string_view> keys;
  // The end of the error for a key that the chosen method does not read: what the key is and what
  // to do, with {} for the method.
  std::string_view refusal;
};

std::span<const MethodKeyGroup> method_key_groups();
// Whether the key is read by some methods, but not by this one.
bool is_idle_key(Method method, std::string_view key);

}  // namespace snug::formats
