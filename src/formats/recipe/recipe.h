// The recipe: everything that a user can say about a job, under Hugging Face's names of the keys.
// It is read from YAML and from `key=value` overrides, its defaults are filled in, and it is
// printed as YAML that reads back as the same recipe. recipe_keys.h has the table of keys.
#pragma once

#include "base/error.h"
#include "base/mistakes.h"
#include "formats/recipe/choices.h"
#include "formats/recipe/data_entry.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::formats {

// The file name in a base::Location for the command line.
inline constexpr std::string_view kCommandLine = "command line";

struct Recipe {
  std::string model;  // a folder or a preset
  Method method = Method::lora;
  // Stores the base model's linears as NF4; always true with qlora.
  bool load_in_4bit = false;
  // Stores the head as NF4, too.
  bool load_head_in_4bit = false;
  // Stores the matrices of experts as NF4, too.
  bool load_experts_in_4bit = false;
  // Quantises the scales of NF4 blocks to 8 bits.
  bool double_quant = false;
  // A PEFT folder to start from or to generate with; empty: none.
  std::string adapter;
  Init init = Init::files;
  // Patterns of the weights that method=full trains, and of those that it does not train
  // (models/stored/weight_patterns.h). Empty: all weights train, and none are frozen.
  std::vector<std::string> trainable_modules;
  std::vector<std::string> freeze_modules;

  Objective objective = Objective::next_token;
  double beta = 0;
  double desirable_weight = 0;
  double undesirable_weight = 0;
  LossType loss_type = LossType::automatic;
  double label_smoothing = 0;  // of pairs: the share of labels that are taken to be wrong
  double simpo_gamma = 0;      // the margin between the two rewards that simpo asks for
  bool precompute_ref_log_probs = false;

  // Of learning from rewards.
  std::vector<std::string> rewards;        // "NAME" or "NAME:WEIGHT"
  std::vector<std::string> reward_fields;  // "NAME=FIELD OF THE RECORD"
  double reward_timeout = 0;               // seconds that a program of rewards may take
  int64_t reward_memory = 0;               // bytes that it may have; 0: no limit
  int64_t num_generations = 0;             // answers to each prompt
  int64_t max_completion_length = 0;       // tokens
  int64_t steps_per_generation = 0;        // micro-batches; 0: gradient_accumulation_steps
  int64_t num_iterations = 0;              // updates on the same answers
  double epsilon = 0;
  double epsilon_high = 0;  // 0: epsilon
  double delta = 0;         // 0: off
  ScaleRewards scale_rewards = ScaleRewards::group;
  Advantage advantage = Advantage::group;
  ImportanceLevel importance_sampling_level = ImportanceLevel::token;
  bool mask_truncated_completions = false;
  double top_entropy_quantile = 0;  // 1: all tokens are learned
  OldLogProbabilities old_logprobs = OldLogProbabilities::automatic;
  int64_t max_resamples = 0;  // of groups whose rewards are equal
  double min_entropy = 0;     // of the guard low_entropy, in nats
  double max_kl = 0;          // of the guard high_kl, in nats a token

  std::vector<DataEntry> data;
  std::vector<DataEntry> eval_data;  // one or several named sets; empty: none
  // Records of data that evaluate and do not train: below 1 a share, else a number; 0: none.
  double val_set_size = 0;
  DataFormat data_format = DataFormat::automatic;
  OnBadRecord on_bad_record = OnBadRecord::skip;
  double max_skipped = 0;  // the share of records that may be left out for what they hold
  std::vector<std::string> ignore_fields;  // of records and messages: read as if absent
  std::vector<std::string> fields;         // "FIELD=WHAT THE DATA CALL IT"
  std::vector<std::string> roles;          // "WHAT THE DATA CALL IT=ROLE"
  std::string chat_template;               // empty: the model's own
  std::vector<std::string> added_tokens;   // that the tokenizer may lack
  int64_t max_length = 0;                  // tokens per row; 0: from the data
  base::Truncation truncation = base::Truncation::end;
  int64_t max_target_length = 0;  // of a decoder next to an encoder; 0: as many
  int64_t max_segments = 0;       // documents per row; 0: chosen by the planner
  bool packing = false;
  bool train_on_prompt = false;
  std::vector<std::string> roles_to_train;  // whose messages are learned; {"none"}: nobody's
  base::LearnedTurns train_on_turns = base::LearnedTurns::all;
  bool shuffle = false;

