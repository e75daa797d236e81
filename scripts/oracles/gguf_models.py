"""Tiny models of each family that llama.cpp runs, with sizes that blocks of 256 values divide, and variants with odd sizes."""

import pathlib

import torch
import transformers as hf

SIZES = dict(vocab_size=96, hidden_size=256, intermediate_size=512, num_hidden_layers=8, num_attention_heads=4, max_position_embeddings=128,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
GROUPED = SIZES | dict(num_key_value_heads=2)
LONG = [1.0 + 0.25 * i for i in range(32)]
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32)
EXPERTS = dict(num_local_experts=8, num_experts_per_tok=2)
T5 = dict(vocab_size=96, d_model=256, d_kv=64, d_ff=512, num_layers=8, num_decoder_layers=8, num_heads=4, decoder_start_token_id=0, eos_token_id=2,
          pad_token_id=0)
MINISTRAL3 = YARN | dict(original_max_position_embeddings=8, mscale=1.0, mscale_all_dim=1.0, beta_fast=32.0, beta_slow=1.0, llama_4_scaling_beta=0.1)
GEMMA4 = GROUPED | dict(head_dim=32, global_head_dim=64, sliding_window=8, hidden_size_per_layer_input=0, final_logit_softcapping=20.0)
KEYS_AS_VALUES = dict(num_attention_heads=4, num_key_value_heads=2, num_global_key_value_heads=1, attention_k_eq_v=True)
GPT_OSS = GROUPED | dict(head_dim=64, intermediate_size=256, num_hidden_layers=4, num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
                         rope_parameters=dict(rope_type="default", rope_theta=150000.0))


GATED_DELTA = dict(linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4,
                   rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25))
SHARED_EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256, shared_expert_intermediate_size=512)


def without(fields: dict, key: str) -> dict:
    return {name: value for name, value in fields.items() if name != key}


def longrope(original: int) -> dict:
    return dict(rope_type="longrope", rope_theta=10000.0, long_factor=LONG, short_factor=[1.0 + factor / 8 for factor in LONG],
                original_max_position_embeddings=original)


