#include "program/kind.h"

#include <type_traits>

#include "base/error.h"
#include "program/builder.h"
#include "program/kinds/overloads.h"
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

bool is_elementwise(Kind kind) {
  switch (kind) {
    case Kind::rms_norm:
    case Kind::silu_mul:
    case Kind::dropout:
    case Kind::cast:
      return true;
    default:
      // Sums, biases and rotations are as cheap, but what they make is what attention, the residual
      // stream and products keep.
      return false;
  }
}

bool has_training_form(Kind kind) { return kind == Kind::linear_cross_entropy; }

bool is_fused(Kind kind) {
  return kind == Kind::linear_cross_entropy || kind == Kind::linear_cross_entropy_train ||
         kind == Kind::matmul_nf4;
}

}  // namespace snug::program