  std::string output_dir;
  bool overwrite_output_dir = false;
  double save_steps = 0;         // as for steps_in; 0: only at the end
  int64_t save_total_limit = 0;  // 0: keep all
  bool save_only_model = false;
  std::string resume_from_checkpoint;  // a word of Resume, or a path
  double logging_steps = 0;            // as for steps_in
  double eval_steps = 0;               // as for steps_in; 0: only at the end
  EvalStrategy eval_strategy = EvalStrategy::steps;
  SaveStrategy save_strategy = SaveStrategy::steps;
  bool eval_on_start = false;
  int64_t eval_generate = 0;              // records whose answers are generated; 0: none
  std::vector<std::string> eval_metrics;  // of these answers
  bool load_best_model_at_end = false;
  std::string metric_for_best_model;  // empty: none
  std::optional<bool> greater_is_better;
  int64_t early_stopping_patience = 0;  // evaluations; 0: the run is not stopped early
  double early_stopping_threshold = 0;
  std::vector<std::string> guards;  // that stop the run; {"all"} or names
  double max_loss_increase = 0;     // times the best loss
  int64_t loss_increase_steps = 0;
  std::vector<std::string> report_to;

  bool merge = false;          // a run ends by merging its adapter into the model
  int64_t max_shard_size = 0;  // bytes of a merged model's files
  std::string base;            // a folder in 16 bits of the model that is in 4 bits; empty: none
  MergeInto merge_into = MergeInto::automatic;
  ComputeDtype drift_dtype = ComputeDtype::automatic;  // automatic: as the run computed
  double max_drift = 0;      // mean KL above which a merged model is not to be used as it is
  int64_t drift_tokens = 0;  // on how many tokens it is measured at most; 0: it is not

  int64_t max_steps = 0;  // 0: num_train_epochs applies
  double num_train_epochs = 0;
  int64_t per_device_train_batch_size = 0;  // rows per micro-batch
  int64_t gradient_accumulation_steps = 0;  // micro-batches per step
  // Rows per step over all devices; 0: what the other keys give.
  int64_t train_batch_size = 0;
  double learning_rate = 0;
  Schedule lr_scheduler_type = Schedule::cosine;
  double warmup_ratio = 0;
  double warmup_steps = 0;  // as for steps_in; 0: warmup_ratio applies
  // Keys that only some schedules read (formats/recipe/schedule_keys.h).
  double min_lr = 0;  // 0: min_lr_rate applies
  double min_lr_rate = 0;
  double num_cycles = 0;
  // Steps at the peak; -1: all steps that neither rise nor fall.
  int64_t num_stable_steps = 0;
  int64_t num_decay_steps = 0;
  Ramp warmup_type = Ramp::linear;
  Ramp decay_type = Ramp::cosine;
  double min_lr_ratio = 0;
  double warmup_lr_rate = 0;  // -1: one step's share of the warm-up
  double lr_end = 0;
  double power = 0;
  int64_t timescale = 0;  // steps; 0: the warm-up's, or 10,000 where there is none
  double weight_decay = 0;
  double adam_beta1 = 0;
  double adam_beta2 = 0;
  double adam_epsilon = 0;
  double decay_rate = 0;
  double clip_threshold = 0;
  double muon_momentum = 0;
  double muon_epsilon = 0;
  bool nesterov = false;
  std::vector<double> ns_coefficients;
  int64_t ns_steps = 0;
  AdjustLearningRate adjust_lr_fn = AdjustLearningRate::original;
  double max_grad_norm = 0;           // 0: no clipping
  double neftune_noise_alpha = 0;     // 0: no noise
  double label_smoothing_factor = 0;  // of tokens
  double ema_decay = 0;               // 0: no average of the weights
  Optimizer optim = Optimizer::adamw;
  bool optim_in_backward = false;
  GradientDtype gradient_dtype = GradientDtype::automatic;
  int64_t seed = 0;
  bool deterministic = false;

