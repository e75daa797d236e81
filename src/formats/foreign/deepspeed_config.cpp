#include "formats/foreign/deepspeed_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr int64_t kMaxConfigBytes = int64_t{1} << 20;
constexpr std::string_view kBuffers =
    "Snug plans its own buffers, and its transfers overlap with computing";
constexpr std::string_view kReports = "metrics.jsonl in the run's folder has every step";
constexpr std::string_view kCheckpoints = "Snug writes checkpoints of its own form";
constexpr std::string_view kRuntime = "this is of DeepSpeed's own runtime";
constexpr std::string_view kPinned = "host memory is pinned, and its copies are planned";
constexpr std::string_view kNotBuilt = "nothing like it is built; take it out of the file";
constexpr std::string_view kMaster = "fp16 weights have fp32 masters";
constexpr std::string_view kNoAmp = "apex's amp is not built; use fp16.enabled: true";
constexpr std::string_view kWholeLayers =
    "each device computes whole layers; use 1, and zero_optimization.stage to share memory";
constexpr std::string_view kOptimizer =
    "AdamW and Lion are built for DeepSpeed's files; a recipe may also say adafactor "
    "or muon";
constexpr std::string_view kAdamW = "AdamW is built in this form alone";
constexpr std::string_view kRise = "the learning rate rises linearly from 0";

const std::vector<ToolWord> kOff = {{"false"}};
const std::vector<ToolWord> kOneNumber = {{"1"}, {"1.0"}};
const std::vector<ToolWord> kZero = {{"0"}, {"0.0"}};

using Rows = std::vector<ToolKey>;

