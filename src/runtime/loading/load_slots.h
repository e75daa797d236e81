// Adapters that requests choose from, from their folders into the slots of a job
// (methods/lora_slots.h).
#pragma once

#include <string>
#include <vector>

#include "methods/lora_slots.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

// Empties all slots, and reads each folder into the slot of its place. The adapters must be those
// for which the slots were planned (plan/spec/adapter_slots.h). A matrix at a time passes through
// heap memory. Throws UserError for infinities and NaN.
void load_slots(const methods::LoraSlots& slots, const std::vector<std::string>& folders,
                Executor& executor);

}  // namespace snug::runtime
