// Which steps a calibration runs: small models, of one to twelve layers, whose operations have the
// kinds, element types and sizes of models between 5 million and a billion parameters. They stand
// for no model: sizes are powers of two and the ratios that most models keep (mlp 2.7 or 4 times as
// wide as the hidden state, heads of 64 or 128, one to eight query heads a key head).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/job/job.h"
#include "program/ir/program.h"

namespace snug::bench {

enum class Grid : uint8_t {
  full,   // minutes: a quarter of an hour or more where bf16 is multiplied slowly
  quick,  // a few seconds: every kind of operation at a few shapes of small models
};

struct CalibrationStep {
  plan::TrainingSpec spec;
  int64_t segment_tokens = 0;  // of all its segments
  int least_repeats = 3;
  double least_seconds = 0.3;  // of measured steps
};

// "lora r 16, hidden 1024 mlp 4096 vocab 32000, 2048 tokens, bf16".
std::string describe(const CalibrationStep& step);

// The steps are in bf16 where the target multiplies it, with a coarse grid in f32 next to and, on a
// card, steps that fill it; else all in f32.
std::vector<CalibrationStep> calibration_steps(const program::Target& target, Grid grid);

}  // namespace snug::bench
