// A job: the programs of one run, laid out together. Made from a recipe, a model's shape and a
// target; the memory reader, the clock and the executor all take it from here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/token_streams.h"
#include "methods/method.h"
#include "methods/objective.h"
#include "methods/update.h"
#include "models/config/config.h"
#include "passes/memory/layout.h"
#include "passes/pipeline.h"
#include "plan/spec/adapter_widths.h"
#include "program/ir/program.h"
#include "program/ir/program_name.h"

namespace snug::plan {

// The sizes of programs that generate.
struct InferenceShape {
  int64_t sequences = 1;                  // generated side by side
  base::PerStream<int64_t> capacity = 0;  // tokens a sequence may reach: prompt + new
  int64_t prefill_tokens = 0;             // chunk of a prompt that one prefill run takes
  int64_t encoder_tokens = 0;  // of prompts, whole ones, that an encoder reads in such a run
  bool all_logits = false;     // score: logits of every prefill token, not only the last
  int64_t candidates = 0;      // so many likeliest tokens of each row go to the host; 0: all logits
  // Numbers of sequences, ascending and below `sequences`, for which there are programs of their
  // own to decode with: a step takes the smallest that holds all sequences that go on.
  std::vector<int32_t> decode_sizes{};
};

// What training needs to know: a recipe's answers, without paths.
struct TrainingSpec {
  models::ModelConfig model;
  methods::MethodKind method = methods::MethodKind::lora;
  methods::LoraOptions lora;
  methods::PromptOptions prompt{};
  methods::ObjectiveOptions objective{};
  methods::UpdateOptions update;
  std::vector<std::string> frozen{};  // names of weights that stay as they are where weights train
  program::DType compute = program::DType::bf16;
  // How the base model is stored; nothing: in the compute type.
  std::optional<passes::QuantizeOptions> quantization{};
  passes::RecomputeModes recompute = passes::RecomputeMode::none;
  bool activation_offloading = false;  // of layers that recompute all_but_attention or layer
  passes::StreamOptions streaming{};   // what lies in host memory
  passes::ShardingOptions ranks{};     // what is sharded over which ranks
  int64_t rows = 1;                    // a micro-batch of a rank
  base::PerStream<int64_t> row_tokens = 1024;
  // Tokens; 0: row_tokens. longrope and attention follow it. It has the streams that row_tokens
  // has.
  base::PerStream<int64_t> longest_document = 0;
  int64_t row_segments = 1;         // capacity of documents per row
  int64_t accumulation = 1;         // micro-batches per step
  bool update_in_backward = false;  // needs accumulation 1 and no clipping
  bool deterministic = true;        // the same bits on every run, whatever the target
  bool evaluate = false;
  // Programs that generate with the weights that train, in the bytes of a training step.
  std::optional<InferenceShape> generation{};
  bool verify = false;  // check every pass and the layout
  passes::AfterPass after_pass{};
  // Weights are made of this seed (init=random); nothing: they are read.
  std::optional<int64_t> init_seed{};
  bool adapter_in_files = false;   // the adapter is read; else made of lora.seed
  AdapterWidths adapter_widths{};  // of those files

  // An adapter trains; else weights, all that are not frozen.
  bool is_adapted() const { return !methods::method_of(method).trains_weights; }
  methods::MethodOptions method_options() const { return {.lora = lora, .prompt = prompt}; }
  base::PerStream<int64_t> sequence_tokens() const;
  // The tokens of a micro-batch in all streams together.
  int64_t micro_tokens() const { return rows * row_tokens.sum(); }
};

// What inference needs to know.
struct InferenceSpec {
  models::ModelConfig model;
  // The method of the adapter; nothing: there is none.
  std::optional<methods::MethodKind> method{};
  methods::LoraOptions lora;
  methods::PromptOptions prompt{};
  program::DType compute = program::DType::bf16;
  std::optional<passes::QuantizeOptions> quantization{};
  InferenceShape shape{};
  bool verify = false;
  passes::AfterPass after_pass{};
  std::optional<int64_t> init_seed{};  // as in TrainingSpec
  AdapterWidths adapter_widths{};      // likewise

  bool is_adapted() const { return method.has_value(); }
  methods::MethodOptions method_options() const { return {.lora = lora, .prompt = prompt}; }
};

struct Job {
  std::vector<program::Program> programs;
  passes::Layout layout;
  std::vector<program::Tensor> trainables;  // in the order of the update
  // What the optimizer keeps of each of them.
  std::vector<std::vector<program::OptimizerState>> states;
  std::vector<passes::PassRecord> passes;
  methods::ObjectiveOptions objective;  // of training
  // The method of training, or of the adapter that is applied.
  methods::MethodKind method = methods::MethodKind::full;
  program::DType compute = program::DType::bf16;  // of frozen weights and of products
  int64_t parameters = 0;                         // of the base model and the adapter
  int64_t trainable_parameters = 0;

  // nullptr when the job has no such program.
  const program::Program* find(const program::ProgramKey& key) const;
  // Index into programs and layout.offsets; -1 when absent.
  int index_of(const program::ProgramKey& key) const;
};

Job plan_training(const TrainingSpec& spec, const program::Target& target);
Job plan_inference(const InferenceSpec& spec, const program::Target& target);

// A job of the given programs (tests, calibration): lowered already, laid out here.
Job make_job(std::vector<program::Program> programs, const program::Target& target);

// A program of a training step and how often the step runs it.
struct StepProgram {
  program::ProgramName name;
  const program::Program* program;
  int64_t runs;
};
// The programs in the order of the training loop; those that the job has and that a step runs.
std::vector<StepProgram> step_programs(const Job& job, int64_t accumulation);
// The program of a micro-batch, counted from 0, of a step.
program::ProgramName micro_program(const Job& job, int64_t micro, int64_t accumulation);

// The tensors of the job's adapter, each module's A before its B; none where it has no adapter.
std::vector<program::Tensor> adapter_tensors(const Job& job);

}  // namespace snug::plan
