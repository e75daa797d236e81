// What is recorded of an optimizer step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "train/step_data.h"

namespace snug::train {

// One optimizer step as it is logged: metrics.jsonl, the terminal and the log show the same.
struct StepMetrics {
  int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  // The loss that balances experts, without its factor, with which `loss` has it.
  std::optional<double> aux_loss{};
  double grad_norm = 0;
  // These come with loss scaling: the scale of the next step, and the steps so far that were
  // skipped.
  std::optional<double> loss_scale{};
  int64_t skipped_steps = 0;
  double learning_rate = 0;
  int64_t tokens = 0;          // of documents, without padding
  int64_t trained_tokens = 0;  // that carried loss
  double step_seconds = 0;
  double tokens_per_second = 0;
  int64_t resident_bytes = 0;
  // What the objective measures next to the loss, by its names; what is no number, a mean over
  // none, is not reported.
  static constexpr size_t kMaxMeasures = 12;
  std::span<const std::string_view> measure_names{};
  std::array<float, kMaxMeasures> measures{};
  std::span<const NamedMeasure> of_data{};  // what is known of what the step trained on
};

// Whether users look at this measure, and it is a number; metrics.jsonl has the others too.
bool is_shown_measure(const StepMetrics& metrics, size_t measure);

// The metrics as one JSON object, in place of what the line was; allocates only where they are
// longer than any before.
void write_json(const StepMetrics& metrics, std::string& line);

}  // namespace snug::train
