#include "generate/inference.h"

#include <fmt/format.h>

#include "runtime/adapter.h"
#include "runtime/load_weights.h"
#include "runtime/random_weights.h"

namespace snug::generate {
namespace {

std::unique_ptr<backends::Backend> open_backend(const formats::Recipe& recipe) {
  const char* name = recipe.backend == formats::BackendName::cpu ? "cpu" : "reference";
  return backends::open_backend(name, {.threads = static_cast<int>(recipe.threads),
                                       .device_memory_bytes = recipe.device_memory});
}

}  // namespace

models::ModelSource open_model(const formats::Recipe& recipe) {
  recipe.require("model");
  models::ModelSource model = models::find_model(recipe.model);
  if (model.folder.empty() && recipe.init != formats::Init::random)
    recipe.fail("model", fmt::format("\"{}\" is a built-in shape without weights; give the folder "
                                     "of a model, or init=random to measure speed and memory",
                                     recipe.model));
  return model;
}

Inference::Inference(const formats::Recipe& recipe, models::ModelSource model,
                     const InferenceShape& shape)
    : model_(std::move(model)),
      backend_(open_backend(recipe)),
      plan_(plan_in_budget(recipe, model_.config, shape, *backend_)),
      executor_(plan_.job, *backend_) {
  load(recipe);
}

void Inference::load(const formats::Recipe& recipe) {
  if (recipe.init == formats::Init::random)
    runtime::random_weights(model_.config, recipe.seed, static_cast<int>(recipe.threads),
                            executor_);
  else
    runtime::load_weights(model_.folder, model_.config, executor_);
  if (plan_.spec.adapted) runtime::load_adapter(recipe.adapter, plan_.spec.lora, executor_);
}

}  // namespace snug::generate
