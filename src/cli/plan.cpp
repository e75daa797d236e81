// `snug plan`: the plan of a training job, as a table or as plan.json. Only the data is loaded,
// where it exists, since its tokens count as memory outside the arenas.
#include <fmt/format.h>

#include "base/console.h"
#include "base/file.h"
#include "cli/picture_file.h"
#include "cli/plan_serving.h"
#include "cli/planned_data.h"
#include "cli/verbs.h"
#include "formats/recipe/recipe.h"
#include "program/work/target.h"
#include "report/plan_page.h"
#include "runtime/execution/rehearsal.h"
#include "runtime/saving/adapter.h"

namespace snug::cli {
namespace {

// With --json the plan itself says that the job does not fit, and what would make it fit.
[[noreturn]] void refuse(const formats::Recipe& recipe, const plan::Verdict& verdict, bool json) {
  try {
    plan::refuse(recipe, verdict);
  } catch (const base::UserError& error) {
    if (json) throw ToldError(error);
    throw;
  }
}

// A run trains one adapter.
void refuse_slots(const formats::Recipe& recipe) {
  for (const char* key : {"adapters", "max_adapters", "max_adapter_rank"})
    if (recipe.is_given(key))
      recipe.fail(key, "is of inference, where requests choose adapters; plan it with mode=serve");
}

int plan_training(const Request& request) {
  const PlanningSession session(request);
  require_picture_file(session.recipe());
  refuse_slots(session.recipe());
  plan::PlannedTraining planned = plan::assemble_training(
      session.inputs(),
      [&](const plan::Job& job) { return runtime::rehearse(job, session.target()); });
  const formats::Recipe& recipe = session.recipe();
  if (planned.spec.is_adapted() && !recipe.adapter.empty())
    runtime::check_adapter(recipe.adapter, runtime::to_train_on(planned), planned.job);
  const plan::Verdict verdict = planned.verdict();
  plan::PlanDocument& document = planned.document;
  document.fits = verdict.fits;
  document.change = verdict.change;

  if (request.json)
    base::print("{}", plan::to_json(document));
  else
    base::print("{}\n{}\n", plan::parameter_line(document), plan::summary(document));
  base::flush_output();
  if (!recipe.picture.empty()) write_picture(recipe, report::plan_page(planned), "plan");
  for (const std::string& notice : planned.notices()) base::say("{}", notice);
  if (!verdict.fits) refuse(recipe, verdict, request.json);
  return 0;
}

}  // namespace

int plan(const Request& request) {
  Request of_job = request;
  return take_plan_mode(of_job) == PlanMode::serve ? plan_serving(of_job) : plan_training(of_job);
}

}  // namespace snug::cli
