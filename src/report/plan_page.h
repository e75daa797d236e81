// A plan as a page: memory over a step, the channels, layers, where the time goes, and what other
// settings would take.
#pragma once

#include <string>

#include "plan/job/assembly.h"
#include "report/html.h"

namespace snug::report {

// "llama-3.1-8b, qlora".
std::string title_of(const plan::PlanDocument& document);

// Adds what is known of a job before it runs, without other settings.
void add_plan(const plan::PlannedTraining& planned, Page& page);

// The whole document. Plans the job with other settings too, and takes as long as so many plans.
std::string plan_page(const plan::PlannedTraining& planned);

}  // namespace snug::report
