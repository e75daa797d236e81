// layout: gives every tensor an offset in its space's arena, by when it is alive.
//
//   arena = run tensors + the largest stage
//   stage = step tensors + the largest program
//
// Tensors of lifetime run have one offset in all programs of a job, tensors of lifetime step in all
// programs of a stage (they are matched by name). Stages overlay each other, and so do the program
// tensors of different programs. Within a program, tensors whose lives do not overlap share bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/ir/program.h"
#include "program/ir/program_name.h"

namespace snug::passes {

struct StageLayout {
  int64_t step_bytes = 0;
  int64_t program_bytes = 0;  // of the largest program
  int64_t live_bytes = 0;     // the largest sum of live bytes within a program
};

struct SpaceLayout {
  int64_t run_bytes = 0;
  std::array<StageLayout, program::kStageCount> stages;
  int64_t arena_bytes = 0;
  std::vector<int64_t> live_bytes;  // of each program: the largest sum of live bytes within it

  StageLayout& of(program::Stage stage) { return stages[static_cast<size_t>(stage)]; }
  const StageLayout& of(program::Stage stage) const { return stages[static_cast<size_t>(stage)]; }
  // Run tensors, plus the stage with the most step and live bytes.
  int64_t lower_bound_bytes() const;
};

struct Layout {
  std::array<SpaceLayout, program::kSpaceCount> spaces;
  std::vector<program::Stage> stages;  // of each program
  // offsets[p][t]: the offset of tensor t of program p in its space's arena; a view's offset
  // includes its base's.
  std::vector<std::vector<int64_t>> offsets;
};

// Fails a CHECK when two programs disagree about a shared tensor.
Layout layout(std::span<const program::Program> programs, int64_t alignment_bytes);

// The operations [first, last] during which a program tensor's bytes are needed. A tensor that no
// operation touches (staging memory) lives throughout the program.
struct Interval {
  int32_t first = 0;
  int32_t last = 0;
};
std::vector<Interval> live_intervals(const program::Program& program);

}  // namespace snug::passes
