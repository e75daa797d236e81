// A job: the programs of one run, with a common layout, made from a recipe, a model's shape and a
// target. The memory reader, the clock and the executor all read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/token_streams.h"
#include "methods/lora_slots.h"
#include "methods/method.h"
#include "methods/objective.h"
#include "methods/update.h"
#include "models/config/config.h"
#include "models/forward/key_groups.h"
#include "passes/memory/layout.h"
#include "passes/pipeline.h"
#include "plan/job/inference_shape.h"
#include "plan/job/rollout_sizes.h"
#include "plan/spec/adapter_widths.h"
#include "program/ir/program.h"
#include "program/ir/program_name.h"

namespace snug::plan {

// Everything that planning a training job needs: the recipe's settings without file paths.
struct TrainingSpec {
  models::ModelConfig model;
  methods::MethodKind method = methods::MethodKind::lora;
  methods::LoraOptions lora;
  methods::PromptOptions prompt{};
  methods::ObjectiveOptions objective{};
  methods::UpdateOptions update;
  std::vector<std::string> frozen{};  // weights that do not train, in a job that trains weights
  program::DType compute = program::DType::bf16;
  // How the base model is stored; nothing: in the compute type.
  std::optional<passes::QuantizeOptions> quantization{};
  passes::RecomputeModes recompute = passes::RecomputeMode::none;
  // Applies to layers that recompute all_but_attention or layer.
  bool activation_offloading = false;
  passes::StreamOptions streaming{};  // what is placed in host memory
  passes::ShardingOptions ranks{};    // what is sharded over which ranks
  int64_t rows = 1;                   // per micro-batch and rank
  base::PerStream<int64_t> row_tokens = 1024;
  // In tokens, for the same streams as row_tokens; 0: row_tokens. longrope's factors and attention
  // depend on it.
  base::PerStream<int64_t> longest_document = 0;
  int64_t row_segments = 1;         // capacity of documents per row
  int64_t accumulation = 1;         // micro-batches per step
  bool update_in_backward = false;  // requires accumulation 1 and no clipping
  bool deterministic = true;        // the same bits in every run on any target
  bool evaluate = false;
  std::optional<RolloutSizes> rollouts{};  // of an objective that makes answers
  double neftune_alpha = 0;  // of the noise that is added to embeddings in training; 0: none
  // Programs that generate with the trainable weights, whose memory overlays that of a training
  // step.
  std::optional<InferenceShape> generation{};
  bool verify = false;  // verify every pass and the layout
  passes::AfterPass after_pass{};
  // The seed of random weights (init=random); nothing: weights are read from files.
  std::optional<int64_t> init_seed{};
  bool adapter_in_files = false;   // the adapter is read; otherwise initialised from lora.seed
  AdapterWidths adapter_widths{};  // of those files

  // Whether an adapter trains; otherwise all weights train that are not frozen.
  bool is_adapted() const { return !methods::method_of(method).trains_weights; }
  methods::MethodOptions method_options() const { return {.lora = lora, .prompt = prompt}; }
  // Whether the weights, of which each rank has a part, are gathered once for a generation.
  bool gathers_once() const { return rollouts && rollouts->gathers_once && ranks.shards_weights(); }
  base::PerStream<int64_t> sequence_tokens() const;
  // The tokens of a micro-batch, summed over all streams.
  int64_t micro_tokens() const { return rows * row_tokens.sum(); }
};

// Everything that planning an inference job needs.
struct InferenceSpec {
  models::ModelConfig model;
  // The adapter's method; nothing: there is no adapter.
  std::optional<methods::MethodKind> method{};
  methods::LoraOptions lora;
  methods::PromptOptions prompt{};
  methods::LoraSlots slots{};  // of adapters that requests choose from, where there is no method
  program::DType compute = program::DType::bf16;
  std::optional<passes::QuantizeOptions> quantization{};
  InferenceShape shape{};
  bool verify = false;
  passes::AfterPass after_pass{};
  std::optional<int64_t> init_seed{};  // as in TrainingSpec
  AdapterWidths adapter_widths{};      // as in TrainingSpec

  bool is_adapted() const { return method.has_value(); }
  methods::MethodOptions method_options() const { return {.lora = lora, .prompt = prompt}; }
};

struct Job {
  std::vector<program::Program> programs;
  passes::Layout layout;
  std::vector<program::Tensor> trainables;  // in the order of the update
  // The optimizer's state for each of them.
  std::vector<std::vector<program::OptimizerState>> states;
  std::vector<passes::PassRecord> passes;
  methods::ObjectiveOptions objective;  // of training
  // The method of training, or of the applied adapter.
  methods::MethodKind method = methods::MethodKind::full;
  program::DType compute = program::DType::bf16;  // of frozen weights and of products
  int64_t parameters = 0;                         // of the base model and the adapter together
  int64_t trainable_parameters = 0;
  // The pools of the caches of programs that generate; empty: there are none.
  std::vector<models::KeyPool> key_pools{};

  // nullptr if the job has no such program.
  const program::Program* find(const program::ProgramKey& key) const;
  // Index into programs and layout.offsets; -1 if absent.
  int index_of(const program::ProgramKey& key) const;
};

Job plan_training(const TrainingSpec& spec, const program::Target& target);
Job plan_inference(const InferenceSpec& spec, const program::Target& target);

// Makes a job of programs that are already lowered, and lays them out (for tests and calibration).
Job make_job(std::vector<program::Program> programs, const program::Target& target);

// A program of a training step, and how often the step runs it.
struct StepProgram {
  program::ProgramName name;
  const program::Program* program;
  int64_t runs;
};
// The job's programs that a step runs, in the order of the training loop.
std::vector<StepProgram> step_programs(const Job& job, int64_t accumulation);
// The program that runs micro-batch `micro`, counted from 0, of a step.
program::ProgramName micro_program(const Job& job, int64_t micro, int64_t accumulation);

// The tensors of the job's adapter, each module's A before its B; empty if there is no adapter.
std::vector<program::Tensor> adapter_tensors(const Job& job);

}  // namespace snug::plan
