// How a kind's attribute struct lists its attributes, so that one visitor prints, parses and
// compares all. What an attribute is called stands in this list alone; code that speaks of a
// decision names the members that lead to it (decision_name).
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace snug::program {

// Says what the operation is.
template <typename Struct, typename Value>
struct Field {
  static constexpr bool kIsDecision = false;
  std::string_view name;
  Value Struct::*member;
};
template <typename Struct, typename Value>
Field(std::string_view, Value Struct::*) -> Field<Struct, Value>;

// How a decision shows in the name of a rate key (program/work/rate_key.h).
enum class Priced : uint8_t {
  by_word,  // a word is added where it differs from what an operation has before a target is asked
  by_kind,  // the kind's own rule has it in the name
  alike,    // operations that differ in it alone have the same rates; the kind says why
};

// How a trace shows what was done of a decision (backends/trace.h).
enum class Noted : uint8_t {
  by_value,   // the backend notes the value that it carried out
  in_pieces,  // what it did is in the pieces: thresholds, sizes of chunks
};

struct Shown {
  constexpr Shown(Priced price, Noted note = Noted::by_value)  // NOLINT: most say the price alone
      : priced(price), noted(note) {}
  Priced priced;
  Noted noted;
};

// A number, flag or word of a decision, and the members by which it is reached. Its name is its own
// among those of a kind; in program text it stands without the decision's name before it: dense_a
// of `dense` is "a", and the part that is called as the decision comes first, without a name.
template <typename... Members>
struct Part {
  constexpr Part(std::string_view called, Shown shows, Members... members)
      : name(called), shown(shows), path(members...) {}
  std::string_view name;
  Shown shown;
  std::tuple<Members...> path;
  template <typename Values>
  constexpr auto& of(Values& values) const {
    return std::apply(
        [&](auto... members) -> auto& { return (values.*....*members); }, path);
  }
};
template <typename... Members>
Part(std::string_view, Shown, Members...) -> Part<Members...>;

// A struct that decisions have as their value: it lists its parts, in the order of the text.
template <typename Value>
concept HasParts = requires {
  Value::kParts;
};
template <typename Value>
concept IsPlain = std::is_integral_v<Value> || std::is_enum_v<Value>;

// Says how it is done, and is left to lower and to the target (decisions.h): a plain value, or a
// struct whose parts say how each shows.
template <typename Struct, typename Value>
struct Decision {
  static_assert(IsPlain<Value> || HasParts<Value>);
  static constexpr bool kIsDecision = true;
  std::string_view name;
  Value Struct::*member;
  Priced priced = Priced::by_word;
  Noted noted = Noted::by_value;
};
template <typename Struct, typename Value>
Decision(std::string_view, Value Struct::*) -> Decision<Struct, Value>;
template <typename Struct, IsPlain Value>
Decision(std::string_view, Value Struct::*, Priced) -> Decision<Struct, Value>;
template <typename Struct, IsPlain Value>
Decision(std::string_view, Value Struct::*, Priced, Noted) -> Decision<Struct, Value>;

// Calls f(part) for each part of a struct of parts, in the order of its list.
template <HasParts Value, typename F>
constexpr void for_each_part_of(const F& f) {
  std::apply([&](const auto&... parts) { (f(parts), ...); }, Value::kParts);
}

// Calls f(part) for each part of each decision of a kind, in the order of its list; a plain
// decision is its only part. `part.of(attributes)` is the value.
template <typename Struct, typename F>
constexpr void for_each_part(const F& f) {
  const auto call = [&]<typename Value>(const Decision<Struct, Value>& decision) {
    if constexpr (HasParts<Value>)
      for_each_part_of<Value>([&](const auto& part) {
        std::apply(
            [&](auto... members) { f(Part(part.name, part.shown, decision.member, members...)); },
            part.path);
      });
    else
      f(Part(decision.name, Shown(decision.priced, decision.noted), decision.member));
  };
  const auto look = [&]<typename Listed>(const Listed& listed) {
    if constexpr (Listed::kIsDecision) call(listed);
  };
  std::apply([&](const auto&... listed) { (look(listed), ...); }, Struct::kFields);
}

template <auto first, auto... others>
struct PathTypes;
template <typename S, typename V, V S::*member>
struct PathTypes<member> {
  using Struct = S;
  using Value = V;
};
template <typename S, typename V, V S::*first, auto second, auto... others>
struct PathTypes<first, second, others...> {
  using Struct = S;
  using Value = typename PathTypes<second, others...>::Value;
};
// The type of what members lead to: of <&Matmul::products, &Products::count> it is int32_t.
template <auto... path>
using PathValue = typename PathTypes<path...>::Value;
template <auto... path>
using PathStruct = typename PathTypes<path...>::Struct;

// The name of the part of a decision that members lead to; empty where they lead to none.
template <auto... path>
constexpr std::string_view name_among_decisions() {
  constexpr std::tuple kPath(path...);
  std::string_view name;
  for_each_part<PathStruct<path...>>([&](const auto& part) {
    if constexpr (std::is_same_v<std::decay_t<decltype(part.path)>, std::decay_t<decltype(kPath)>>)
      if (part.path == kPath) name = part.name;
  });
  return name;
}
// The name of the part that they have to lead to: decision_name<&MatmulNf4::algorithm>().
template <auto... path>
constexpr std::string_view decision_name() {
  constexpr std::string_view kName = name_among_decisions<path...>();
  static_assert(!kName.empty(), "the members lead to no part of a decision of the kind");
  return kName;
}

}  // namespace snug::program