  int64_t lora_r = 0;
  double lora_alpha = 0;
  double lora_dropout = 0;
  std::vector<std::string> target_modules;  // {"all-linear"} or module names
  // Parameters that are no linears, such as all experts' matrices of a layer, which get LoRA.
  std::vector<std::string> target_parameters;
  std::vector<std::string> modules_to_save;
  bool use_rslora = false;
  bool use_dora = false;
  LoraInit init_lora_weights = LoraInit::standard;
  std::vector<int64_t> layers_to_transform;  // empty: all layers
  std::vector<std::string> rank_pattern;     // "PATTERN=RANK", PEFT's patterns of modules
  std::vector<std::string> alpha_pattern;    // the same for lora_alpha
  double loraplus_lr_ratio = 0;              // 0: one learning rate for A and B
  double loraplus_lr_embedding = 0;

  int64_t adapter_len = 0;     // vectors of a prompt
  int64_t adapter_layers = 0;  // counted from the top; 0: all but the first two
  AdapterGates adapter_gates = AdapterGates::automatic;

  // For mixtures of experts; the defaults are those of the model's config.json.
  bool output_router_logits = false;  // training adds the loss that balances experts
  double router_aux_loss_coef = 0;

  BackendName backend = BackendName::cpu;
  std::string device;  // a GPU of the hardware table to plan for; empty: this machine's
  ComputeDtype compute_dtype = ComputeDtype::automatic;
  bool fp16 = false;      // the Trainer's name for compute_dtype=fp16
  double loss_scale = 0;  // 0: dynamic
  int64_t initial_scale_power = 0;
  int64_t loss_scale_window = 0;  // steps
  int64_t hysteresis = 0;         // steps
  double min_loss_scale = 0;
  Recompute recompute = Recompute::none;
  bool activation_offloading = false;
  bool offload_params = false;
  OffloadOptimizer offload_optimizer = OffloadOptimizer::none;
  int64_t offload_threshold = 0;  // bytes
  int64_t offload_window = 0;     // bytes; 0: chosen by the planner
  int64_t device_memory = 0;      // bytes; 0: no limit
  int64_t host_memory = 0;        // bytes; 0: no limit
  int64_t threads = 0;            // 0: one per core
  std::string picture;            // an HTML page of the plan to write; empty: none
  std::string calibration;        // a file of rates; empty: this machine's own or assumed ones
  std::string hardware;           // a file of GPUs that extends the hardware table; empty: none

  Strategy strategy = Strategy::ddp;
  int64_t devices = 0;        // per node; 0: as launched
  int64_t nodes = 0;          // 0: as launched
  int64_t shard_devices = 0;  // per group of a hybrid strategy; 0: all devices of a node
  Prefetch prefetch = Prefetch::pre;
  ReduceDtype reduce_dtype = ReduceDtype::automatic;
  int64_t shard_threshold = 0;  // elements; smaller tensors stay whole on every device
  int64_t timeout_seconds = 0;

  std::string prompt;
  std::string prompts;  // a file of prompts; empty: prompt or ids
  PromptFormat prompt_format = PromptFormat::raw;
  std::string system;  // a system message before the prompt; empty: none
  std::vector<int64_t> ids;
  std::string answer;  // the answer to score with an encoder-decoder
  std::vector<int64_t> answer_ids;
  int64_t max_new_tokens = 0;
  double temperature = 0;             // 0: greedy
  int64_t top_k = 0;                  // 0: off
  double top_p = 0;                   // 1: off
  double min_p = 0;                   // 0: off
  double repetition_penalty = 0;      // 1: off
  double presence_penalty = 0;        // 0: off
  double frequency_penalty = 0;       // 0: off
  std::vector<std::string> stop;      // texts that end an answer
  int64_t logprobs = 0;               // -1: none
  std::string output;                 // a file of answers to write; empty: standard output
  std::string logits_out;             // a safetensors file to write; empty: none
  int64_t batch = 0;                  // prompts in parallel
  std::vector<std::string> adapters;  // that requests choose from, "NAME=FOLDER"; empty: none
  int64_t max_adapters = 0;           // that have a place side by side
  int64_t max_adapter_rank = 0;       // of one of them
  CacheDtype kv_cache_dtype = CacheDtype::automatic;
  std::string json_schema;               // a file that the answer follows; empty: none
  std::string regex;                     // that the whole answer matches; empty: none
  int64_t prompt_lookup_num_tokens = 0;  // guessed from what was said; 0: none

