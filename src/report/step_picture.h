// The planned course of a step: what memory holds at each moment, and what each channel does. Pure
// functions of a plan.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/job/assembly.h"
#include "plan/job/memory.h"

namespace snug::report {

// The bytes that a memory space holds at one moment, by role.
struct MemoryMoment {
  double seconds = 0;  // since the step began
  plan::RoleBytes by_role{};
  int64_t total() const { return plan::total_of(by_role); }
};

// A channel's work on one layer in one phase, without a gap long enough to see.
struct ChannelSpan {
  program::Channel channel = program::Channel::compute;
  program::Phase phase = program::Phase::forward;
  int32_t layer = -1;
  double start_seconds = 0;
  double seconds = 0;
};

// A program of the step: each is drawn once, however often the step runs it.
struct DrawnProgram {
  std::string name;
  int64_t runs = 1;
  double start_seconds = 0;
  double seconds = 0;
};

struct StepPicture {
  double seconds = 0;  // of the drawn programs together
  std::vector<DrawnProgram> programs;
  std::array<std::vector<MemoryMoment>, program::kSpaceCount> memory;
  std::vector<ChannelSpan> spans;
};

// The most moments that are kept of one program: of moments close together, the one with the most
// bytes is kept.
inline constexpr int kMaxMomentsOfProgram = 300;

StepPicture picture_step(const plan::PlannedTraining& planned);

}  // namespace snug::report
