#include "program/kind.h"

#include <array>
#include <type_traits>

#include "base/error.h"
#include "program/builder.h"
#include "program/kinds/overloads.h"
#include "program/operands.h"
#include "program/tape.h"

namespace snug::program {
namespace {

// Taken only by kinds without an overload of their own.
template <typename Attributes>
void differentiate(const Attributes&, const Operation& operation, Tape&) {
  SNUG_CHECK(false, "{} has no derivative", name_of(operation.kind()));
}

template <typename Attributes>
InPlacePairs in_place_pairs(const Attributes&) {
  return {};
}

template <typename Attributes>
void expand(const Attributes&, const OperationView& view, Builder& builder) {
  builder.emit(view.operation);
}

[[noreturn]] void fail_without_kind() {
  base::check_failed(__FILE__, __LINE__, "an operation has a kind", "EndOfKinds");
}

template <typename Attributes>
constexpr bool kIsKind = !std::is_same_v<std::decay_t<Attributes>, EndOfKinds>;

}  // namespace

std::string shape_error(const OperationView& view) {
  if (std::string error = operand_error(view.operation); !error.empty()) return error;
  return std::visit(
      [&](const auto& attributes) -> std::string {
        if constexpr (kIsKind<decltype(attributes)>) return shape_error(attributes, view);
        return "has no kind";
      },
      view.operation.attributes);
}

Cost cost(const OperationView& view, const Load& load) {
  return std::visit(
      [&](const auto& attributes) -> Cost {
        if constexpr (kIsKind<decltype(attributes)>)
          return cost(attributes, view, load);
        else
          fail_without_kind();
      },
      view.operation.attributes);
}

void differentiate(const Operation& operation, Tape& tape) {
  std::visit([&](const auto& attributes) { differentiate(attributes, operation, tape); },
             operation.attributes);
}

void expand(const OperationView& view, Builder& builder) {
  // A copy: the view may look at the builder's own program, which grows.
  const Operation operation = view.operation;
  builder.set_layer(operation.layer);
  builder.set_phase(operation.phase);
  std::visit(
      [&](const auto& attributes) {
        expand(attributes, {view.program, operation}, builder);
      },
      operation.attributes);
}

std::vector<std::pair<int, int>> in_place_pairs(const Operation& operation) {
  return std::visit([](const auto& attributes) { return in_place_pairs(attributes); },
                    operation.attributes);
}

const Traits& traits_of(Kind kind) {
  static constexpr std::array<Traits, kKindCount> kTraits{
#define SNUG_KIND(Struct, name) traits_of<Struct>(),
      SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  };
  return kTraits[static_cast<size_t>(kind)];
}

}  // namespace snug::program