  // Of a server.
  std::string host;
  int64_t port = 0;              // 0: any that is free
  std::string api_key;           // empty: requests need none
  bool adapter_loading = false;  // requests may load and drop adapters
  int64_t max_connections = 0;
  int64_t max_waiting = 0;      // requests that wait for room; 0: no limit
  int64_t request_timeout = 0;  // seconds; 0: no limit
  int64_t max_body = 0;         // bytes of a request
  std::string runs;             // a folder of runs that are shown; empty: none

  std::string tasks;   // a YAML file of evaluation tasks; empty: questions of data
  int64_t stride = 0;  // tokens between the windows of perplexity

  // Where the user set each key: file, line and column; the command line has the file kCommandLine.
  std::map<std::string, base::Location, std::less<>> given;

  // Notes for the user about settings in other tools' files that have no effect here.
  std::vector<std::string> notes;

  bool is_given(std::string_view key) const { return given.contains(key); }
  bool evaluates() const { return !eval_data.empty() || val_set_size > 0; }
  // Empty if resume_from_checkpoint is a folder.
  std::optional<Resume> resume() const { return base::from_word<Resume>(resume_from_checkpoint); }
  // Counts that were not given mean one.
  int64_t devices_per_node() const { return std::max<int64_t>(1, devices); }
  int64_t node_count() const { return std::max<int64_t>(1, nodes); }
  int64_t rank_count() const { return devices_per_node() * node_count(); }
  // Throws UserError with the place where the key was set, its name, and the problem.
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;
  // If the key has no value, throws UserError that shows how to set it.
  void require(std::string_view key) const;
};

// The number of steps that a key asks for. As in transformers, a value below 1 is a share of all
// steps, rounded up.
int64_t steps_in(double said, int64_t all_steps);

// A recipe with all its mistakes; values that could not be read have their defaults.
struct RecipeReading {
  Recipe recipe;
  base::Mistakes mistakes;
};

// Reads a recipe file (none if empty) and `key=value` overrides, which take precedence, and fills
// in the defaults, including those that depend on other keys. Mistakes, with file:line:column, are
// unknown keys, keys that are given twice with different values, wrong types, impossible values,
// and keys of other tools that ask for what is not built. Throws UserError for YAML that is broken
// or is not a map.
RecipeReading read_recipe(const std::string& recipe_path,
                          const std::vector<std::string>& overrides);
// The same, but throws all mistakes together as one error.
Recipe load_recipe(const std::string& recipe_path, const std::vector<std::string>& overrides);
// Reads a recipe from YAML text; `file` names it in errors.
Recipe parse_recipe(std::string_view yaml, const std::string& file,
                    const std::vector<std::string>& overrides = {});

// method: qlora and load_in_4bit: true mean the same: where one is set, the other follows. Throws
// UserError where they contradict each other.
void settle_method(Recipe& recipe);

// The verbs that a key belongs to.
enum class Verb : uint8_t { train, plan, generate, score, evaluate, merge, serve };

// Whether a key has its default value. False for keys whose default depends on other keys.
bool holds_default(const Recipe& recipe, std::string_view key);

// recipe.yaml: exactly what runs, with every key of the verb and its value.
std::string to_yaml(const Recipe& recipe, Verb verb = Verb::train);
// The same for people: the method, and the keys whose value is not the one that they have where
// nobody gives any.
std::string changed_to_yaml(const Recipe& recipe, Verb verb = Verb::train);

}  // namespace snug::formats
