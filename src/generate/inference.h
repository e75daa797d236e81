// A model opened for inference: planned, allocated and loaded once, then run as often as wanted.
// One thread drives it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "plan/job/assembly.h"
#include "runtime/loading/load_weights.h"
#include "runtime/session.h"

namespace snug::generate {

class Inference {
 public:
  // Plans within the recipe's budget, then allocates exactly that, loads the weights (or draws
  // them, with init=random) and the adapter that the recipe names. Throws UserError. Without a
  // number of threads in the recipe a small model gets fewer than there are cores.
  Inference(const formats::Recipe& recipe, models::ModelSource model,
            const plan::InferenceShape& shape);
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  const models::ModelConfig& model() const { return model_.config; }
  const plan::InferenceShape& shape() const { return plan_.spec.shape; }
  runtime::Executor& executor() { return session_.executor(); }
  // What "device" says in a command's JSON: the bytes of the device's arenas as the system counts
  // them, null where it does not tell.
  nlohmann::json device_json() const;

 private:
  void load(const formats::Recipe& recipe);

  models::ModelSource model_;
  plan::PlannedInference plan_;
  runtime::Session session_;
};

}  // namespace snug::generate
