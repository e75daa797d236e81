// Keys of running, reporting and saving; most of them only concern logging or names.
#include "formats/foreign/foreign_keys.h"
#include "formats/recipe/report_keys.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr std::string_view kNoReports =
    "nothing is sent to such services; metrics.jsonl in the run's folder has every step, and "
    "report_to: tensorboard writes event files";
constexpr std::string_view kRunLogs = "the run's folder has its log, and metrics.jsonl every step";
constexpr std::string_view kHub = "the result stays in output_dir";
constexpr std::string_view kOwnSaving = "snug writes checkpoints and results of its own form";
constexpr std::string_view kRanks = "snug's ranks talk to each other its own way";
constexpr std::string_view kLayerUnits = "snug shares weights layer by layer";
constexpr std::string_view kLaunching = "the launcher of the run says it";
constexpr std::string_view kGeneration = "snug generate has keys of its own for it";
constexpr std::string_view kExport =
    "the result is a folder that PEFT and transformers read; it is not exported";

void add_reports(ForeignRows& rows) {
  rows.same_as({"use_tensorboard"}, "report_to", {{"true", kTensorBoard}, {"false"}})
      .same_as({"logger_name"}, "report_to")
      .pass_over({"wandb*", "use_wandb", "swanlab_*", "use_swanlab", "mlflow_*", "use_mlflow",
                  "hf_mlflow_*", "comet_*", "use_comet", "trackio_*", "use_trackio",
                  "tensorboard_*", "clearml_*", "neptune_*", "otel_*", "use_otel_metrics",
                  "tracker*", "ray_run_name", "logger"},
                 kNoReports)
      .pass_over({"run_name",
                  "project",
                  "project_name",
                  "experiment_name",
                  "name",
                  "tags",
                  "logging_dir",
                  "log_level*",
                  "log_on_each_node",
                  "log_completions",
                  "logging_first_step",
                  "logging_nan_inf_filter",
                  "disable_tqdm",
                  "plot_loss",
                  "print_param_status",
                  "include_tokens_per_second",
                  "include_effective_tokens_per_second",
                  "include_num_input_tokens_seen",
                  "include_tkps",
                  "skip_memory_metrics",
                  "verbose",
                  "debug",
                  "profile*",
                  "enable_torch_profiler",
                  "axolotl_config_path",
                  "is_preprocess",
                  "capabilities*",
                  "env_capabilities*",
                  "num_completions_to_print",
                  "add_version"},
                 kRunLogs)
      .pass_over({"push_to_hub*", "hub_*", "export_hub_model_id", "private_repo"}, kHub);
}

void add_saving(ForeignRows& rows) {
  rows.pass_over({"save_safetensors", "save_on_each_node", "save_first_step",
                  "restore_callback_states_from_checkpoint", "enable_jit_checkpoint",
                  "save_compressed", "save_adapter_weights_only"},
                 kOwnSaving)
      .pass_over({"export_dir", "export_size", "export_device", "export_legacy_format",
                  "export_hf_on_finish", "create_model_card"},
                 kExport)
      .only({"num_beams"}, kOneOnly,
            "searching with beams is not built: text is sampled, or with temperature=0 the "
            "likeliest token taken")
      .pass_over(
          {"do_sample", "sample_backend", "vllm_*", "use_vllm", "fast_inference",
           "gpu_memory_utilization", "sglang_*", "gradio_*", "generation_*", "generate_samples"},
          kGeneration);
}

// Recognises launchers' files that are given as recipes.
void add_launchers(ForeignRows& rows) {
  constexpr std::string_view kAccelerate =
      "this is a file of accelerate: give it next to a recipe, as accelerate_config: FILE.yaml";
  rows.refuse(
          {"compute_environment", "distributed_type", "deepspeed_config.*", "megatron_lm_config.*"},
          kAccelerate)
      .refuse({"zero_optimization.*"},
              "this is a file of DeepSpeed: give it next to a recipe, as deepspeed: FILE.json")
      .pass_over({"rdzv_backend", "same_network", "main_training_function", "downcast_bf16",
                  "tpu_*", "main_process_ip", "main_process_port", "enable_cpu_affinity",
                  "dynamo_config.*", "batching_strategy", "secrets", "gpu", "gpu_count",
                  "node_count", "timeout", "volumes.*", "provider"},
                 kLaunching);
}

void add_ranks(ForeignRows& rows) {
  rows.only({"accelerator_config.split_batches"}, kFalseOnly,
            "per_device_train_batch_size is the rows of each device")
      .same_as({"accelerator_config.gradient_accumulation_kwargs.num_steps"},
               "gradient_accumulation_steps")
      .pass_over({"ddp_find_unused_parameters", "ddp_bucket_cap_mb", "ddp_broadcast_buffers",
                  "ddp_backend", "ddp_static_graph", "accelerator_config*", "ddp", "device_count",
                  "fsdp_min_num_params", "parallelism_config*"},
                 kRanks)
      .pass_over({"local_rank", "world_size", "master_addr", "master_port", "num_processes",
                  "num_gpus", "gpu_ids", "ray_*", "resources_per_worker*", "n_gpu",
                  "nproc_per_node", "num_machines", "machine_rank"},
                 kLaunching)
      .same_as({"use_cpu", "no_cuda"}, "backend", {{"true", word_of(BackendName::cpu)}, {"false"}})
      .same_as({"fsdp_config.reshard_after_forward", "fsdp_config.fsdp_reshard_after_forward",
                "fsdp_config.sharding_strategy", "fsdp_config.fsdp_sharding_strategy"},
               "strategy",
               {{"true", word_of(Strategy::full_shard)},
                {"false", word_of(Strategy::shard_grad_op)},
                {"FULL_SHARD", word_of(Strategy::full_shard)},
                {"SHARD_GRAD_OP", word_of(Strategy::shard_grad_op)},
                {"NO_SHARD", word_of(Strategy::ddp)},
                {"HYBRID_SHARD", word_of(Strategy::hybrid_full_shard)},
                {"HYBRID_SHARD_ZERO2", word_of(Strategy::hybrid_shard_grad_op)}},
               "say strategy")
      .same_as({"fsdp_config.offload_params", "fsdp_config.fsdp_offload_params",
                "fsdp_config.offload", "fsdp_cpu_offload"},
               "fsdp_offload_params")
      .same_as(
          {"fsdp_config.activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing"},
          "activation_checkpointing")
      .same_as({"fsdp_config.backward_prefetch", "fsdp_config.fsdp_backward_prefetch"},
               "fsdp_backward_prefetch")
      .pass_over({"fsdp_config*", "fsdp_transformer_layer_cls_to_wrap", "fsdp_version",
                  "fsdp_state_dict_type", "fsdp_final_state_dict_type", "fsdp_auto_wrap_policy",
                  "fsdp_forward_prefetch", "fsdp_use_orig_params", "fsdp_sync_module_states",
                  "fsdp_cpu_ram_efficient_loading", "custom_sharded_layers"},
                 kLayerUnits)
      .pass_over({"dp_shard_size", "dp_replicate_size"}, "strategy and shard_devices say it")
      .refuse({"deepspeed.*", "dist_config.*", "fsdp.*"},
              "give the file itself: deepspeed: FILE.json or accelerate_config: FILE.yaml; or say "
              "strategy")
      .only({"activation_cpu_offload"}, kFalseOnly, "say activation_offloading: true");
}

}  // namespace

std::vector<ToolKey> foreign_running_keys() {
  ForeignRows rows;
  add_reports(rows);
  add_saving(rows);
  add_ranks(rows);
  add_launchers(rows);
  return rows.take();
}

}  // namespace snug::formats
