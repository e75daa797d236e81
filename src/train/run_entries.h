// What a run writes into its folder, and what it may remove there: only what a run of Snug wrote,
// and nothing that the job reads.
#pragma once

#include <array>
#include <filesystem>
#include <string>

#include "formats/folder/run_mark.h"
#include "formats/recipe/recipe.h"
#include "train/run_folder.h"

namespace snug::train {

using formats::kRunMark;

void mark_run_folder(const std::filesystem::path& folder);

// The first entry, by name, that a run of Snug which was killed before its first checkpoint would
// not have left; empty when there is none.
std::string foreign_to_a_start(const std::filesystem::path& folder);

// Throws UserError unless all that the run will remove or replace in its folder was written by a
// run of Snug, is as it was written, and is not read by the job, by whatever path.
void check_removals(const RunFolder& folder, const formats::Recipe& recipe);

// Removes with overwrite_output_dir what an earlier run left: all of it, or the later checkpoints
// where that run goes on. It comes after check_removals.
void remove_earlier_run(const RunFolder& folder, const formats::Recipe& recipe);

}  // namespace snug::train