def configs() -> dict[str, hf.PretrainedConfig]:
    return {
        "llama": hf.LlamaConfig(**GROUPED),
        "llama_tied": hf.LlamaConfig(**GROUPED, tie_word_embeddings=True),
        "llama_biases": hf.LlamaConfig(**GROUPED, attention_bias=True, mlp_bias=True),
        "llama_head_dim": hf.LlamaConfig(**GROUPED, head_dim=32),
        "llama_rope": hf.LlamaConfig(**GROUPED, rope_parameters=dict(LLAMA3)),
        "llama_yarn": hf.LlamaConfig(**GROUPED, rope_parameters=dict(YARN)),
        "llama_linear": hf.LlamaConfig(**GROUPED, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)),
        "llama_width_96": hf.LlamaConfig(**GROUPED | dict(hidden_size=96, intermediate_size=160)),
        "llama_width_40": hf.LlamaConfig(**GROUPED | dict(hidden_size=40, intermediate_size=72, num_attention_heads=2, num_key_value_heads=1),
                                         tie_word_embeddings=True),
        "mistral": hf.MistralConfig(**GROUPED, sliding_window=None),
        "mixtral": hf.MixtralConfig(**GROUPED | EXPERTS),
        "qwen2": hf.Qwen2Config(**GROUPED),
        "qwen3": hf.Qwen3Config(**GROUPED, head_dim=32),
        "qwen3_moe": hf.Qwen3MoeConfig(**GROUPED, head_dim=32, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256, norm_topk_prob=True),
        "gemma": hf.GemmaConfig(**GROUPED, head_dim=32),
        "gemma2": hf.Gemma2Config(**GROUPED, head_dim=32, query_pre_attn_scalar=32, sliding_window=8),
        "gemma2_scaled": hf.Gemma2Config(**GROUPED, head_dim=32, query_pre_attn_scalar=24, sliding_window=8),
        "gemma3": hf.Gemma3TextConfig(**GROUPED, head_dim=32, query_pre_attn_scalar=32, sliding_window=8),
        "gemma3_scaled": hf.Gemma3TextConfig(**GROUPED, head_dim=32, query_pre_attn_scalar=20, sliding_window=8, final_logit_softcapping=20.0),
        "gemma4": hf.Gemma4TextConfig(**GEMMA4 | KEYS_AS_VALUES),
        "gemma4_sharing": hf.Gemma4TextConfig(**GEMMA4 | dict(hidden_size_per_layer_input=256, vocab_size_per_layer_input=96), num_kv_shared_layers=2,
                                              use_double_wide_mlp=True,
                                              layer_types=(["sliding_attention"] * 2 + ["full_attention"]) * 2 + ["sliding_attention", "full_attention"]),
        "gemma4_moe": hf.Gemma4TextConfig(**GEMMA4 | KEYS_AS_VALUES, enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=256),
        "phi": hf.PhiConfig(**SIZES | dict(intermediate_size=1024), partial_rotary_factor=0.5),
        "phi3": hf.Phi3Config(**GROUPED, sliding_window=None, original_max_position_embeddings=128),
        "phi3_short": hf.Phi3Config(**GROUPED | dict(max_position_embeddings=2048), original_max_position_embeddings=512, rope_parameters=longrope(512)),
        "phi3_long": hf.Phi3Config(**GROUPED | dict(max_position_embeddings=256), original_max_position_embeddings=16, rope_parameters=longrope(16)),
        "gpt2": hf.GPT2Config(vocab_size=96, n_embd=256, n_layer=8, n_head=4, n_positions=128, n_inner=1024, bos_token_id=1, eos_token_id=2),
        "gpt_neox": hf.GPTNeoXConfig(**SIZES, rotary_pct=0.25),
        "gpt_neox_in_turn": hf.GPTNeoXConfig(**SIZES, rotary_pct=0.5, use_parallel_residual=False, attention_bias=False),
        "bloom": hf.BloomConfig(vocab_size=96, hidden_size=256, n_layer=8, n_head=4, seq_length=128),
        "falcon": hf.FalconConfig(vocab_size=96, hidden_size=256, num_hidden_layers=8, num_attention_heads=4, alibi=False, bias=False, multi_query=True,
                                  parallel_attn=True, new_decoder_architecture=False),
        "falcon_grouped": hf.FalconConfig(vocab_size=96, hidden_size=256, num_hidden_layers=8, num_attention_heads=4, num_kv_heads=2, alibi=False, bias=False,
                                          new_decoder_architecture=True),
        "olmo2": hf.Olmo2Config(**GROUPED),
        "olmo3": hf.Olmo3Config(**GROUPED, sliding_window=8),
        "olmo3_yarn": hf.Olmo3Config(**GROUPED, sliding_window=8, rope_parameters=dict(YARN)),
        "granite": hf.GraniteConfig(**GROUPED, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.0),
        "granite_biases": hf.GraniteConfig(**GROUPED, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        "smollm3": hf.SmolLM3Config(**GROUPED),
        "ministral3": hf.Ministral3Config(**GROUPED, head_dim=64, rope_parameters=MINISTRAL3),
        "ernie4_5": hf.Ernie4_5Config(**GROUPED, head_dim=32),
        "glm4": hf.Glm4Config(**GROUPED, head_dim=32, attention_bias=True),
        "seed_oss": hf.SeedOssConfig(**GROUPED, head_dim=32),
        "hunyuan": hf.HunYuanDenseV1Config(**GROUPED, head_dim=32),
        "exaone4": hf.Exaone4Config(**GROUPED, sliding_window=None, sliding_window_pattern=0, layer_types=["full_attention"] * 8, rope_parameters=dict(LLAMA3)),
        "exaone4_windows": hf.Exaone4Config(**GROUPED | dict(num_hidden_layers=64, hidden_size=64, intermediate_size=64), sliding_window=8, sliding_window_pattern=4),
        "qwen2_moe": hf.Qwen2MoeConfig(**GROUPED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256, shared_expert_intermediate_size=512,
                                       norm_topk_prob=False),
        "olmoe": hf.OlmoeConfig(**SIZES | dict(intermediate_size=256), num_key_value_heads=4, num_experts=4, num_experts_per_tok=2, norm_topk_prob=False),
        "granitemoe": hf.GraniteMoeConfig(**GROUPED | EXPERTS | dict(intermediate_size=256), embedding_multiplier=3.0, residual_multiplier=0.4,
                                          attention_multiplier=0.2, logits_scaling=2.0),
        "glm4_moe": hf.Glm4MoeConfig(**GROUPED, head_dim=32, moe_intermediate_size=256, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1,
                                     first_k_dense_replace=2, routed_scaling_factor=1.5, use_qk_norm=True, attention_bias=True, num_nextn_predict_layers=0),
        "cohere2": hf.Cohere2Config(**GROUPED, sliding_window=8, logit_scale=0.5),
        "stablelm": hf.StableLmConfig(**GROUPED, partial_rotary_factor=0.25, use_qkv_bias=True),
        "stablelm_12b": hf.StableLmConfig(**GROUPED, partial_rotary_factor=0.25, qk_layernorm=True, use_parallel_residual=True),
        "stablelm_tied": hf.StableLmConfig(**GROUPED, partial_rotary_factor=0.25, tie_word_embeddings=True),
        "gpt_oss": hf.GptOssConfig(**GPT_OSS),
        "qwen3_5": hf.Qwen3_5TextConfig(**GROUPED, head_dim=64, **GATED_DELTA),
        "qwen3_5_moe": hf.Qwen3_5MoeTextConfig(**without(GROUPED, "intermediate_size"), head_dim=64, **GATED_DELTA, **SHARED_EXPERTS),
        "qwen3_next": hf.Qwen3NextConfig(**GROUPED, head_dim=64, **GATED_DELTA, **SHARED_EXPERTS),
        "apertus": hf.ApertusConfig(**GROUPED, rope_parameters=dict(LLAMA3)),
        "lfm2": hf.Lfm2Config(**GROUPED, layer_types=["conv", "full_attention", "conv", "conv"] * 2),
        "t5": hf.T5Config(**T5, feed_forward_proj="relu", tie_word_embeddings=True),
        "t5_gated": hf.T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
        "mt5": hf.MT5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    }


