// `snug plan`: the plan of a training job, as a table or as plan.json. Nothing is loaded but the
// data, where it is there, since its tokens count as memory outside the arenas.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/console.h"
#include "cli/open_target.h"
#include "cli/planned_data.h"
#include "cli/verbs.h"
#include "plan/document.h"
#include "plan/fit.h"
#include "plan/spec.h"
#include "runtime/adapter.h"
#include "runtime/process_memory.h"
#include "runtime/rehearsal.h"
#include "train/data.h"
#include "train/row_load.h"

namespace snug::cli {
namespace {

// As JSON the plan says itself that it does not fit, and what would.
[[noreturn]] void refuse(const formats::Recipe& recipe, const plan::Verdict& verdict, bool json) {
  try {
    plan::refuse(recipe, verdict);
  } catch (const base::UserError& error) {
    if (json) throw ToldError(error);
    throw;
  }
}

}  // namespace

int plan(const Request& request) {
  formats::Recipe recipe = request.recipe(kPlannedWithout);
  recipe.require("model");
  const models::ModelSource model = models::find_model(recipe.model);
  recipe = plan::resolve(std::move(recipe), model.config);
  const auto target = open_target(recipe);
  plan::TrainingSpec spec = plan::training_spec(recipe, model.config, *target);
  const std::optional<train::RunData> data = read_planned_data(recipe, model, spec);

  const plan::Job job = plan::plan_training(spec, *target);
  if (spec.method == plan::MethodKind::lora && !recipe.adapter.empty())
    runtime::check_adapter(recipe.adapter, spec.lora, job);
  std::optional<program::Load> load;
  if (data) load = train::load_of(data->training->rows);
  plan::PlanDocument document = plan::describe_training(recipe, spec, job, *target, load);
  plan::set_outside(document, runtime::rehearsed_outside_bytes(job, *target));
  if (data)
    document.reading_bytes =
        std::max(data->reading_bytes, runtime::process_memory().resident_peak_bytes);
  const plan::Verdict verdict =
      plan::judge_fit(recipe, model, document, *target, data ? data->shape() : plan::RowShape{});
  document.fits = verdict.fits;
  document.change = verdict.change;

  if (request.json)
    fmt::print("{}", plan::to_json(document));
  else
    fmt::print("{}\n{}\n", plan::parameter_line(document), plan::summary(document));
  base::flush_output();
  if (!verdict.fits) refuse(recipe, verdict, request.json);
  return 0;
}

}  // namespace snug::cli
