#include "runtime/loading/open_model.h"

#include <fmt/format.h>

#include <utility>

#include "models/families/families.h"
#include "models/stored/open_weights.h"
#include "plan/spec/adapter_tables.h"
#include "runtime/loading/load_weights.h"

namespace snug::runtime {

namespace {

models::ModelSource find_weights(const formats::Recipe& recipe) {
  recipe.require("model");
  models::ModelSource model = models::find_model(recipe.model);
  if (model.folder.empty() && recipe.init != formats::Init::random)
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give the folder "
                                     "of a model, or init=random to measure speed and memory",
                                     recipe.model));
  return model;
}

void check_files(const formats::Recipe& recipe, const models::ModelSource& model) {
  if (recipe.init != formats::Init::random)
    check_weights(models::open_weights(model.folder, models::stack_of(model.config)), model.config);
}

}  // namespace

models::ModelSource open_model(const formats::Recipe& recipe) {
  models::ModelSource model = find_weights(recipe);
  if (!recipe.adapter.empty())
    model.config = plan::with_adapter_tables(model.config, recipe.adapter);
  check_files(recipe, model);
  return model;
}

models::ModelSource open_model_to_train(const formats::Recipe& recipe) {
  models::ModelSource model = find_weights(recipe);
  check_files(recipe, model);
  return model;
}

}  // namespace snug::runtime
