// The runs of a folder as JSON, also while they go on. Nothing is written.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace snug::serve {

// [{"name", "changed": seconds since 1970}, ...], the one that changed last first. Empty where the
// folder is not there.
nlohmann::ordered_json runs_in(const std::filesystem::path& folder);

// {"name", "curves": {KEY: {"steps", "values"}}, "plan", "measured", "recipe"}: what metrics.jsonl,
// plan.json, measured.json and recipe.yaml of a run have; null for a file that is not there. Throws
// ApiError for a name that runs_in() does not list, and UserError for files that cannot be read.
nlohmann::ordered_json run_in(const std::filesystem::path& folder, const std::string& name);

}  // namespace snug::serve
