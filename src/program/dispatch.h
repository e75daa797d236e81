// From an operation's attributes, a variant, to the struct of its kind.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"
#include "program/operation.h"

namespace snug::program {

// Calls f(attributes) with the struct of the operation's kind.
template <typename Result, typename F>
Result dispatch(const Attributes& attributes, F&& f) {
  return std::visit(
      [&]<typename Struct>(const Struct& concrete) -> Result {
        if constexpr (std::is_same_v<Struct, EndOfKinds>) {
          SNUG_CHECK(false, "an operation without a kind");
          return Result();
        } else {
          return f(concrete);
        }
      },
      attributes);
}

// The same for what a backend runs. A CHECK fails for a kind that the runtime performs, and for one
// that has to be expanded.
template <typename Result, typename F>
Result dispatch_run(const Attributes& attributes, F&& f) {
  return dispatch<Result>(attributes, [&]<typename Struct>(const Struct& concrete) -> Result {
    if constexpr (traits_of<Struct>().by_runtime) {
      SNUG_CHECK(false, "a backend runs what the runtime performs");
      return Result();
    } else if constexpr (traits_of<Struct>().by_expansion) {
      SNUG_CHECK(false, "a backend runs what was to be expanded");
      return Result();
    } else {
      return f(concrete);
    }
  });
}

}  // namespace snug::program
