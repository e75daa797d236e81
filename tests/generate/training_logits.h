// Logits of the training forward pass, which has no caches.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "golden_recipe.h"
#include "models/families/families.h"
#include "models/forward/forward.h"
#include "passes/pipeline.h"
#include "program/ir/tensor_names.h"
#include "runtime/loading/load_weights.h"

namespace snug::testing {

// Logits (tokens, vocab) of a row of documents, by the program that training differentiates.
inline std::vector<float> training_logits(const std::string& name, const engine::Ids& ids,
                                          const std::vector<int32_t>& lengths,
                                          base::DType compute = base::DType::f32) {
  const models::ModelSource model = models::find_model(kGoldens + name + "/model");
  const auto tokens = static_cast<int64_t>(ids.size());
  const auto backend = backends::open_backend("cpu", {.threads = 2, .device_memory_bytes = 0});
  passes::Pipeline pipeline(*backend);
  const plan::Job load = plan::plan_inference({.model = model.config,
                                               .lora = {},
                                               .compute = compute,
                                               // The capacity is which frequencies it sets.
                                               .shape = {.capacity = tokens, .prefill_tokens = 1}},
                                              *backend);
  std::vector<program::Program> programs{*load.find(program::ProgramName::load)};
  programs.push_back(pipeline.plain(models::forward(
      models::stack_of(model.config), {.program = program::ProgramName::prefill,
                                       .compute = compute,
                                       .tokens = tokens,
                                       .segments = static_cast<int64_t>(lengths.size()),
                                       .sequence_tokens = tokens,
                                       .head = models::Head::logits,
                                       .outputs = tokens})));
  const plan::Job job = plan::make_job(std::move(programs), *backend);
  runtime::Executor executor(job, *backend);
  runtime::load_weights(model.folder, model.config, executor);
  std::copy(ids.begin(), ids.end(), executor.tensor("host.tokens").as<int32_t>());
  int32_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    int32_t* bounds = executor.tensor("host.query_bounds").as<int32_t>() + 2 * i;
    bounds[0] = begin;
    bounds[1] = begin + lengths[i];
    for (int32_t position = 0; position < lengths[i]; ++position, ++begin) {
      if (executor.has("host.positions"))  // with ALiBi nothing reads them
        executor.tensor("host.positions").as<int32_t>()[begin] = position;
      executor.tensor("host.output_rows").as<int32_t>()[begin] = begin;
    }
  }
  executor.run(program::ProgramName::prefill);
  const backends::Buffer& logits = executor.tensor("logits");
  return {logits.as<float>(), logits.as<float>() + logits.elements()};
}

}  // namespace snug::testing
