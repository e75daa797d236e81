// `snug merge`: merges an adapter into its model, and says how far the result is from what was
// trained.
#include <fmt/format.h>

#include <optional>

#include "base/console.h"
#include "cli/convert_folder.h"
#include "cli/merge_report.h"
#include "cli/verbs.h"
#include "formats/recipe/recipe.h"

namespace snug::cli {

int merge(const Request& request) {
  const formats::Recipe recipe = request.recipe();
  require_output_dir(recipe, "merge");
  const MergeJob job = merge_job(recipe);
  const convert::FolderMergePlan plan = convert::FolderMerger(job.inputs).plan();
  const MergeText text = merge_text(job);
  std::optional<MergeOutcome> outcome;
  FolderConversion conversion{.summary = fmt::format("{} of {} tensors changed by {}", plan.changed,
                                                     plan.tensors, job.inputs.adapter.string()),
                              .json = {{"model", job.inputs.model.string()},
                                       {"adapter", job.inputs.adapter.string()},
                                       {"tensors", plan.tensors},
                                       {"changed", plan.changed}},
                              .source = job.inputs.model.string(),
                              .costs = merge_costs(job, text),
                              .write = {}};
  conversion.write = [&] {
    outcome = make_merged(job, text, [&](const std::string& line) {
      if (!request.json) base::print("{}\n", line);
    });
    conversion.json.update(drift_json(job, *outcome));
    return outcome->report();
  };
  convert_folder(request, recipe, conversion);
  if (!request.json)
    for (const std::string& line : drift_lines(job, *outcome)) base::print("{}\n", line);
  if (const std::string warning = drift_warning(job, *outcome); !warning.empty())
    base::say("{}", warning);
  return outcome->exit_code();
}

}  // namespace snug::cli
