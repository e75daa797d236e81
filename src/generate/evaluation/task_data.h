// The documents of a task: which files have them (dataset_path, dataset_kwargs, the splits), and
// their records as template values.
#pragma once

#include <string>
#include <vector>

#include "generate/evaluation/task.h"
#include "generate/evaluation/task_map.h"

namespace snug::generate {

// Takes the keys that say where a task's data are out of its map, and sets the task's files. Throws
// UserError for files that are not there, and for data that only the harness's Python makes.
void take_task_data(TaskMap& map, Task& task);

// Reads files of records, one after the other. Throws UserError, with its line, for a record that
// is no object of JSON.
std::vector<TaskDocument> read_documents(const std::vector<std::string>& files);

}  // namespace snug::generate
