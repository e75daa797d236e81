// Finds the struct of an operation's kind in its attributes. It includes all kinds: for the few
// files that do something for each of them.
#pragma once

#include <type_traits>

#include "base/error.h"
#include "program/ir/attributes.h"
#include "program/kinds/all_kinds.h"
#include "program/kinds/traits.h"

namespace snug::program {

// Calls f(attributes) with the struct of the operation's kind, which f may change where the
// attributes are no constant.
template <typename Result, typename Of, typename F>
requires std::is_same_v<std::remove_cvref_t<Of>, Attributes> Result dispatch(Of&& attributes,
                                                                             const F& f) {
  switch (attributes.kind()) {
#define SNUG_KIND(Struct, name) \
  case Kind::name:              \
    return f(*attributes.template get_if<Struct>());
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
    if constexpr (traits_of<Struct>().performer == Performer::runtime) {
      SNUG_CHECK(false, "a backend runs what the runtime performs");
      return Result();
    } else if constexpr (traits_of<Struct>().performer == Performer::expansion) {
      SNUG_CHECK(false, "a backend runs what was to be expanded");
      return Result();
    } else {
      return f(concrete);
    }
  });
}

}  // namespace snug::program
