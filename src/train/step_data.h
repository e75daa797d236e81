// What the steps of a run train on: rows of documents (document_steps.h), or answers that the model
// makes in between (rewards/answer_steps.h). One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "methods/step_inputs.h"
#include "program/ir/program_name.h"

namespace snug::train {

// A number that is reported of a step, under this name.
struct NamedMeasure {
  std::string name;
  double value = 0;       // no number where there is nothing to take a mean of
  bool is_shown = false;  // on the terminal, too
};

class StepData {
 public:
  StepData() = default;
  virtual ~StepData() = default;
  StepData(const StepData&) = delete;
  StepData& operator=(const StepData&) = delete;
  StepData(StepData&&) = delete;
  StepData& operator=(StepData&&) = delete;

  // A step, counted from 1, and the rows of the run that it takes.
  struct Step {
    int64_t number = 0;
    int64_t first_row = 0;
    int64_t rows = 0;
  };

  // The rows that a whole step of all ranks takes.
  virtual int64_t step_rows() const = 0;
  virtual int64_t rows_per_epoch() = 0;
  virtual bool ends_epoch(const Step& step) = 0;

  // Whether begin() runs the model, so that the step before must be done.
  virtual bool runs_model(int64_t /*step*/) const { return false; }
  // Makes what the step trains on ready, and counts it. Nothing: the signal came.
  virtual std::optional<methods::RowCounts> begin(const Step& step,
                                                  const std::atomic<int>& stop_signal) = 0;

  // These are of the step that was begun last. Its micro-batches on a rank, at least one:
  virtual int64_t micro_batches() const = 0;
  // The row of the step with which the micro-batch of this rank begins, from which its random
  // numbers follow.
  virtual int64_t first_row_of(int64_t micro) const = 0;
  // Fills the batch tensors of the program. Allocates nothing.
  virtual void load(program::ProgramName program, int64_t micro) = 0;
  // What is reported next to what the programs measure.
  virtual std::span<const NamedMeasure> measures() const { return {}; }

  // What a checkpoint after this step must hold so that the next one is the same; empty: nothing
  // but the position.
  virtual std::string state(int64_t /*step*/) const { return ""; }
  virtual void restore(const std::string& /*state*/) {}
};

}  // namespace snug::train
