// How a kind's attribute struct lists its attributes, so that one visitor prints, parses and
// compares all. What an attribute is called stands in this list alone; code that speaks of a
// decision names the member (decision_name).
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

// Says how it is done, and is left to lower and to the target (decisions.h).
template <typename Struct, typename Value>
struct Decision {
  static_assert(std::is_integral_v<Value> || std::is_enum_v<Value>);
  static constexpr bool kIsDecision = true;
  std::string_view name;
  Value Struct::*member;
  Priced priced = Priced::by_word;
  Noted noted = Noted::by_value;
};
template <typename Struct, typename Value>
Decision(std::string_view, Value Struct::*) -> Decision<Struct, Value>;
template <typename Struct, typename Value>
Decision(std::string_view, Value Struct::*, Priced) -> Decision<Struct, Value>;
template <typename Struct, typename Value>
Decision(std::string_view, Value Struct::*, Priced, Noted) -> Decision<Struct, Value>;

// Calls f(decision) for each decision of a kind, in the order of its list.
template <typename Struct, typename F>
constexpr void for_each_decision(const F& f) {
  const auto call = [&]<typename Listed>(const Listed& listed) {
    if constexpr (Listed::kIsDecision) f(listed);
  };
  std::apply([&](const auto&... listed) { (call(listed), ...); }, Struct::kFields);
}

template <typename Member>
struct MemberTypes;
template <typename S, typename V>
struct MemberTypes<V S::*> {
  using Struct = S;
  using Value = V;
};
// The type of a member: of &Matmul::products it is int32_t.
template <auto member>
using MemberValue = typename MemberTypes<decltype(member)>::Value;

// The name of the decision that a member is; empty for one that is none.
template <auto member>
constexpr std::string_view name_among_decisions() {
  std::string_view name;
  for_each_decision<typename MemberTypes<decltype(member)>::Struct>([&](const auto& decision) {
    if constexpr (std::is_same_v<std::decay_t<decltype(decision.member)>, decltype(member)>)
      if (decision.member == member) name = decision.name;
  });
  return name;
}
// The name of the decision that a member has to be: decision_name<&Matmul::products>().
template <auto member>
constexpr std::string_view decision_name() {
  constexpr std::string_view kName = name_among_decisions<member>();
  static_assert(!kName.empty(), "the member is no decision of its kind");
  return kName;
}

}  // namespace snug::program
