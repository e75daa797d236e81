// The model that an evaluation asks, and what asking it took.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/inference.h"
#include "formats/recipe/recipe.h"
#include "models/config/config.h"
#include "text/tokenizer/tokenizer.h"

namespace snug::generate {

struct ModelToAsk {
  const formats::Recipe& recipe;
  const models::ModelSource& source;
  const text::Tokenizer& tokenizer;
};

// Of one or two times that the model was opened: to score texts, and to answer.
struct RunOfModel {
  double seconds = 0;         // of running it, without loading
  int64_t planned_bytes = 0;  // of the arenas, the larger of the two
  nlohmann::json device{};    // what the operating system counts of them, the larger of the two

  void add(double more_seconds, const engine::Inference& inference) {
    seconds += more_seconds;
    if (inference.arena_bytes() < planned_bytes) return;
    planned_bytes = inference.arena_bytes();
    device = inference.device_json();
  }
};

}  // namespace snug::generate
