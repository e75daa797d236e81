// What recipes say of each method: its learning rates, what it becomes where linears are stored in
// 4 bits, and the keys that only some methods read. What a method does with them stands in
// methods/method.h.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "formats/recipe/choices.h"

namespace snug::formats {

struct MethodKeys {
  Method method;
  double learning_rate;
  double pair_learning_rate;  // where the loss compares answers: such losses are steeper
  // The method that this one is with load_in_4bit=true; nothing: it trains what is in 16 bits.
  std::optional<Method> in_4_bits;
  bool always_in_4_bits = false;
  bool trains_weights = false;  // of the model; else an adapter next to frozen ones
};

const MethodKeys& method_keys_of(Method method);

// Keys that some methods read.
struct MethodKeyGroup {
  std::span<const Method> readers;
  std::span<const std::string_view> keys;
  // What is said of a key that another method was given: what it is and what to do, with {} for
  // that method.
  std::string_view refusal;
};

std::span<const MethodKeyGroup> method_key_groups();
// Whether only some methods read the key, and this one does not.
bool is_idle_key(Method method, std::string_view key);

}  // namespace snug::formats
