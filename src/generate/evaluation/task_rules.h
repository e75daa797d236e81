// The parts of a task that say how answers come about and count: generation_kwargs, filter_list,
// metric_list.
#pragma once

#include <string>
#include <vector>

#include "generate/evaluation/task.h"
#include "generate/evaluation/task_map.h"

namespace snug::generate {

// Take their keys out of a task's map. Each throws UserError, with its line, for what is not
// understood.
AnswerRules take_answer_rules(TaskMap& task, const std::string& shot_delimiter);
std::vector<FilterChain> take_filters(TaskMap& task, OutputType output);
std::vector<TaskMetric> take_metrics(TaskMap& task, OutputType output);

}  // namespace snug::generate
