#include "program/kinds/kind.h"

#include <array>

#include "base/error.h"
#include "program/ir/builder.h"
#include "program/ir/operands.h"
#include "program/kinds/dispatch.h"
#include "program/kinds/functions.h"

namespace snug::program {
namespace {

// Calls f(attributes, the definitions of their kind).
template <typename Result, typename F>
Result ask(const Operation& operation, F&& f) {
  return dispatch<Result>(operation.attributes, [&]<typename Struct>(const Struct& attributes) {
    return f(attributes, FunctionsOf<Struct>::kDefined);
  });
}

template <typename Struct>
constexpr bool has_operand(OperandName name) {
  for (const Operand<Struct>& operand : Struct::kOperands)
    if (operand.name == name) return true;
  return false;
}

// Traits that name or promise operands are held to it, and those that go together.
template <typename Struct>
constexpr bool has_sound_traits() {
  constexpr Traits kTraits = traits_of<Struct>();
  const auto is_operand = [](OperandName name) {
    return name.empty() || has_operand<Struct>(name);
  };
  bool sound = is_operand(kTraits.passes_on) && is_operand(kTraits.norm_of_parts) &&
               is_operand(kTraits.sums_over_ranks);
  for (const OperandName factor : kTraits.loss_factors) sound = sound && is_operand(factor);
  for (const ExtentOperand& extent : kTraits.extents)
    sound = sound && is_operand(extent.name) && is_operand(extent.rows_of);
  if (kTraits.category == Category::optimizer)
    for (const OperandName name : {kWeightOperand, kGradientOperand, kFactorOperand})
      sound = sound && has_operand<Struct>(name);
  if (kTraits.category == Category::collective) sound = sound && kTraits.copying == Copying::begins;
  return sound;
}
#define SNUG_KIND(Struct, name) static_assert(has_sound_traits<Struct>());
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

}  // namespace

std::string shape_error(const OperationView& view) {
  if (std::string error = operand_error(view.operation); !error.empty()) return error;
  return ask<std::string>(view.operation, [&](const auto& attributes, const auto& kind) {
    return kind.shape_error(attributes, view);
  });
}

Cost cost(const OperationView& view, const BatchBounds& bounds) {
  return cost_of(view, extent_of(view, bounds));
}

Cost cost_of(const OperationView& view, const Extent& extent) {
  Cost cost = ask<Cost>(view.operation, [&](const auto& attributes, const auto& kind) {
    return kind.cost(attributes, view, extent);
  });
  if (view.operation.launches > 0) cost.launches = view.operation.launches;
  if (view.operation.joined) cost.launches = 0;
  cost.launches += cost.chunk_launches;
  if (traits_of(view.operation).reads_in_place && !view.operation.on_host)
    for (const TensorId id : view.operation.reads)
      if (const Tensor& tensor = view.program.tensor(id); tensor.space != Space::device)
        cost.link_bytes += static_cast<double>(tensor.bytes());
  return cost;
}

WorkList work_of(const OperationView& view, const BatchBounds& bounds) {
  return ask<WorkList>(view.operation, [&](const auto& attributes, const auto& kind) {
    return kind.work != nullptr ? kind.work(attributes, view, bounds) : WorkList();
  });
}

Extent extent_of(const OperationView& view, const BatchBounds& bounds) {
  return work_of(view, bounds).extent;
}

void differentiate(const Operation& operation, Tape& tape) {
  ask<void>(operation, [&](const auto& attributes, const auto& kind) {
    SNUG_CHECK(kind.differentiate != nullptr, "{} has no derivative", name_of(operation.kind()));
    kind.differentiate(attributes, operation, tape);
  });
}

bool has_derivative(Kind kind) {
  static const std::array<bool, kKindCount> kHasDerivative{
#define SNUG_KIND(Struct, name) FunctionsOf<Struct>::kDefined.differentiate != nullptr,
      SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  };
  return kHasDerivative[static_cast<size_t>(kind)];
}

bool has_expansion(Kind kind) {
  static const std::array<bool, kKindCount> kHasExpansion{
#define SNUG_KIND(Struct, name) FunctionsOf<Struct>::kDefined.expand != nullptr,
      SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
  };
  return kHasExpansion[static_cast<size_t>(kind)];
}

void expand(const OperationView& view, Builder& builder) {
  // Copied, since the view may refer to the builder's own program, which grows.
  const Operation operation = view.operation;
  builder.set_layer(operation.layer);
  builder.set_phase(operation.phase);
  ask<void>(operation, [&](const auto& attributes, const auto& kind) {
    if (kind.expand != nullptr)
      kind.expand(attributes, {view.program, operation}, builder);
    else
      builder.emit(operation);
  });
}

std::vector<InPlacePair> in_place_pairs(const Operation& operation) {
  std::vector<InPlacePair> pairs;
  dispatch<void>(operation.attributes, [&]<typename Struct>(const Struct& attributes) {
    if constexpr (requires { Struct::kInPlace; })
      for (const InPlaceOperands<Struct>& each : Struct::kInPlace) {
        const Slot to = slot_of(attributes, each.output);
        const Slot from = slot_of(attributes, each.input);
        if (to.present && from.present && to.access == Access::write)
          pairs.push_back({each.output.name, each.input.name});
      }
  });
  return pairs;
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
