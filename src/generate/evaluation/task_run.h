// Runs tasks on a model: all their texts are scored with the model opened once, all their prompts
// answered with it opened once more.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "generate/evaluation/figures.h"
#include "generate/evaluation/run_of_model.h"
#include "generate/evaluation/task.h"

namespace snug::generate {

struct TaskResult {
  std::string name;
  int64_t documents = 0;
  std::vector<Figure> figures{};
  nlohmann::json samples = nlohmann::json::array();  // one object for each document
};

// One result for each task, in their order. Throws UserError.
std::vector<TaskResult> run_tasks(const ModelToAsk& model, std::span<const Task> tasks,
                                  RunOfModel& run);

}  // namespace snug::generate
