// What a task asks of one document: the texts before an answer, with examples where the task has
// some, and what is expected.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generate/evaluation/task.h"

namespace snug::generate {

struct TaskQuestion {
  // What is read, and what follows it and is scored; generate_until: one context, and no
  // continuation; loglikelihood_rolling: one continuation without a context.
  struct Pair {
    std::string context;
    std::string continuation;
  };
  std::vector<Pair> pairs;
  // multiple_choice: the choices' texts by which acc_norm and acc_bytes divide, and the numbers of
  // those that are right; none where what is expected is none of the choices.
  std::vector<std::string> choices{};
  std::vector<int64_t> right{};
  std::vector<std::string> expected{};  // generate_until: each of them is right
  std::string text{};  // loglikelihood_rolling: what words and bytes are counted of
  base::Location where{};
};

// `shown`: the documents that come before it with their answers. Throws UserError, with the
// document's place, for fields that are missing or of another type than they must have.
TaskQuestion task_question(const Task& task, const TaskDocument& document,
                           std::span<const TaskDocument> shown);

}  // namespace snug::generate
