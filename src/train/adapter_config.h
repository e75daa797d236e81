// What a folder says of the adapter in it, as PEFT reads it (adapter_config.json).
#pragma once

#include "formats/adapter/adapter_config.h"
#include "formats/recipe/recipe.h"
#include "plan/job/job.h"

namespace snug::train {

// The config of the adapter that a job of this recipe trains on this model.
formats::AdapterConfig adapter_config(const formats::Recipe& recipe,
                                      const models::ModelConfig& model, const plan::Job& job);

}  // namespace snug::train
