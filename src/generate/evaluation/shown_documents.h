// The documents that a task shows with their answers before its question (num_fewshot), chosen as
// lm-evaluation-harness chooses them. One object serves one task: what it draws depends on what it
// drew before.
#pragma once

#include <vector>

#include "generate/evaluation/python_random.h"
#include "generate/evaluation/task.h"

namespace snug::generate {

class ShownDocuments {
 public:
  // `documents`: those of the task's split of examples, or the examples that it lists itself.
  ShownDocuments(const Task& task, std::vector<TaskDocument> documents);

  // Those that are shown before the next document that is asked. Throws UserError where there are
  // fewer than num_fewshot.
  std::vector<TaskDocument> before(const TaskDocument& asked);

 private:
  std::vector<TaskDocument> drawn(const TaskDocument& asked);
  std::vector<TaskDocument> sampled(const std::vector<TaskDocument>& from, int64_t count);

  const Task& task_;
  std::vector<TaskDocument> documents_;
  PythonRandom random_;
};

}  // namespace snug::generate