Rows batch_and_numbers() {
  return {
      {"train_micro_batch_size_per_gpu", "per_device_train_batch_size"},
      {"gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"train_batch_size", "train_batch_size"},
      {"gradient_clipping", "max_grad_norm"},
      {"bf16.enabled", "bf16"},
      {"bfloat16.enabled", "bf16"},
      {"bf16.bf16_master_weights_and_grads", "", kOff, "set optim: adamw_bf16 in the recipe"},
      {"bf16.bf16_optimizer_states", "", kOff, "set optim: adamw_bf16 in the recipe"},
      {"bf16.immediate_grad_update", "", {}, kBuffers},
      {"fp16.enabled", "fp16"},
      {"fp16.loss_scale", "loss_scale"},
      {"fp16.initial_scale_power", "initial_scale_power"},
      {"fp16.loss_scale_window", "loss_scale_window"},
      {"fp16.hysteresis", "hysteresis"},
      {"fp16.min_loss_scale", "min_loss_scale"},
      {"fp16.consecutive_hysteresis", "", kOff, "a finite step gives no patience back"},
      {"fp16.auto_cast", "", kOff, "there are no inputs to cast"},
      {"fp16.fused_mode", "", {}, kRuntime},
      {"fp16.fp16_master_weights_and_grads", "", kOff, kMaster},
      {"amp.enabled", "", kOff, kNoAmp},
      {"amp.*", "", {}, "this is of apex's amp"},
      {"torch_autocast.enabled", "", kOff, "use bf16.enabled: true"},
      {"torch_autocast.*", "", {}, "torch's autocast is off"},
      {"data_types.grad_accum_dtype", "gradient_dtype"},
      {"communication_data_type",
       "reduce_dtype",
       {{"none"}, {"fp32", word_of(ReduceDtype::fp32)}, {"bf16", word_of(ReduceDtype::bf16)}},
       "gradients travel as bf16 or fp32"},
      {"gradient_allreduce_op", "", {{"mean"}}, "gradients are averaged"},
      {"prescale_gradients", "", kOff, "it serves fp16"},
      {"gradient_predivide_factor", "", kOneNumber, "it serves fp16"},
      {"sparse_gradients", "", kOff, kNotBuilt},
      {"disable_allgather", "", kOff, kNotBuilt},
      {"managed_gradient_accumulation", "", {{"true"}}, kNotBuilt},
  };
}

Rows optimizer_and_schedule() {
  return {
      {"optimizer.type",
       "optim",
       {{"Adam", word_of(Optimizer::adamw)},
        {"AdamW", word_of(Optimizer::adamw)},
        {"Lion", word_of(Optimizer::lion)}},
       kOptimizer},
      {"optimizer.legacy_fusion", "", {}, kRuntime},
      {"optimizer.params.lr", "learning_rate"},
      {"optimizer.params.betas", "", {{"auto"}}, "the two decays of AdamW are a list of numbers"},
      {"optimizer.params.betas[0]", "adam_beta1"},
      {"optimizer.params.betas[1]", "adam_beta2"},
      {"optimizer.params.eps", "adam_epsilon"},
      {"optimizer.params.weight_decay", "weight_decay"},
      {"optimizer.params.adam_w_mode", "", {{"true"}}, kAdamW},
      {"optimizer.params.torch_adam", "", {}, "Snug has an AdamW of its own"},
      {"optimizer.params.fused", "", {}, "Snug has an AdamW of its own"},
      {"optimizer.params.bias_correction", "", {{"true"}}, kAdamW},
      {"optimizer.params.amsgrad", "", kOff, kAdamW},
      {"scheduler.type",
       "lr_scheduler_type",
       {{"WarmupLR", word_of(Schedule::constant_with_warmup)},
        {"WarmupDecayLR", word_of(Schedule::linear)},
        {"WarmupCosineLR", word_of(Schedule::cosine)}},
       "set lr_scheduler_type in the recipe in place of other schedules"},
      {"scheduler.params.warmup_num_steps", "warmup_steps"},
      {"scheduler.params.warmup_max_lr", "learning_rate"},
      {"scheduler.params.total_num_steps", "max_steps"},
      {"scheduler.params.warmup_type", "", {{"linear"}}, kRise},
      {"scheduler.params.warmup_min_lr", "", kZero, kRise},
      {"scheduler.params.warmup_min_ratio", "", kZero, kRise},
      {"scheduler.params.cos_min_ratio", "", kZero, "the cosine falls to 0"},
      {"scheduler.params.last_batch_iteration",
       "",
       {{"-1"}},
       "resume_from_checkpoint in the recipe says where a run goes on"},
  };
}

Rows zero_that_counts() {
  return {
      {"zero_optimization.stage", "zero_stage"},
      {"zero_optimization.offload_optimizer.device", "offload_optimizer_device"},
      {"zero_optimization.offload_optimizer.ratio", "", kOneNumber,
       "all of the state is offloaded"},
      {"zero_optimization.offload_optimizer.nvme_path", "", {}, "no NVMe drive is used"},
      {"zero_optimization.offload_optimizer.*", "", {}, kPinned},
      {"zero_optimization.offload_param.device", "offload_param_device"},
      {"zero_optimization.offload_param.nvme_path", "", {}, "no NVMe drive is used"},
      {"zero_optimization.offload_param.*", "", {}, kPinned},
      {"zero_optimization.cpu_offload",
       "offload_optimizer",
       {{"true", word_of(OffloadOptimizer::automatic)},
        {"false", word_of(OffloadOptimizer::none)}}},
      {"zero_optimization.cpu_offload_param", "offload_params"},
      {"zero_optimization.cpu_offload_use_pin_memory", "", {}, kPinned},
      {"zero_optimization.stage3_param_persistence_threshold", "shard_threshold"},
      {"zero_optimization.param_persistence_threshold", "shard_threshold"},
      {"zero_optimization.zero_hpz_partition_size", "", kOneNumber,
       "second copies within a node are not built; strategy: hybrid_full_shard shares weights "
       "within a node"},
      {"zero_optimization.mics_shard_size",
       "",
       {{"-1"}},
       "say strategy: hybrid_full_shard and shard_devices in the recipe"},
      {"zero_optimization.mics_hierarchical_params_gather", "", kOff, kNotBuilt},
      {"zero_optimization.zero_quantized_weights", "", kOff, kNotBuilt},
      {"zero_optimization.zero_quantized_nontrainable_weights", "", kOff,
       "method: qlora keeps frozen weights in 4 bits"},
      {"zero_optimization.zero_quantized_gradients", "", kOff, kNotBuilt},
      {"zero_optimization.zeropp_loco_param*", "", kNever, kNotBuilt},
      {"zero_optimization.zenflow*", "", kNever, kNotBuilt},
  };
}

Rows zero_without_meaning() {
  Rows rows;
  for (const std::string_view name : {"overlap_comm",
                                      "contiguous_gradients",
                                      "reduce_scatter",
                                      "reduce_bucket_size",
                                      "use_multi_rank_bucket_allreduce",
                                      "allgather_partitions",
                                      "allgather_bucket_size",
                                      "sub_group_size",
                                      "stage3_prefetch_bucket_size",
                                      "prefetch_bucket_size",
                                      "stage3_max_live_parameters",
                                      "max_live_parameters",
                                      "stage3_max_reuse_distance",
                                      "max_reuse_distance",
                                      "stage3_model_persistence_threshold",
                                      "model_persistence_threshold",
                                      "stage3_module_granularity_threshold",
                                      "module_granularity_threshold",
                                      "stage3_use_all_reduce_for_fetch_params",
                                      "use_all_reduce_for_fetch_params",
                                      "stage3_allgather_sequential",
                                      "allgather_sequential",
                                      "stage3_partition_stream_chunk_size",
                                      "partition_stream_chunk_size",
                                      "parameter_alignment",
                                      "round_robin_gradients",
                                      "memory_efficient_linear",
                                      "override_module_apply",
                                      "ignore_unused_parameters",
                                      "legacy_stage1",
                                      "compute_grad_norm",
                                      "leaf_module*",
                                      "log_trace_cache_warnings",
                                      "enable_sanity_checks",
                                      "save_muon_momentum_buffer_in_memory"})
    rows.push_back({name, "", {}, kBuffers});
  for (const std::string_view name :
       {"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save",
        "stage3_gather_fp16_weights_on_model_save", "elastic_checkpoint", "load_from_fp32_weights",
        "pipeline_loading_checkpoint"})
    rows.push_back({name, "", {}, kCheckpoints});
  return rows;
}

Rows others() {
  return {
      {"_comment*", "", {}, "it is a comment"},
      {"comment*", "", {}, "it is a comment"},
      {"steps_per_print", "", {}, kReports},
      {"wall_clock_breakdown", "", {}, kReports},
      {"memory_breakdown", "", {}, kReports},
      {"dump_state", "", {}, kReports},
      {"tensorboard.*", "", {}, kReports},
      {"wandb.*", "", {}, kReports},
      {"csv_monitor.*", "", {}, kReports},
      {"comet.*", "", {}, kReports},
      {"flops_profiler.*", "", {}, kReports},
      {"comms_logger*", "", {}, kReports},
      {"comms_config*", "", {}, kReports},
      {"monitor_config*", "", {}, kReports},
      {"monitor.*", "", {}, kReports},
      {"timers*", "", {}, kReports},
      {"graph_harvesting", "", {}, kRuntime},
      {"compile.*", "", {}, kRuntime},
      {"nebula.*", "", {}, kCheckpoints},
      {"checkpoint_engine*", "", {}, kCheckpoints},
      {"hybrid_engine.enabled", "", kOff, kNotBuilt},
      {"hybrid_engine.*", "", {}, kRuntime},
      {"quantize_training.enabled", "", kOff, kNotBuilt},
      {"quantize_training.*", "", {}, kRuntime},
      {"vocabulary_size", "", {}, "the model's config.json says it"},
      {"use_data_before_expert_parallelism", "", {}, kRuntime},
      {"seq_parallel_comm*", "", {}, kRuntime},
      {"sequence_parallel_size", "", kOneNumber, kWholeLayers},
      {"checkpoint.*", "", {}, kCheckpoints},
      {"aio.*", "", {}, "no NVMe drive is used"},
      {"activation_checkpointing.cpu_checkpointing", "activation_offloading"},
      {"activation_checkpointing.*", "", {}, "recompute in the recipe says it"},
      {"zero_allow_untested_optimizer", "", {}, kRuntime},
      {"zero_force_ds_cpu_optimizer", "", {}, kRuntime},
      {"dataloader_drop_last", "", {}, "every document of the data is trained on"},
      {"tensor_parallel.autotp_size", "", {{"0"}, {"1"}}, kWholeLayers},
      {"tensor_parallel.*", "", {}, kWholeLayers},
      {"pipeline*", "", kNever, kWholeLayers},
      {"sparse_attention*", "", kNever, kNotBuilt},
      {"compression_training*", "", kNever, kNotBuilt},
      {"autotuning.enabled", "", kOff, "snug plan says which settings fit"},
      {"autotuning.*", "", {}, kRuntime},
      {"elasticity.enabled", "", kOff, kNotBuilt},
      {"elasticity.*", "", {}, kRuntime},
      {"curriculum_learning.enabled", "", kOff, kNotBuilt},
      {"curriculum_learning.*", "", {}, kRuntime},
      {"data_efficiency.enabled", "", kOff, kNotBuilt},
      {"data_efficiency.*", "", {}, kRuntime},
      {"progressive_layer_drop.enabled", "", kOff, kNotBuilt},
      {"progressive_layer_drop.*", "", {}, kRuntime},
      {"eigenvalue.enabled", "", kOff, kNotBuilt},
      {"eigenvalue.*", "", {}, kRuntime},
  };
}

// The paths of the rows without meaning, which are views, live here.
const Rows& deepspeed_keys() {
  static std::vector<std::string> paths;
  static const Rows rows = [] {
    Rows all;
    for (const Rows& part :
         {batch_and_numbers(), optimizer_and_schedule(), zero_that_counts(), others()})
      all.insert(all.end(), part.begin(), part.end());
    const Rows idle = zero_without_meaning();
    paths.reserve(idle.size());
    for (ToolKey row : idle) {
      row.path = paths.emplace_back("zero_optimization." + std::string(row.path));
      all.push_back(row);
    }
    return all;
  }();
  return rows;
}

constexpr std::string_view kTotal = "train_batch_size";
constexpr auto kFactors = std::to_array<std::string_view>(
    {"train_micro_batch_size_per_gpu", "gradient_accumulation_steps"});

// Takes out sizes that are no counts, so that each is told of once.
void take_out_wrong_counts(std::vector<Written>& settings, base::Mistakes& mistakes) {
  for (const std::string_view key : {kTotal, kFactors[0], kFactors[1]}) {
    if (find_setting(settings, key) == nullptr) continue;
    bool is_count = false;
    mistakes.gather([&] {
      (void)count_in(settings, key);
      is_count = true;
    });
    if (!is_count)
      std::erase_if(settings, [&](const Written& setting) { return setting.name == key; });
  }
}

// DeepSpeed takes the number of devices from the launcher and works out what is left open.
void settle_batch_size(const std::vector<Written>& settings) {
  if (find_setting(settings, kTotal) == nullptr) return;
  const int64_t total = count_in(settings, kTotal);
  int64_t product = 1;
  for (const std::string_view factor : kFactors) {
    if (find_setting(settings, factor) == nullptr)
      fail_at(settings, kTotal,
              fmt::format("is {}, but {} is not given, and the number of devices is not "
                          "known yet; give it, or make this \"auto\"",
                          total, factor));
    const int64_t value = count_in(settings, factor);
    if (value > total / product)
      fail_at(settings, kTotal, fmt::format("is {}, less than one device takes in a step", total));
    product *= value;
  }
  if (total % product != 0)
    fail_at(settings, kTotal,
            fmt::format("is {}, no multiple of the {} rows that a device takes in a step", total,
                        product));
}

// DeepSpeed's defaults where its file says something of fp16; those of a recipe are torch's.
void add_loss_scale_defaults(ToolConfig& config, const std::vector<Written>& settings,
                             const std::string& file) {
  const bool has_section = std::ranges::any_of(
      settings, [](const Written& setting) { return setting.name.starts_with("fp16."); });
  const std::string* enabled = find_setting(settings, "fp16.enabled");
  if (!has_section || (enabled != nullptr && *enabled == "false")) return;
  constexpr std::array<std::array<std::string_view, 2>, 3> kDefaults{
      {{"loss_scale_window", "1000"}, {"hysteresis", "2"}, {"min_loss_scale", "1"}}};
  for (const auto& [name, value] : kDefaults) {
    const std::string path = fmt::format("fp16.{}", name);
    if (find_setting(settings, path) == nullptr)
      config.settings.push_back({std::string(name),
                                 {std::string(value)},
                                 false,
                                 {fmt::format("{}: {}", file, path), 0, 0},
                                 true});
  }
}

}  // namespace

ToolConfig read_deepspeed_config(const std::string& path) {
  const std::string text = base::read_text_file(path, kMaxConfigBytes);
  const nlohmann::json document = base::parse_json(text, path);
  (void)base::JsonObject(document, path);
  std::vector<Written> settings = settings_in(document, text, path);
  base::Mistakes mistakes;
  take_out_wrong_counts(settings, mistakes);
  const bool has_counts = mistakes.empty();
  ToolConfig config = translate_file(settings, deepspeed_keys(), path);
  config.mistakes.gather([&] { mistakes.throw_if_any(); });
  if (has_counts) config.mistakes.gather([&] { settle_batch_size(settings); });
  add_loss_scale_defaults(config, settings, path);
  if (find_setting(settings, "scheduler.type") != nullptr &&
      find_setting(settings, "scheduler.params.warmup_type") == nullptr)
    config.notes.push_back(fmt::format(
        "{}: scheduler.params.warmup_type: DeepSpeed's own default rises by the logarithm of the "
        "step; here {}",
        path, kRise));
  return config;
}

}  // namespace snug::formats