# Keys as the converter reads them, where transformers 5 has them under other names or with other defaults.
CONVERTER_KEYS = {
    "gpt2": {"n_ctx": 128},
    "gpt_neox": {"rotary_pct": 0.25},
    "gpt_neox_in_turn": {"rotary_pct": 0.5},
    "falcon": {"num_kv_heads": 1},
    "cohere2": {"rotary_pct": 1.0},
}


def class_of(config: hf.PretrainedConfig):
    return hf.AutoModelForSeq2SeqLM if config.is_encoder_decoder else hf.AutoModelForCausalLM


def write_model(config: hf.PretrainedConfig, folder: pathlib.Path) -> None:
    """Random weights of a size at which every part of the model matters, norms and biases included."""
    torch.manual_seed(sum(map(ord, folder.name)))
    model = class_of(config).from_config(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            spread = 0.3 if weight.dim() < 2 or "norm" in name else 2.0 / weight.shape[-1] ** 0.5
            around = weight if weight.dim() < 2 else 0.0
            if config.is_encoder_decoder and name.endswith("Attention.q.weight"):
                spread /= config.d_kv**0.5  # scores are not scaled; large ones would magnify every rounding
            weight.copy_(around + torch.randn_like(weight) * spread)
            if config.model_type == "gemma4_text" and name.endswith(("q_norm.weight", "k_norm.weight")):
                weight.mul_(0.3)  # of scores that are not scaled
    model.save_pretrained(folder)
