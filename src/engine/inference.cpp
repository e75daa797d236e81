#include "engine/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/recipe_backend.h"
#include "base/threads.h"
#include "models/weights.h"
#include "plan/spec/adapter_slots.h"
#include "runtime/execution/rehearsal.h"
#include "runtime/loading/load_slots.h"
#include "runtime/saving/adapter.h"

namespace snug::engine {
namespace {

// Decoding reads every weight once per token, and threads synchronise after every operation: with
// fewer than this many parameters per thread, waiting costs more than the threads save (a model of
// 4 M parameters on two busy cores: 530 tokens/s with one thread, 32 with two).
constexpr int64_t kParametersPerThread = 16 << 20;

int threads_for(const formats::Recipe& recipe, const models::ModelConfig& model) {
  if (recipe.threads > 0) return static_cast<int>(recipe.threads);
  const int64_t useful = 1 + models::parameter_count(model) / kParametersPerThread;
  return static_cast<int>(std::min<int64_t>(useful, base::thread_count(0)));
}

std::unique_ptr<backends::Backend> open_backend(const formats::Recipe& recipe,
                                                const models::ModelConfig& model) {
  formats::Recipe with_threads = recipe;
  with_threads.threads = threads_for(recipe, model);
  return backends::open_backend(with_threads);
}

// Makes the plan, and checks the adapter that it needs before memory is allocated.
plan::PlannedInference checked_plan(const plan::InferenceInputs& inputs,
                                    backends::Backend& backend) {
  plan::PlannedInference planned = plan::assemble_inference(
      inputs, [&](const plan::Job& job) { return runtime::rehearse(job, backend); });
  if (planned.spec.is_adapted())
    runtime::check_adapter(inputs.recipe.adapter, planned.spec.method_options(), planned.job);
  return planned;
}

}  // namespace

InferenceMemory planned_memory(const formats::Recipe& recipe, const models::ModelConfig& model,
                               const plan::InferenceShape& shape) {
  const std::unique_ptr<backends::Backend> backend = open_backend(recipe, model);
  const plan::PlannedInference planned = checked_plan({recipe, model, *backend, shape}, *backend);
  const int64_t on_device = planned.document.device.report.peak_bytes;
  return {
      .arena_bytes = planned.document.host.report.peak_bytes + (backend->device() ? 0 : on_device),
      .process_bytes = runtime::rehearse(planned.job, *backend).outside_bytes};
}

Inference::Inference(const formats::Recipe& recipe, models::ModelSource model,
                     const plan::InferenceShape& shape)
    : model_(std::move(model)), session_(open_backend(recipe, model_.config)) {
  plan_ = checked_plan({recipe, model_.config, session_.backend(), shape}, session_.backend());
  session_.open(plan_.job);
  load(recipe);
}

void Inference::load(const formats::Recipe& recipe) {
  runtime::set_weights(model_, recipe.init, executor());
  if (plan_.spec.is_adapted())
    runtime::load_adapter(recipe.adapter, plan_.spec.method_options(), executor());
  if (!plan_.spec.slots.empty()) load_slots(recipe);
  if (plan_.job.find(program::ProgramName::prepare) != nullptr)
    executor().run(program::ProgramName::prepare);
}

void Inference::replace_adapters(const formats::Recipe& recipe) {
  const methods::LoraSlots& slots = plan_.spec.slots;
  if (slots.empty())
    recipe.fail("max_adapters",
                "is 0, so that no memory was planned for adapters; say how many there may be, and "
                "max_adapter_rank");
  formats::Recipe planned = recipe;
  planned.max_adapters = slots.slots;
  planned.max_adapter_rank = slots.rank;
  const methods::LoraSlots needed = plan::adapter_slots(planned, model_.config, plan_.spec.compute);
  if (!recipe.adapters.empty())
    for (const std::string& module : needed.modules)
      if (std::ranges::find(slots.modules, module) == slots.modules.end())
        recipe.fail("adapters",
                    fmt::format("change '{}', for which no memory was planned: those that were "
                                "named at the start change other layers. Start without adapters, "
                                "with max_adapters and max_adapter_rank, for room in all layers",
                                module));
  load_slots(recipe);
}

void Inference::load_slots(const formats::Recipe& recipe) {
  adapters_.clear();
  std::vector<std::string> folders;
  for (plan::NamedAdapter& adapter : plan::named_adapters(recipe)) {
    adapters_.push_back(std::move(adapter.name));
    folders.push_back(std::move(adapter.folder));
  }
  runtime::load_slots(plan_.spec.slots, folders, executor());
}

nlohmann::json Inference::device_json() const {
  const std::optional<int64_t> bytes = backends::allocated_arena_bytes(program::Space::device);
  return {{"peak_bytes", bytes ? nlohmann::json(*bytes) : nlohmann::json(nullptr)}};
}

}  // namespace snug::engine
