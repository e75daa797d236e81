// What the host gives to the programs of a micro-batch, besides its rows, and reads from them. In
// training and in evaluation alike.
#pragma once

#include <optional>
#include <span>

#include "methods/step_inputs.h"
#include "runtime/execution/executor.h"

namespace snug::train {

// The numbers by which sums over rows become means, of an objective that has some: from the counts
// of all rows that such a mean is over.
void set_inputs(runtime::Executor& executor, const methods::RowCounts& counts);

// Runs the program of a micro-batch, after that of the model which it is compared with.
void run_batch(runtime::Executor& executor, program::ProgramName program);

// Awaits what the step measured of dropout: the mean over its tokens of the divergence, in nats, of
// training from making the answers. Nothing where the job measures none.
std::optional<double> read_dropout(runtime::Executor& executor);

// Awaits what the program that ran measures next to the loss, and reads as many of the tensor
// kMeasuresName as there is room for.
void read_measures(runtime::Executor& executor, std::span<float> measures);

}  // namespace snug::train
