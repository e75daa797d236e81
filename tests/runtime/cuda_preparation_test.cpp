// All that steps take of a card is made before the first of them: on an emulated card, which says
// what it was asked to make (memory, events, graphs, kernels and libraries' code), and refuses it.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "base/error.h"
#include "creations.h"
#include "every_trace.h"
#include "program/kinds/attention/attention.h"
#include "rank_runs.h"
#include "refusals.h"
#include "runtime/storage/host_window.h"
#include "tiny_run.h"

namespace snug::runtime {
namespace {

using cuda_emulator::Creations;
using methods::OptimizerKind;
using plan::TrainingSpec;
using program::DType;
using testing::TinyOptions;

constexpr int kSteps = 3;

// While it lives, an emulated card makes nothing more.
class NothingMore {
 public:
  NothingMore() {
    Creations::all().take();
    Creations::all().refuse_after(0);
  }
  NothingMore(const NothingMore&) = delete;
  NothingMore& operator=(const NothingMore&) = delete;
  ~NothingMore() { Creations::all().refuse_nothing(); }
};

struct Case {
  const char* name;
  TinyOptions options;
  std::function<void(TrainingSpec&)> change = [](TrainingSpec&) {};
};

TinyOptions full(DType compute, OptimizerKind optimizer) {
  TinyOptions options;
  options.compute = compute;
  options.optimizer = optimizer;
  return options;
}

TinyOptions lora() {
  TinyOptions options = full(DType::bf16, OptimizerKind::adamw);
  options.method = formats::Method::lora;
  return options;
}

// Attention by cuDNN, forward and backward.
TinyOptions by_library() {
  TinyOptions options = full(DType::bf16, OptimizerKind::adamw);
  options.model.hidden_size = 128;
  options.model.num_heads = 2;
  options.model.num_kv_heads = 1;
  options.model.head_dim = 64;
  return options;
}

const std::vector<Case>& preparation_cases() {
  static const std::vector<Case> kCases{
      {"full in f32, two micro-batches, evaluation", full(DType::f32, OptimizerKind::adamw),
       [](TrainingSpec& spec) {
         spec.accumulation = 2;
         spec.evaluate = true;
       }},
      {"full, rows of several documents", full(DType::bf16, OptimizerKind::adamw_8bit),
       testing::pack_rows},
      {"attention by the library", by_library(),
       [](TrainingSpec& spec) { spec.deterministic = false; }},
      {"lora, activations wait on the host", lora(),
       [](TrainingSpec& spec) {
         spec.recompute = passes::RecomputeMode::layer;
         spec.activation_offloading = true;
       }},
      {"full, updated on the host", full(DType::bf16, OptimizerKind::adamw),
       [](TrainingSpec& spec) {
         spec.streaming = {.params = true,
                           .optimizer = true,
                           .update_on_host = true,
                           .threshold_bytes = 0,
                           .window_bytes = 100'000};
       }}};
  return kCases;
}

// Batches of few rows that carry loss and of many.
void run_steps(const plan::Job& job, Executor& executor) {
  for (int step = 0; step < kSteps; ++step)
    for (const program::Program& program : job.programs) {
      if (!testing::is_run_by_backends(program)) continue;
      testing::fill_batch(program, executor);
      executor.run(testing::typed_name(program));
    }
  executor.backend().synchronise();
}

// Through staging memory, as saving does.
void read_weight(Executor& executor) {
  HostWindow window(executor, program::ProgramName::save, 0);
  window.read(executor.tensor("model.norm.weight").data, 4);
}

bool has_gradient_by_library(const plan::Job& job) {
  for (const program::Program& program : job.programs)
    for (const program::Operation& operation : program.operations)
      if (const auto* grad = operation.attributes.get_if<program::AttentionGrad>())
        return is_by_library(*grad);
  return false;
}

void expect_all_made_before(const Case& each, bool times) {
  SCOPED_TRACE(std::string(each.name) + (times ? ", timed" : ""));
  Creations::all().unload_all();
  TrainingSpec spec = testing::spec_of(each.options);
  each.change(spec);
  const auto backend = backends::open_backend("cuda", {.threads = 1, .chooses_by_timing = times});
  const plan::Job job = plan::plan_training(spec, *backend);
  EXPECT_EQ(has_gradient_by_library(job), !spec.deterministic);
  Executor executor(job, *backend);
  const NothingMore nothing_more;
  run_steps(job, executor);
  read_weight(executor);
  EXPECT_EQ(Creations::all().take(), std::vector<std::string>{});
}

TEST(CudaPreparation, MakesAllThatStepsTake) {
  for (const Case& each : preparation_cases())
    for (const bool times : {false, true}) expect_all_made_before(each, times);
}

TEST(CudaPreparation, MakesAllThatCollectivesTake) {
  constexpr int kRanks = 2;
  cuda_emulator::devices = kRanks;
  Creations::all().unload_all();
  TinyOptions options = full(DType::bf16, OptimizerKind::adamw);
  options.model = testing::rank_model();
  options.ranks = testing::full_shard(kRanks);
  options.threads = 1;
  std::optional<NothingMore> nothing_more;
  testing::expect_no_errors(
      comm::errors_of_ranks(kRanks, {}, [&](comm::Communicator& communicator) {
        const comm::Mesh mesh{
            .all = &communicator, .shards = &communicator, .local_rank = communicator.rank()};
        TinyOptions own = options;
        own.mesh = &mesh;
        testing::TinyRun run(own);
        communicator.barrier();
        if (communicator.rank() == 0) nothing_more.emplace();
        communicator.barrier();
        run_steps(run.job(), run.executor());
        communicator.barrier();
        if (communicator.rank() == 0) {
          EXPECT_EQ(Creations::all().take(), std::vector<std::string>{});
          nothing_more.reset();
        }
        communicator.barrier();
      }));
  cuda_emulator::devices = 1;
}

// Whatever of it is not to be had: an error of the user's, before the first step.
TEST(CudaPreparation, IsRefusedWhereTheCardHasNoMemory) {
  const auto prepare = [] {
    Creations::all().unload_all();
    const testing::TinyRun run(by_library());
  };
  Creations::all().take();
  prepare();
  const uint64_t made = Creations::all().take().size();
  EXPECT_GT(made, 50U);
  for (uint64_t allowed = 0; allowed < made; ++allowed) {
    Creations::all().refuse_after(allowed);
    try {
      prepare();
      ADD_FAILURE() << "no error after " << allowed << " of " << made;
    } catch (const base::UserError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.find("emory") != std::string::npos) << message;
    }
    Creations::all().refuse_nothing();
  }
}

}  // namespace
}  // namespace snug::runtime
