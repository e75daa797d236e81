#include "backends/cuda/device/planned_card.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/needs/kind_needs.h"

namespace snug::backends::cuda {

PlannedCard::PlannedCard(const HardwareRow& row, int64_t device_budget_bytes)
    : card_(card_of(row)), facts_(facts_of(row)), device_budget_bytes_(device_budget_bytes) {}

std::string PlannedCard::library_versions() const {
  return fmt::format("planned for {}, compute capability {}, no driver asked", facts_.name,
                     card_.compute_capability);
}

int64_t PlannedCard::capacity_bytes(program::Space space) const {
  if (space != program::Space::device) return 0;
  const int64_t most = facts_.arena_bytes();
  return device_budget_bytes_ > 0 ? std::min(device_budget_bytes_, most) : most;
}

bool PlannedCard::runs(const program::OperationView& view) const { return cuda::runs(view, card_); }

program::Workspace PlannedCard::workspace(const program::OperationView& view) const {
  return cuda::workspace(view, card_);
}

int32_t PlannedCard::launches(const program::OperationView& view) const {
  return cuda::launches(view, card_);
}

size_t PlannedCard::launched_together(const program::Program& program, size_t first) const {
  return cuda::launched_together(program, first);
}

program::Attributes PlannedCard::decide(const program::OperationView& view) const {
  return cuda::decide(view, card_);
}

}  // namespace snug::backends::cuda
