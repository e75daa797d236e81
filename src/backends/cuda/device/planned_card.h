// A GPU that is not present, as a target: programs are lowered, sized and laid out for it in the
// same way as on the GPU itself. Needs neither a driver nor the toolkit.
#pragma once

#include <string>

#include "backends/cuda/device/hardware_table.h"
#include "formats/recipe/choices.h"
#include "program/work/target.h"

namespace snug::backends::cuda {

class PlannedCard : public program::Target {
 public:
  // A budget of 0 means all of the GPU's memory. The budget limits the arena; the GPU's memory
  // remains a limit as well.
  PlannedCard(const HardwareRow& row, int64_t device_budget_bytes);

  std::string name() const override {
    return std::string(base::word_of(formats::BackendName::cuda));
  }
  std::string library_versions() const override;
  int64_t capacity_bytes(program::Space space) const override;
  std::optional<program::DeviceFacts> device() const override { return facts_; }
  bool host_reaches_device() const override { return false; }
  int64_t alignment_bytes() const override { return kArenaAlignment; }
  bool runs(const program::OperationView& view) const override;
  program::Workspace workspace(const program::OperationView& view) const override;
  program::Attributes decide(const program::OperationView& view) const override;
  int32_t launches(const program::OperationView& view) const override;
  size_t launched_together(const program::Program& program, size_t first) const override;

 private:
  Card card_;
  program::DeviceFacts facts_;
  int64_t device_budget_bytes_;
};

}  // namespace snug::backends::cuda
