// The model card of a merged folder, with what was found out about its drift.
#pragma once

#include "cli/merge_job.h"
#include "cli/merge_outcome.h"
#include "convert/folder/model_card.h"

namespace snug::cli {

convert::CardInputs merge_card(const MergeJob& job, const MergeOutcome& outcome);

}  // namespace snug::cli
