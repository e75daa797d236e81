#include "train/adapter_config.h"

#include <algorithm>
#include <vector>

#include "methods/method.h"
#include "models/weights.h"

namespace snug::train {

formats::AdapterConfig adapter_config(const formats::Recipe& recipe,
                                      const models::ModelConfig& model, const plan::Job& job) {
  const std::vector<models::Weight> weights = models::weights_of(model);
  const std::vector<program::Tensor> tensors = plan::adapter_tensors(job);
  return methods::method_of(job.method)
      .config({.recipe = recipe,
               .tensors = tensors,
               .transposed_linears = std::ranges::any_of(weights, &models::Weight::transposed),
               .has_experts = model.num_experts > 0,
               .has_encoder = model.has_encoder(),
               .peft_has_prompts = methods::peft_has_prompts(model)});
}

}  // namespace snug::train
