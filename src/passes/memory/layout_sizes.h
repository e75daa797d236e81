// The sizes of a layout without offsets for program tensors, whose placement is most of the work.
// For jobs that are only compared with others and never run.
#pragma once

#include <cstdint>
#include <span>

#include "passes/memory/layout.h"

namespace snug::passes {

// Lays out as `layout` does, but without offsets for program tensors and with the smallest arenas
// that any layout could have: arena_bytes of a space is its lower_bound_bytes().
Layout layout_sizes(std::span<const program::Program> programs, int64_t alignment_bytes);

}  // namespace snug::passes
