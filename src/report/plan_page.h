// A plan as an HTML page: memory over a step, the channels, the layers, where the time goes, and
// what other settings would take.
#pragma once

#include <string>

#include "plan/job/assembly.h"
#include "report/html.h"

namespace snug::report {

// Text such as "llama-3.1-8b, qlora".
std::string title_of(const plan::PlanDocument& document);

// Adds everything that is known of a job before it runs, except for the comparison with other
// settings.
void add_plan(const plan::PlannedTraining& planned, Page& page);

// The whole page. It also plans the job with other settings, and takes as long as those plans take.
std::string plan_page(const plan::PlannedTraining& planned);

}  // namespace snug::report
