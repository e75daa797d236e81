// tasks=FILE.yaml: tasks in the form of lm-evaluation-harness's task files. The file has one task,
// a list of them, or a group with its tasks; a task may include another file.
#pragma once

#include <string>
#include <vector>

#include "generate/evaluation/task.h"

namespace snug::generate {

// Throws UserError, with file and line, for what is not understood, and where files of data are
// missing.
std::vector<Task> read_tasks(const std::string& path);

}  // namespace snug::generate
