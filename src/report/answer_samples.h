// Answers that the last evaluation of a run generated, as a table: what was asked, what the model
// answered and what was expected.
#pragma once

#include <filesystem>

#include "report/html.h"

namespace snug::report {

// Adds the lines of the last step of `samples` (samples.jsonl), under a heading. Nothing where
// there is no such file, or no line in it. Throws UserError where it cannot be read.
void add_answer_samples(const std::filesystem::path& samples, Page& page);

}  // namespace snug::report
