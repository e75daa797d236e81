// `snug plan`: the plan of a training job, as a table or as plan.json. Nothing is loaded but the
// data, where it is there, since its tokens count as memory outside the arenas.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "cli/open_target.h"
#include "cli/verbs.h"
#include "plan/document.h"
#include "plan/fit.h"
#include "plan/spec.h"
#include "train/data.h"
#include "train/process_memory.h"
#include "train/row_load.h"

namespace snug::cli {
namespace {

// A plan may be made before the data is; what cannot be read yet is said, not counted.
std::optional<train::RunData> read_data(const formats::Recipe& recipe,
                                        const models::ModelSource& model,
                                        const plan::TrainingSpec& spec) {
  if (recipe.data.empty()) return std::nullopt;
  const auto without = [](const std::string& path, const char* reason) {
    fmt::print(stderr, "planned without the tokens of data {}: {}\n", path, reason);
    return std::nullopt;
  };
  for (const std::string& path : {recipe.data, recipe.eval_data})
    if (!path.empty() && !std::filesystem::exists(path))
      return without(path, "the file is not there");
  if (!train::has_tokenizer_for(recipe, model))
    return without(recipe.data, "a built-in shape has no tokenizer");
  return train::load_data(recipe, model, spec.row_segments);
}

}  // namespace

int plan(const Request& request) {
  formats::Recipe recipe = request.recipe();
  recipe.require("model");
  const models::ModelSource model = models::find_model(recipe.model);
  recipe = plan::resolve(std::move(recipe), model.config);
  const auto target = open_target(recipe);
  plan::TrainingSpec spec = plan::training_spec(recipe, model.config, *target);
  std::optional<train::RunData> data = read_data(recipe, model, spec);
  if (data) data->shape(spec);
  train::release_freed_memory();

  const plan::Job job = plan::plan_training(spec, *target);
  std::optional<program::Load> load;
  if (data) load = train::load_of(data->training->rows);
  plan::PlanDocument document = plan::describe_training(recipe, spec, job, *target, load);
  plan::set_outside(document, train::outside_bytes());
  const plan::Verdict verdict = plan::judge_fit(recipe, model, document, *target);
  document.fits = verdict.fits;
  document.change = verdict.change;

  if (request.json)
    fmt::print("{}", plan::to_json(document));
  else
    fmt::print("{}\n{}\n", plan::parameter_line(document), plan::summary(document));
  std::fflush(stdout);
  if (!verdict.fits) plan::refuse(recipe, verdict);
  return 0;
}

}  // namespace snug::cli
