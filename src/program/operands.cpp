#include "program/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>

#include "base/error.h"

namespace snug::program {
namespace {

std::string plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// How many tensors of an access a kind takes, and the names it gives them.
struct Expected {
  explicit Expected(std::string_view word) : what(word) {}
  std::string_view what;  // "read"
  size_t count = 0;
  bool repeated = false;
  std::string names;

  std::string error(size_t found) const {
    if (repeated ? found >= count : found == count) return "";
    return fmt::format("has {}, expected {}{}", plural(found, what),
                       repeated ? fmt::format("at least {}", count) : std::to_string(count),
                       names.empty() ? "" : " (" + names + ")");
  }
};

template <typename Struct>
std::string operand_error(const Struct& attributes, const Operation& operation) {
  std::array<Expected, 3> expected{Expected("read"), Expected("write"), Expected("update")};
  for (const Operand<Struct>& operand : Struct::kOperands) {
    const Slot slot = slot_of(attributes, operand);
    if (!slot.present) continue;
    Expected& list = expected[static_cast<size_t>(slot.access)];
    ++list.count;
    list.repeated = operand.repeated;
    list.names += fmt::format("{}{}", list.names.empty() ? "" : ", ", operand.name.text);
  }
  for (const Access access : {Access::read, Access::write, Access::update}) {
    const std::string error =
        expected[static_cast<size_t>(access)].error(list_of(operation, access).size());
    if (!error.empty()) return error;
  }
  return "";
}

template <typename Struct>
std::vector<NamedOperand> operands_of(const Struct& attributes, const Operation& operation) {
  std::vector<NamedOperand> operands;
  for (const Operand<Struct>& operand : Struct::kOperands) {
    const Slot slot = slot_of(attributes, operand);
    if (!slot.present) continue;
    const std::vector<TensorId>& list = list_of(operation, slot.access);
    const size_t end = operand.repeated ? list.size() : slot.index + 1;
    for (size_t i = slot.index; i < end; ++i)
      operands.push_back({operand.name, slot.access, list[i]});
  }
  return operands;
}

// Each operand stands at its own position.
template <typename Struct>
constexpr bool is_in_order() {
  for (size_t i = 0; i < Struct::kOperands.size(); ++i)
    if (Struct::kOperands[i].position != i) return false;
  return true;
}
#define SNUG_KIND(Struct, name) static_assert(is_in_order<Struct>());
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

// Calls f(attributes) with the struct of the operation's kind.
template <typename Result, typename Variant, typename F>
Result with_kind(Variant& attributes, F&& f) {
  return std::visit(
      [&]<typename Struct>(Struct& concrete) -> Result {
        if constexpr (std::is_same_v<std::remove_const_t<Struct>, EndOfKinds>)
          return Result();
        else
          return f(concrete);
      },
      attributes);
}

template <typename Struct>
bool add_operand(Struct& attributes, Operation& operation, OperandName name, TensorId tensor) {
  for (const Operand<Struct>& operand : Struct::kOperands) {
    if (operand.name != name || operand.present == nullptr || attributes.*operand.present) continue;
    attributes.*operand.present = true;
    const Slot slot = slot_of(attributes, operand);
    std::vector<TensorId>& list = list_of(operation, slot.access);
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(slot.index), tensor);
    return true;
  }
  return false;
}

template <typename Struct>
bool update_in_place(Struct& attributes, Operation& operation, TensorId part, TensorId target) {
  for (const Operand<Struct>& operand : Struct::kOperands) {
    const Slot slot = slot_of(attributes, operand);
    if (operand.updated == nullptr || !slot.present || slot.access != Access::write) continue;
    if (operation.writes[slot.index] != part) continue;
    operation.writes.erase(operation.writes.begin() + static_cast<std::ptrdiff_t>(slot.index));
    attributes.*operand.updated = true;
    const size_t index = slot_of(attributes, operand).index;
    operation.updates.insert(operation.updates.begin() + static_cast<std::ptrdiff_t>(index),
                             target);
    return true;
  }
  return false;
}

}  // namespace

std::string operand_error(const Operation& operation) {
  if (operation.attributes.index() >= kKindCount) return "has no kind";
  return with_kind<std::string>(operation.attributes, [&](const auto& attributes) {
    return operand_error(attributes, operation);
  });
}

std::vector<NamedOperand> operands_of(const Operation& operation) {
  return with_kind<std::vector<NamedOperand>>(operation.attributes, [&](const auto& attributes) {
    return operands_of(attributes, operation);
  });
}

std::vector<std::string_view> operand_names(const Operation& operation, Access access) {
  return with_kind<std::vector<std::string_view>>(
      operation.attributes, [&]<typename Struct>(const Struct& attributes) {
        std::vector<std::string_view> names;
        for (const Operand<Struct>& operand : Struct::kOperands) {
          const Slot slot = slot_of(attributes, operand);
          if (slot.present && slot.access == access)
            names.resize(operand.repeated ? list_of(operation, access).size() : names.size() + 1,
                         operand.name.text);
        }
        return names;
      });
}

TensorId find_operand(const Operation& operation, OperandName name) {
  for (const NamedOperand& operand : operands_of(operation))
    if (operand.name == name) return operand.tensor;
  return kNone;
}

std::vector<std::pair<TensorId, TensorId>> copies_of(const Operation& operation) {
  const std::vector<TensorId>& to = operation.writes.empty() ? operation.updates : operation.writes;
  const std::vector<TensorId>& from = operation.reads.empty() ? to : operation.reads;
  std::vector<std::pair<TensorId, TensorId>> copies;
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) copies.emplace_back(from[i], to[i]);
  return copies;
}

void replace_operand(Operation& operation, OperandName name, TensorId tensor) {
  const bool replaced = with_kind<bool>(std::as_const(operation.attributes),
                                        [&]<typename Struct>(const Struct& attributes) {
                                          for (const Operand<Struct>& operand : Struct::kOperands) {
                                            const Slot slot = slot_of(attributes, operand);
                                            if (operand.name != name || !slot.present) continue;
                                            list_of(operation, slot.access)[slot.index] = tensor;
                                            return true;
                                          }
                                          return false;
                                        });
  SNUG_CHECK(replaced, "{} has no operand {}", name_of(operation.kind()), name.text);
}

void remove_operand(Operation& operation, OperandName name) {
  const bool removed =
      with_kind<bool>(operation.attributes, [&]<typename Struct>(Struct& attributes) {
        for (const Operand<Struct>& operand : Struct::kOperands) {
          const Slot slot = slot_of(attributes, operand);
          if (operand.name != name || operand.present == nullptr || !slot.present) continue;
          std::vector<TensorId>& list = list_of(operation, slot.access);
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(slot.index));
          attributes.*operand.present = false;
          return true;
        }
        return false;
      });
  SNUG_CHECK(removed, "{} has no optional operand {}", name_of(operation.kind()), name.text);
}

bool add_operand(Operation& operation, OperandName name, TensorId tensor) {
  return with_kind<bool>(operation.attributes, [&](auto& attributes) {
    return add_operand(attributes, operation, name, tensor);
  });
}

bool update_in_place(Operation& operation, TensorId part, TensorId target) {
  return with_kind<bool>(operation.attributes, [&](auto& attributes) {
    return update_in_place(attributes, operation, part, target);
  });
}

}  // namespace snug::program
