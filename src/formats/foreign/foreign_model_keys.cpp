// Keys of the model, of how its weights are stored, and of how it is computed.
#include "formats/foreign/foreign_keys.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr std::string_view kOwnCode = "snug has the code of the families that it knows";
constexpr std::string_view kOwnKernels =
    "snug computes with kernels of its own, to the same values";
constexpr std::string_view kRopeAdvice =
    "the model is trained as its config.json says; set it there";
constexpr std::string_view kRevisionAdvice = "give the folder of that revision: model: FOLDER";
constexpr std::string_view kQuantAdvice =
    "weights are in 16 bits, or in NF4 with method: qlora; other forms are not built";
constexpr std::string_view kCodeAdvice =
    "code of other tools is not run, and may change what is learned: take it out where it does "
    "not";
constexpr std::string_view kFp8Advice = "computing in fp8 is not built; use bf16: true";
constexpr std::string_view kParallelAdvice =
    "each device computes whole layers; use 1, and strategy: full_shard to share memory";
constexpr std::string_view kExpertsAdvice = "experts are stored as the other weights are";

void add_loading(ForeignRows& rows) {
  rows.pass_over(
          {"model_type", "trust_remote_code", "use_cache", "use_kv_cache", "is_llama_derived_model",
           "is_mistral_derived_model", "is_falcon_derived_model", "is_qwen_derived_model",
           "type_of_model", "base_model_ignore_patterns", "torchdistx_path", "model_class",
           "init_config.*", "cls_model_config", "llama4_linearized_experts"},
          kOwnCode)
      .pass_over(
          {"low_cpu_mem_usage", "device_map", "offload_folder", "max_memory", "gpu_memory_limit",
           "experimental_skip_move_to_device", "qlora_sharded_model_loading",
           "bnb_4bit_quant_storage", "quantization_device_map", "offload_embedding"},
          "how weights lie in memory is planned")
      .pass_over({"infer_backend", "infer_dtype"}, "snug generate has keys of its own for it")
      .pass_over({"model_author", "model_name"},
                 "it tells a model of another tool who it is; the model's folder and the data say "
                 "what is learned")
      .pass_over({"lora_on_cpu"}, "an adapter is merged or loaded where there is memory for it")
      .pass_over({"cache_dir", "hf_hub_token", "ms_hub_token", "om_hub_token", "hf_use_auth_token",
                  "use_auth_token", "use_hf", "hub_token", "model_kwargs.token"},
                 "models are folders here, or in the cache of the Hugging Face hub already")
      .only({"model_revision", "revision_of_model", "revision"}, {{"main"}}, kRevisionAdvice)
      .refuse({"base_model_config", "config_name", "model_config*", "overrides_of_model_*",
               "rope_scaling*", "rope_theta", "shift_attn", "s2_attention", "mixture_of_depths",
               "num_labels"},
              kRopeAdvice)
      .same_as({"model_kwargs.torch_dtype", "model_kwargs.dtype", "model_init_kwargs.torch_dtype",
                "model_init_kwargs.dtype"},
               "torch_dtype")
      .same_as({"model_init_kwargs.load_in_4bit", "model_kwargs.load_in_4bit"}, "load_in_4bit")
      .only({"model_init_kwargs.revision"}, {{"main"}}, kRevisionAdvice)
      .pass_over({"model_init_kwargs.trust_remote_code", "model_init_kwargs.attn_implementation",
                  "model_init_kwargs.use_cache", "model_init_kwargs.device_map",
                  "model_init_kwargs.low_cpu_mem_usage", "model_init_kwargs.token",
                  "model_init_kwargs.cache_dir", "model_init_kwargs.local_files_only",
                  "model_init_kwargs.use_safetensors", "model_init_kwargs.use_kernels"},
                 kOwnCode)
      .pass_over({"model_kwargs.trust_remote_code", "model_kwargs.attn_implementation",
                  "model_kwargs.use_cache", "model_kwargs.device_map",
                  "model_kwargs.low_cpu_mem_usage", "model_kwargs.cache_dir",
                  "model_kwargs.local_files_only", "model_kwargs.use_safetensors"},
                 kOwnCode)
      .only({"model_init_kwargs", "model_kwargs"}, {{"{}"}}, kRopeAdvice)
      .refuse({"model_kwargs.quantization_config*", "model_init_kwargs.quantization_config*"},
              kQuantAdvice)
      .refuse({"model_kwargs.*", "model_init_kwargs.*"}, kRopeAdvice)
      .same_as({"train_from_scratch", "reinit_weights"}, "init",
               {{"true", word_of(Init::random)}, {"false"}});
}

void add_precision(ForeignRows& rows) {
  rows.same_as({"bfloat16"}, "bf16")
      .same_as({"float16"}, "fp16")
      .same_as({"float32", "fp32"}, "compute_dtype",
               {{"true", word_of(ComputeDtype::fp32)}, {"false"}})
      .same_as({"mixed_precision"}, "compute_dtype",
               {{"no", word_of(ComputeDtype::fp32)},
                {"bf16", word_of(ComputeDtype::bf16)},
                {"fp16", word_of(ComputeDtype::fp16)}},
               kFp8Advice)
      .same_as({"precision"}, "compute_dtype",
               {{"bf16-true", word_of(ComputeDtype::bf16)},
                {"bf16-mixed", word_of(ComputeDtype::bf16)},
                {"16-mixed", word_of(ComputeDtype::fp16)},
                {"32-true", word_of(ComputeDtype::fp32)}},
               "say compute_dtype: bf16, fp16 or fp32")
      .same_as({"pure_bf16"}, "optim", {{"true", word_of(Optimizer::adamw_bf16)}, {"false"}})
      .only({"fp8*", "use_fp8"}, kFalseOnly, kFp8Advice)
      .pass_over({"tf32", "fp16_full_eval", "bf16_full_eval", "half_precision_backend",
                  "fp16_opt_level", "fp16_backend", "autocast_adapter_dtype",
                  "peft_autocast_adapter_dtype", "embeddings_skip_upcast", "upcast_layernorm",
                  "upcast_lmhead_output", "cast_trainable_params_to_fp32"},
                 "compute_dtype says in which type is computed");
}

