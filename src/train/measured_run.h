// What was measured of a run: the memory of its process, and what was read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/document/measured.h"
#include "program/work/device_facts.h"
#include "train/data.h"

namespace snug::train {

// The sources of training, then those of evaluation sets.
std::vector<plan::MeasuredSource> measured_sources(const RunData& data);

// Adds the memory of this process, which held `peak_before_job` bytes at most before it was
// allocated.
// `card`: the device, where it has memory of its own.
void add_memory(plan::Measured& measured, int64_t peak_before_job,
                const std::optional<program::DeviceFacts>& card);

}  // namespace snug::train
