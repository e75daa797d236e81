// The metrics of a run that goes on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "formats/folder/json_lines.h"

namespace snug::train {

// Opens metrics.jsonl after `step`, without the lines of later steps, and says on standard error
// which earlier ones it lacks. Throws UserError where the file cannot be read or written.
formats::JsonLines resume_metrics(const std::filesystem::path& path, int64_t step);

}  // namespace snug::train
