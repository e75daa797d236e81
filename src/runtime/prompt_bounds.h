// The bounds by which attention reads prompts (models/forward.h): all tokens of a program, and all
// vectors of a prompt, whatever the batch. So they are set once, before a program's first run.
#pragma once

#include <span>

#include "backends/backend.h"
#include "program/program.h"

namespace snug::runtime {

// Writes the host's sides, of which `tensors` are the buffers, as those of all of the program.
void set_prompt_bounds(const program::Program& program, std::span<const backends::Buffer> tensors);

}  // namespace snug::runtime
