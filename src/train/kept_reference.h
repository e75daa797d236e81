// Log-probabilities of all documents by the model as training begins, which an objective compares
// with: made in a pass before the first step and kept in the run's folder, so that a run that goes
// on reads what it began with.
#pragma once

#include <filesystem>
#include <optional>

#include "runtime/execution/executor.h"
#include "train/data.h"
#include "train/run_folder.h"

namespace snug::train {

// Fills DataSource::reference of all data: from the file of the run that `folder` has a checkpoint
// to resume from, if it is there, whole and of these data, else by the program `reference`, in
// micro-batches of `spec`. The executor has the model as training begins. Several ranks do not read
// the file, since one might find another than the others; each makes all numbers, and comes to the
// same. Returns the seconds that making them took; nothing where they were read.
std::optional<double> make_reference(const RunFolder& folder, const plan::TrainingSpec& spec,
                                     RunData& data, runtime::Executor& executor);

// Writes them. Throws UserError where the file cannot be written.
void save_reference(const std::filesystem::path& path, const RunData& data);

}  // namespace snug::train
