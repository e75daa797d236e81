#include "bench/recipe_step.h"

#include "backends/recipe_backend.h"
#include "plan/spec.h"

namespace snug::bench {

RecipeStep recipe_step(const formats::Recipe& given) {
  given.require("model");
  const models::ModelConfig model = models::find_model(given.model).config;
  RecipeStep made;
  made.recipe = plan::resolve(given, model);
  made.backend = backends::open_backend(made.recipe);
  made.step.spec = plan::training_spec(made.recipe, model, *made.backend);
  made.step.segment_tokens = made.step.spec.row_tokens / made.step.spec.row_segments;
  return made;
}

}  // namespace snug::bench
