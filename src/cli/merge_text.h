// The text on which a merged model is compared with what was trained.
#pragma once

#include <string>
#include <vector>

#include "cli/merge_job.h"
#include "generate/compared_documents.h"

namespace snug::cli {

struct MergeText {
  std::string source;                                 // what it is, for people
  std::vector<generate::ComparedDocument> documents;  // empty: there is none
  std::string missing;                                // why, and what to give
};

// The command's eval_data, else the evaluation data of the run that made the adapter, with the
// run's keys about data, which those of the command replace. Throws UserError for data that the
// command names and that cannot be read.
MergeText merge_text(const MergeJob& job);

}  // namespace snug::cli
