#include "bench/recipe_step.h"

#include "backends/recipe_backend.h"
#include "plan/choice/choose_rows.h"
#include "plan/job/assembly.h"
#include "plan/spec/resolve.h"

namespace snug::bench {

RecipeStep recipe_step(const formats::Recipe& given) {
  given.require("model");
  const models::ModelSource model = models::find_model(given.model);
  RecipeStep made;
  made.recipe = plan::resolve(given, model.config);
  made.backend = backends::open_backend(made.recipe);
  made.recipe = plan::with_chosen_rows({made.recipe, model, *made.backend});
  made.step.spec = plan::assemble_training({made.recipe, model, *made.backend}).spec;
  made.step.segment_tokens = made.step.spec.row_tokens.decoder() / made.step.spec.row_segments;
  return made;
}

}  // namespace snug::bench
