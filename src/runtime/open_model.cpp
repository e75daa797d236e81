#include "runtime/open_model.h"

#include <fmt/format.h>

#include "models/families.h"
#include "models/open_weights.h"
#include "runtime/check_weights.h"

namespace snug::runtime {

models::ModelSource open_model(const formats::Recipe& recipe) {
  recipe.require("model");
  models::ModelSource model = models::find_model(recipe.model);
  if (model.folder.empty() && recipe.init != formats::Init::random)
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give the folder "
                                     "of a model, or init=random to measure speed and memory",
                                     recipe.model));
  if (recipe.init != formats::Init::random)
    check_weights(models::open_weights(model.folder, models::stack_of(model.config)), model.config);
  return model;
}

}  // namespace snug::runtime
