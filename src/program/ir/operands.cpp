#include "program/ir/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/error.h"
#include "program/kinds/dispatch.h"

namespace snug::program {
namespace {

std::string plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// The number of tensors of one access that a kind takes, and the kind's names for them.
struct Expected {
  std::string_view what;  // "read"
  size_t count = 0;
  bool repeated = false;
  std::string names{};

  std::string error(size_t found) const {
    if (repeated ? found >= count : found == count) return "";
    return fmt::format("has {}, expected {}{}", plural(found, what),
                       repeated ? fmt::format("at least {}", count) : std::to_string(count),
                       names.empty() ? "" : " (" + names + ")");
  }
};

// Whether each operand's position is its index in the list.
template <typename Struct>
constexpr bool is_in_order() {
  for (size_t i = 0; i < Struct::kOperands.size(); ++i)
    if (Struct::kOperands[i].position != i) return false;
  return true;
}
#define SNUG_KIND(Struct, name) static_assert(is_in_order<Struct>());
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

constexpr size_t kMostOperands = std::max({
#define SNUG_KIND(Struct, name) Struct::kOperands.size(),
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
});

// An operand of a kind's list, and its place in an operation with these attributes.
struct PlacedOperand {
  OperandName name;
  Slot slot;
  bool repeated = false;
};

// All operands of a kind, in the kind's order.
struct PlacedOperands {
  std::array<PlacedOperand, kMostOperands> list;
  size_t count = 0;

  const PlacedOperand* begin() const { return list.data(); }
  const PlacedOperand* end() const { return list.data() + count; }
};

// Only this is instantiated for each kind; the rest of this file is independent of the kind.
template <typename Struct>
PlacedOperands place(const Struct& attributes) {
  PlacedOperands placed;
  for (const Operand<Struct>& operand : Struct::kOperands)
    placed.list[placed.count++] = {operand.name, slot_of(attributes, operand), operand.repeated};
  return placed;
}

PlacedOperands place(const Operation& operation) {
  return dispatch<PlacedOperands>(operation.attributes,
                                  [](const auto& attributes) { return place(attributes); });
}

// The attribute that says whether the operand at this position is present; null if it always is.
bool* present_flag(Operation& operation, size_t position) {
  return dispatch<bool*>(operation.attributes, [&]<typename Struct>(Struct& attributes) -> bool* {
    const Operand<Struct>& operand = Struct::kOperands[position];
    return operand.present == nullptr ? nullptr : &(attributes.*operand.present);
  });
}

// The attribute that says whether the operand is updated instead of overwritten; null if there is
// no such attribute.
bool* updated_flag(Operation& operation, size_t position) {
  return dispatch<bool*>(operation.attributes, [&]<typename Struct>(Struct& attributes) -> bool* {
    const Operand<Struct>& operand = Struct::kOperands[position];
    return operand.updated == nullptr ? nullptr : &(attributes.*operand.updated);
  });
}

void insert(Operation& operation, const Slot& slot, TensorId tensor) {
  std::vector<TensorId>& list = list_of(operation, slot.access);
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(slot.index), tensor);
}

void erase(Operation& operation, const Slot& slot) {
  std::vector<TensorId>& list = list_of(operation, slot.access);
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(slot.index));
}

}  // namespace

std::string operand_error(const Operation& operation) {
  if (operation.kind() == kNoKind) return "has no kind";
  std::array<Expected, 3> expected{Expected{"read"}, Expected{"write"}, Expected{"update"}};
  for (const PlacedOperand& operand : place(operation)) {
    if (!operand.slot.present) continue;
    Expected& list = expected[static_cast<size_t>(operand.slot.access)];
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

std::vector<NamedOperand> operands_of(const Operation& operation) {
  std::vector<NamedOperand> operands;
  for (const auto& [name, slot, repeated] : place(operation)) {
    if (!slot.present) continue;
    const std::vector<TensorId>& list = list_of(operation, slot.access);
    const size_t end = repeated ? list.size() : slot.index + 1;
    for (size_t i = slot.index; i < end; ++i) operands.push_back({name, slot.access, list[i]});
  }
  return operands;
}

std::vector<std::string_view> operand_names(const Operation& operation, Access access) {
  std::vector<std::string_view> names;
  for (const auto& [name, slot, repeated] : place(operation))
    if (slot.present && slot.access == access)
      names.resize(repeated ? list_of(operation, access).size() : names.size() + 1, name.text);
  return names;
}

TensorId find_operand(const Operation& operation, OperandName name) {
  for (const PlacedOperand& operand : place(operation)) {
    if (operand.name != name || !operand.slot.present) continue;
    const std::vector<TensorId>& list = list_of(operation, operand.slot.access);
    if (operand.slot.index < list.size()) return list[operand.slot.index];
  }
  return kNone;
}

TensorId first_output(const Operation& operation) {
  for (const std::vector<TensorId>* list : {&operation.writes, &operation.updates})
    for (const TensorId id : *list) return id;
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
  for (const PlacedOperand& operand : place(operation)) {
    if (operand.name != name || !operand.slot.present) continue;
    list_of(operation, operand.slot.access)[operand.slot.index] = tensor;
    return;
  }
  SNUG_CHECK(false, "{} has no operand {}", name_of(operation.kind()), name.text);
}

void remove_operand(Operation& operation, OperandName name) {
  const PlacedOperands placed = place(operation);
  for (size_t i = 0; i < placed.count; ++i) {
    const PlacedOperand& operand = placed.list[i];
    bool* const is_present = present_flag(operation, i);
    if (operand.name != name || is_present == nullptr || !operand.slot.present) continue;
    erase(operation, operand.slot);
    *is_present = false;
    return;
  }
  SNUG_CHECK(false, "{} has no optional operand {}", name_of(operation.kind()), name.text);
}

bool add_operand(Operation& operation, OperandName name, TensorId tensor) {
  const PlacedOperands placed = place(operation);
  for (size_t i = 0; i < placed.count; ++i) {
    bool* const is_present = present_flag(operation, i);
    if (placed.list[i].name != name || is_present == nullptr || *is_present) continue;
    *is_present = true;
    insert(operation, place(operation).list[i].slot, tensor);
    return true;
  }
  return false;
}

bool update_in_place(Operation& operation, TensorId part, TensorId target) {
  const PlacedOperands placed = place(operation);
  for (size_t i = 0; i < placed.count; ++i) {
    const Slot& slot = placed.list[i].slot;
    bool* const is_updated = updated_flag(operation, i);
    if (is_updated == nullptr || !slot.present || slot.access != Access::write) continue;
    if (operation.writes[slot.index] != part) continue;
    erase(operation, slot);
    *is_updated = true;
    insert(operation, place(operation).list[i].slot, target);
    return true;
  }
  return false;
}

}  // namespace snug::program
