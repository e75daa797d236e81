// What an evaluation prints: figures with their standard errors, as lines or as one JSON object.
#pragma once

#include <span>

#include "generate/evaluation/asked_data.h"
#include "generate/evaluation/task_run.h"
#include "generate/evaluation/text_perplexity.h"

namespace snug::generate {

void report_data(const AskedData& asked, bool json);
void report_text(const TextPerplexity& text, bool json);
void report_tasks(std::span<const TaskResult> results, const RunOfModel& run, bool json);

}  // namespace snug::generate
