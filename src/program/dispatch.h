// Finds the struct of an operation's kind in its attributes, a variant.
#pragma once

#include <type_traits>
#include <variant>

#include "base/error.h"
#include "program/operation.h"

namespace snug::program {

// Calls f(attributes) with the struct of the operation's kind, which f may change where the variant
// is no constant. A switch, since std::visit has a table and a function for each kind and call.
template <typename Result, typename Variant, typename F>
requires std::is_same_v<std::remove_cvref_t<Variant>, Attributes> Result
dispatch(Variant&& attributes, const F& f) {
  switch (static_cast<Kind>(attributes.index())) {
#define SNUG_KIND(Struct, name) \
  case Kind::name:              \
    return f(*std::get_if<Struct>(&attributes));
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  }
  SNUG_CHECK(false, "an operation without a kind");
  return Result();
}

// Like dispatch(), for operations that a backend runs. A CHECK fails for a kind that the runtime
// performs, and for one that has to be expanded.
template <typename Result, typename F>
Result dispatch_run(const Attributes& attributes, const F& f) {
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