void add_quantization(ForeignRows& rows) {
  constexpr std::string_view kBits =
      "of the base weights NF4 alone is built, 4 bits; method: lora keeps them in bf16";
  rows.same_as({"quantization_bit", "quant_bits"}, "load_in_4bit", {{"4", "true"}, {"none"}, {"0"}},
               kBits)
      .same_as({"double_quantization", "use_bnb_nested_quant", "bnb_4bit_use_nested_quant",
                "bnb_config_kwargs.bnb_4bit_use_double_quant"},
               "double_quant")
      .only({"quantization_method", "quant_method"}, {{"bnb"}, {"bitsandbytes"}}, kQuantAdvice)
      .only({"quantization_type", "bnb_config_kwargs.bnb_4bit_quant_type"}, {{"nf4"}}, kQuantAdvice)
      .only({"gptq", "quantize_moe_experts"}, kFalseOnly, kExpertsAdvice)
      .pass_over({"gptq_*"}, "gptq is off")
      .refuse({"model_quantization_config", "quantization_config*", "quant_config", "quantizer",
               "quantization.*", "qat.*", "quant_config.*", "llmcompressor.*",
               "export_quantization_*", "bnb_config_kwargs.*"},
              kQuantAdvice)
      .pass_over({"model_quantization_config_kwargs.*"}, "model_quantization_config says it");
}

void add_kernels(ForeignRows& rows) {
  rows.pass_over(
          {"attn_implementation", "attn_impl", "flash_attn", "flash_attention", "flash_attn_*",
           "sdp_attention", "xformers_attention", "eager_attention", "sage_attention",
           "flex_attention", "flex_attn_compile_kwargs*", "flash_optimum", "use_flash_attention",
           "use_flash_attn", "use_flash_attention_2", "fused_attn_kernel", "sdpa_varlen",
           "gemma4_hybrid_attn_impl", "large_head_attention"},
          kOwnKernels)
      .pass_over({"use_liger_kernel",
                  "use_liger",
                  "enable_liger_kernel",
                  "liger_*",
                  "use_liger_loss",
                  "dpo_use_liger_kernel",
                  "cut_cross_entropy",
                  "chunked_cross_entropy*",
                  "unsloth_*",
                  "use_unsloth",
                  "use_unsloth_gc",
                  "lora_mlp_kernel",
                  "lora_qkv_kernel",
                  "lora_o_kernel",
                  "lora_embedding_kernel",
                  "use_kernels",
                  "use_v1_kernels",
                  "use_scattermoe",
                  "use_sonicmoe",
                  "experts_implementation",
                  "kernel_config.*",
                  "tiled_mlp*",
                  "torch_compile",
                  "torch_compile_*",
                  "torchcompile",
                  "compile",
                  "deepcompile",
                  "use_cpu_initialization",
                  "dsv4_*",
                  "use_dsv4_kernels",
                  "use_glm_dsa_kernels",
                  "torch_empty_cache_steps",
                  "gc_steps",
                  "gc_collect_steps"},
                 kOwnKernels)
      .only({"plugins"},
            {{"axolotl.integrations.liger.LigerPlugin"},
             {"axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"},
             {"axolotl.integrations.kernels.KernelsPlugin"},
             {"axolotl.integrations.lm_eval.LMEvalPlugin"}},
            kCodeAdvice)
      .refuse({"custom_register_path*", "external_plugins*", "callbacks", "trainer_cls"},
              kCodeAdvice)
      .pass_over({"gradient_checkpointing_kwargs*", "activation_checkpointing_kwargs*",
                  "use_reentrant_gc", "use_reentrant", "selective_checkpointing*",
                  "dynamic_checkpoint*", "recompute_layer_types"},
                 "recompute says what is computed again")
      .same_as({"use_gradient_checkpointing"}, "recompute",
               {{"true", word_of(Recompute::layer)},
                {"unsloth", word_of(Recompute::layer)},
                {"false", word_of(Recompute::none)}})
      .same_as({"disable_gradient_checkpointing"}, "gradient_checkpointing",
               {{"true", "false"}, {"false", "true"}})
      .only({"layer_offloading"}, kFalseOnly, "say offload_params: true")
      .only({"tensor_parallel_size", "tensor_model_parallel_size", "tp_size",
             "pipeline_model_parallel_size", "pp_size", "context_parallel_size", "cp_size",
             "sequence_parallel_degree", "sequence_parallel_size", "expert_parallel_size",
             "expert_model_parallel_size", "heads_k_stride"},
            kOneOnly, kParallelAdvice)
      .only({"sequence_parallel", "use_mca", "use_kt", "use_megatron_bridge", "use_hyper_parallel"},
            kFalseOnly, kParallelAdvice)
      .pass_over({"ring_attn_func", "cp_mode", "kt_*", "expert_parallel_*"},
                 "nothing is divided within layers");
}

}  // namespace

std::vector<ToolKey> foreign_model_keys() {
  ForeignRows rows;
  add_loading(rows);
  add_precision(rows);
  add_quantization(rows);
  add_kernels(rows);
  return rows.take();
}

}  // namespace snug::formats
