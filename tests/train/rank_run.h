// A training job on ranks that are threads of this process, without files.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/backend.h"
#include "base/dtype.h"
#include "comm/local.h"
#include "comm/split.h"
#include "formats/recipe/recipe.h"
#include "plan/spec/spec.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "train/batch_loader.h"
#include "train/data.h"
#include "train/document_steps.h"
#include "train/kept_reference.h"
#include "train/run_length.h"
#include "train/trainer.h"

namespace snug::train {

struct RankRun {
  std::vector<double> losses;         // of each step
  std::vector<double> router_losses;  // likewise, where experts are balanced
  std::vector<double> norms;
  std::vector<std::vector<float>> measures;  // of each step, where an objective measures something
  int64_t device_bytes = 0;                  // of the arena on the device
  std::map<std::string, std::vector<float>> weights;  // what was trained, whole
  std::vector<int64_t> sent_bytes;                    // by rank, in all steps
  int64_t planned_bytes = 0;                          // that a rank sends in all steps
};

namespace detail {

// Adds a rank's elements of a tensor to where they belong in the whole.
inline void add_elements(const program::Tensor& tensor, const backends::Buffer& held,
                         std::vector<float>& whole) {
  const int64_t all = tensor.whole ? tensor.whole->elements() : tensor.shape.elements();
  whole.resize(static_cast<size_t>(all));
  for (int64_t i = 0; i < held.elements() && held.first + i < all; ++i)
    whole[static_cast<size_t>(held.first + i)] =
        held.dtype == base::DType::f32 ? held.as<const float>()[i]
                                       : base::to_float(held.as<const base::BFloat16>()[i]);
}

inline const program::Tensor& tensor_named(const plan::Job& job, const std::string& name) {
  for (const program::Program& program : job.programs)
    if (const program::TensorId id = program.find(name); id != program::kNone)
      return program.tensor(id);
  ADD_FAILURE() << "no tensor " << name;
  std::abort();
}

// What a rank has sent so far to the groups that it belongs to.
inline int64_t sent_to(const comm::Mesh& mesh) {
  int64_t bytes = 0;
  for (const comm::Communicator* group : {mesh.all, mesh.shards, mesh.replicas})
    if (group != nullptr) bytes += group->bytes_sent();
  return bytes;
}

// As plan.json has it.
inline int64_t planned_to_send(const plan::Job& job, int64_t accumulation) {
  int64_t bytes = 0;
  for (const plan::StepProgram& step : plan::step_programs(job, accumulation))
    for (const program::Operation& operation : step.program->operations)
      if (program::traits_of(operation).category == program::Category::collective)
        bytes += step.runs * std::llround(program::cost({*step.program, operation}, {}).bytes);
  return bytes;
}

}  // namespace detail

// One rank's share of a run; the recipe says how many there are.
inline void run_rank(const std::vector<std::string>& words, const comm::Mesh& mesh,
                     const RunLength& length, RankRun& run) {
  const int64_t steps = length.steps;
  const formats::Recipe recipe = formats::load_recipe("", words);
  const models::ModelSource model = models::find_model(recipe.model);
  const auto backend =
      backends::open_backend(base::word_of(recipe.backend), {.threads = 1, .mesh = &mesh});
  plan::TrainingSpec spec = plan::training_spec(recipe, model.config, *backend);
  RunData data = load_data(recipe, model, *backend);
  data.documents.shape_rows(spec);
  spec.verify = true;
  const plan::Job job = plan::plan_training(spec, *backend);
  run.device_bytes = job.layout.spaces[static_cast<size_t>(program::Space::device)].arena_bytes;
  runtime::Executor executor(job, *backend, &mesh);
  runtime::random_weights(model.config, executor);
  if (spec.is_adapted())
    runtime::initialise_adapter(executor);
  else
    runtime::initialise(executor);
  if (spec.objective.reference == methods::ReferenceModel::kept)
    make_reference({}, spec, data, executor);
  executor.run(program::ProgramName::prepare);
  const runtime::Ranks ranks(mesh);
  const TrainerOptions options{.total_steps = steps,
                               .end_row = length.end_row,
                               .update_in_backward = spec.update_in_backward,
                               .router_loss_factor = spec.model.router_loss_factor(),
                               .schedule = {.kind = recipe.lr_scheduler_type,
                                            .learning_rate = recipe.learning_rate,
                                            .total_steps = steps},
                               .checkpoint = {},
                               .ranks = &ranks};
  BatchLoader loader(data.training->rows, spec.rows, spec.row_tokens, executor,
                     data.training->reference);
  DocumentSteps batches(loader, {.rows = spec.rows,
                                 .accumulation = spec.accumulation,
                                 .ranks = ranks.size(),
                                 .rank = ranks.rank()});
  Trainer trainer(options, executor, batches, nullptr, nullptr, nullptr);
  runtime::TrainerState state;
  run.planned_bytes = steps * detail::planned_to_send(job, spec.accumulation);
  const int64_t sent_before = detail::sent_to(mesh);
  const std::atomic<int> no_signal{0};
  for (int64_t step = 0; step < steps; ++step) {
    ASSERT_TRUE(trainer.begin_step(state, no_signal));
    trainer.finish_step(state);
    if (mesh.rank() != 0) continue;
    run.losses.push_back(executor.result<float>(program::kLossName));
    if (executor.has(program::kRouterLossName))
      run.router_losses.push_back(executor.result<float>(program::kRouterLossName));
    run.norms.push_back(executor.result<float>(program::kGradientNormName));
    if (const std::string name = program::host_name(program::kMeasuresName); executor.has(name)) {
      const backends::Buffer& values = executor.tensor(name);
      run.measures.emplace_back(values.as<const float>(),
                                values.as<const float>() + values.elements());
    }
  }
  if (spec.update.ema_decay > 0) executor.run(program::ProgramName::average);
  backend->synchronise();
  run.sent_bytes[static_cast<size_t>(mesh.rank())] = detail::sent_to(mesh) - sent_before;
  for (const program::Tensor& trainable : job.trainables) {
    const std::string master = program::master_name(trainable.name);
    const std::string name = executor.has(master) ? master : trainable.name;
    detail::add_elements(detail::tensor_named(job, name), executor.tensor(name),
                         run.weights[trainable.name]);
  }
}

// `words`: the recipe's, without devices.
inline RankRun run_on_ranks(std::vector<std::string> words, int ranks, const RunLength& length,
                            int shards = 0) {
  words.push_back("devices=" + std::to_string(ranks));
  RankRun run;
  run.sent_bytes.resize(static_cast<size_t>(ranks));
  std::vector<RankRun> of_rank(static_cast<size_t>(ranks), run);
  comm::LocalGroup group(ranks, {.timeout = std::chrono::seconds(60)});
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  const bool is_sharded = std::ranges::find(words, "strategy=ddp") == words.end() && ranks > 1;
  if (shards == 0) shards = is_sharded ? ranks : 1;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto all = group.communicator(rank);
        const auto of_shards = comm::split(*all, rank / shards, rank);
        const auto of_replicas = comm::split(*all, rank % shards, rank);
        comm::Mesh mesh;
        if (ranks > 1) mesh.all = all.get();
        if (shards > 1) mesh.shards = of_shards.get();
        if (shards < ranks) mesh.replicas = of_replicas.get();
        run_rank(words, mesh, length, of_rank[static_cast<size_t>(rank)]);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(errors[static_cast<size_t>(rank)], "") << "rank " << rank;
  run = of_rank.front();
  for (int rank = 0; rank < ranks; ++rank)
    run.sent_bytes[static_cast<size_t>(rank)] =
        of_rank[static_cast<size_t>(rank)].sent_bytes[static_cast<size_t>(rank)];
  // Each rank knows its own elements of what is sharded.
  for (auto& [name, whole] : run.weights)
    for (size_t i = 0; i < whole.size(); ++i)
      for (const RankRun& other : of_rank)
        if (whole[i] == 0 && other.weights.contains(name) && i < other.weights.at(name).size() &&
            other.weights.at(name)[i] != 0)
          whole[i] = other.weights.at(name)[i];
  return run;
}
inline RankRun run_on_ranks(std::vector<std::string> words, int ranks, int64_t steps,
                            int shards = 0) {
  return run_on_ranks(std::move(words), ranks, RunLength{.steps = steps}, shards);
}

}  // namespace snug::train
