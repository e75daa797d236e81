// Going on from a checkpoint: that it is of this run, that its numbers are those of this data, and,
// of those that resume_from_checkpoint=auto may take, the newest whose bytes are all as written.
#pragma once

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "runtime/execution/executor.h"
#include "runtime/process/job_ranks.h"
#include "runtime/saving/trainer_state.h"
#include "text/row/row_source.h"
#include "train/data.h"
#include "train/run_folder.h"

namespace snug::train {

// Throws UserError unless the state that folder.checkpoint names can be one of the run `now`: its
// identity, as far as it is known before anything was loaded, and its place in the data. Tells on
// standard error what else differs.
void check_checkpoint(const RunFolder& folder, const formats::Recipe& recipe,
                      const runtime::RunIdentity& now, text::RowSource& rows);

// The recipe, which says max_length=auto, with numbers in place of that, and tells which: the
// length that the run of folder.checkpoint had, where these data and this recipe could have it,
// else the one that is chosen. Makes the rows of the data so. Of several ranks the first chooses
// for all. All must call it; what the first throws ends the others, and so does it that ranks have
// other data.
formats::Recipe with_settled_length(const RunFolder& folder, const plan::TrainingInputs& inputs,
                                    RunData& data, const plan::MeasureProcess& measure,
                                    const runtime::Ranks& ranks);

// The recipe, which says per_device_train_batch_size=auto, with numbers in place of that, and tells
// which: those that the run of folder.checkpoint had, so that it goes on to the same bits, else
// those that are chosen. Of several ranks the first chooses for all: by their own calibrations they
// might choose otherwise. All must call it; what the first throws ends the others.
formats::Recipe with_settled_rows(const RunFolder& folder, const plan::TrainingInputs& inputs,
                                  const plan::MeasureProcess& measure, const runtime::Ranks& ranks);

// Restores folder.checkpoint, after the model was loaded and `now` is complete. One that is damaged
// is named on standard error and the next older one is taken, and is what `folder` names then,
// where the recipe leaves the choice to Snug (auto); else throws base::DamagedFile.
runtime::TrainerState restore(RunFolder& folder, const formats::Recipe& recipe,
                              const runtime::RunIdentity& now, text::RowSource& rows,
                              const models::ModelConfig& config, runtime::Executor& executor);

}  // namespace snug::train
