#include "models/config/unknown_keys.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace snug::models {
namespace {

// The keys that some family reads, and the keys that do not affect the network: those of
// transformers' configurations for generation, classification, storage and tools.
constexpr std::string_view kKnown =
    " "
    // Gemma 4's.
    "attention_k_eq_v enable_moe_block global_head_dim hidden_size_per_layer_input "
    "num_global_key_value_heads num_kv_shared_layers per_layer_config top_k_experts "
    "use_double_wide_mlp vocab_size_per_layer_input "
    // All others'.
    "_attn_implementation _attn_implementation_autoset _commit_hash _flash_attn_2_enabled "
    "_name_or_path _sliding_window_pattern activation activation_function add_bos_token "
    "add_cross_attention add_eos_token alibi apply_query_key_layer_scaling "
    "apply_residual_connection_post_layernorm architectures attention_bias attention_dropout "
    "attention_multiplier attention_out_bias attention_softmax_in_fp32 attn_implementation "
    "attn_logit_softcapping attn_output_gate attn_pdrop auto_map bad_words_ids "
    "begin_suppress_tokens bias bias_dropout_fusion block_auto_adjust_ff_dim block_dim "
    "block_ff_dim block_ffn_dim_multiplier block_mlp_init_scale block_multiple_of block_norm_eps "
    "block_out_init_scale block_use_swiglu block_use_xavier_init bos_token_id cache_implementation "
    "chunk_size_feed_forward classifier_dropout clip_qkv conv_L_cache conv_bias conv_dim "
    "conv_dim_out conv_use_xavier_init cross_attention_hidden_size d_ff d_kv d_model decoder "
    "decoder_sparse_step decoder_start_token_id dense_act_fn diversity_penalty do_sample "
    "dropout_rate dtype early_stopping embd_layer_norm embd_pdrop embedding_multiplier encoder "
    "encoder_no_repeat_ngram_size eod_token_id eos_token_id experts_implementation "
    "experts_per_token exponential_decay_length_penalty feed_forward_proj ffn_hidden_size "
    "final_logit_softcapping finetuning_task first_k_dense_replace forced_bos_token_id "
    "forced_eos_token_id full_attention_interval full_attn_idxs full_attn_mod "
    "gradient_checkpointing head_dim hidden_act hidden_activation hidden_dropout hidden_size "
    "id2label image_token_id init_method initial_context_length initializer_factor "
    "initializer_range intermediate_size interpolate_factor is_decoder is_encoder_decoder "
    "is_gated_act is_llama_config keys_to_ignore_at_inference label2id layer_norm_eps "
    "layer_norm_epsilon layer_switch layer_types layers_block_type length_penalty "
    "linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads "
    "linear_value_head_dim lm_head_bias logit_scale logits_scaling mamba_chunk_size "
    "mamba_conv_bias mamba_d_conv mamba_d_head mamba_d_state mamba_expand mamba_n_groups "
    "mamba_n_heads mamba_proj_bias mamba_ssm_dtype masked_softmax_fusion max_length max_new_tokens "
    "max_position_embeddings max_window_layers min_length mlp_bias mlp_only_layers "
    "model_max_length model_type moe_intermediate_size mtp_num_hidden_layers "
    "mtp_use_dedicated_embeddings multi_query n_ctx n_embd n_embed n_group n_head n_head_kv "
    "n_inner n_layer n_positions n_routed_experts n_shared_experts new_decoder_architecture "
    "no_repeat_ngram_size no_rope_layer_interval no_rope_layers norm_eps norm_topk_prob "
    "normalization_function num_attention_heads num_beam_groups num_beams num_decoder_layers "
    "num_experts num_experts_per_tok num_heads num_hidden_layers num_key_value_heads num_kv_heads "
    "num_labels num_layers num_ln_in_parallel_attn num_local_experts num_nextn_predict_layers "
    "num_return_sequences offset_alibi order_of_interleaved_layers "
    "original_max_position_embeddings output_attentions output_gate_type output_hidden_states "
    "output_past output_router_logits output_scores pad_token_id parallel_attn "
    "partial_rotary_factor position_embedding_type post_norm prefix pretraining_tp problem_type "
    "pruned_heads qk_layernorm qk_norm qkv_bias quantization_config query_pre_attn_scalar "
    "relative_attention_max_distance relative_attention_num_buckets remove_invalid_values "
    "reorder_and_upcast_attn repetition_penalty resid_pdrop residual_dropout residual_multiplier "
    "return_dict return_dict_in_generate rms_norm_eps rope_local_base_freq rope_parameters "
    "rope_scaling rope_theta rotary_emb_base rotary_pct routed_scaling_factor router_aux_loss_coef "
    "router_jitter_noise scale_attn_by_inverse_layer_idx scale_attn_weights scale_decoder_outputs "
    "sep_token_id seq_length shared_expert_intermediate_size shared_intermediate_size "
    "skip_bias_add skip_bias_add_qkv sliding_window sliding_window_pattern slow_but_exact "
    "summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj "
    "suppress_tokens swiglu_alpha swiglu_limit task_specific_params temperature tf_legacy_loss "
    "theta tie_embedding tie_encoder_decoder tie_word_embeddings time_step_limit tokenizer_class "
    "top_k top_p topk_group torch_dtype torchscript transformers.js_config transformers_version "
    "transformers_weights typical_p unk_token_id unsloth_fixed unsloth_version use_bfloat16 "
    "use_bias use_bidirectional_attention use_cache use_embedding_sharing use_gated_activation "
    "use_parallel_block use_parallel_embedding use_parallel_residual use_pos_enc use_qk_norm "
    "use_qkv_bias use_sliding_window video_token_id vision_config vision_end_token_id "
    "vision_start_token_id vision_token_id vocab_size ";

bool is_known(const std::string& key) { return kKnown.find(" " + key + " ") != kKnown.npos; }

// Such a value means that a feature is absent.
bool says_nothing(const nlohmann::json& value) {
  return value.empty() || value == false || value == 0 || value == "";
}

}  // namespace

std::vector<std::string> unknown_keys(const nlohmann::json& config) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.items())
    if (!says_nothing(value) && !is_known(key)) keys.push_back(key);
  return keys;
}

}  // namespace snug::models
