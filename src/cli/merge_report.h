// What is told of a merge: a small table for people, and the same as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/merge_outcome.h"

namespace snug::cli {

// Lines without ends: how far each variant is from what was trained, and which is kept. Where
// nothing was measured, why.
std::vector<std::string> drift_lines(const MergeJob& job, const MergeOutcome& outcome);
// Where the result is farther than max_drift: how far, and what to do. Else empty.
std::string drift_warning(const MergeJob& job, const MergeOutcome& outcome);

nlohmann::ordered_json drift_json(const MergeJob& job, const MergeOutcome& outcome);

}  // namespace snug::cli
