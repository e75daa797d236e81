// The steps that a calibration runs: small models of one to twelve layers, whose operations have
// the kinds, element types and sizes of models between 5 million and a billion parameters. None of
// them is a real model: sizes are powers of two in the ratios that most models keep (an mlp 2.7 or
// 4 times as wide as the hidden state, heads of 64 or 128, one to eight query heads per key head).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/job/job.h"
#include "program/ir/program.h"

namespace snug::bench {

enum class Grid : uint8_t {
  full,   // takes minutes: a quarter of an hour or more where bf16 products are slow
  quick,  // a few seconds: every kind of operation at a few shapes of small models
};

struct CalibrationStep {
  plan::TrainingSpec spec;
  int64_t segment_tokens = 0;  // the tokens of each segment
  int least_repeats = 3;
  double least_seconds = 0.3;  // the shortest time to measure a step for
};

// For example "lora r 16, hidden 1024 mlp 4096 vocab 32000, 2048 tokens, bf16".
std::string describe(const CalibrationStep& step);

// Where the target multiplies bf16, the steps are in bf16, with a coarse grid in f32 and, on a GPU,
// steps that fill it; elsewhere all are in f32.
std::vector<CalibrationStep> calibration_steps(const program::Target& target, Grid grid);

}  // namespace snug::bench
