// What a layout takes, without giving offsets to the tensors of programs, which is most of its
// work: for what is compared with other jobs and never run.
#pragma once

#include <cstdint>
#include <span>

#include "passes/memory/layout.h"

namespace snug::passes {

// Lays out as `layout` does, with no offsets, and with arenas that are as small as any layout could
// make them: arena_bytes of a space is its lower_bound_bytes().
Layout layout_sizes(std::span<const program::Program> programs, int64_t alignment_bytes);

}  // namespace snug::passes
