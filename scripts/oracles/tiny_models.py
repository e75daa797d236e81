"""The tiny random models behind the goldens: odd shapes, weights large enough that errors show.

Each model is a function of its entry in MODELS alone (shapes and seed), so every golden can be remade alone.
"""

import dataclasses
import json
import pathlib

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel


@dataclasses.dataclass(frozen=True)
class Spec:
    """What one model is for, its random seed, and the fields of its config.json."""

    purpose: str
    seed: int
    fields: dict
    model_type: str = "llama"


DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 10000.0}

# With head_dim 16 and theta 500000 the wave lengths are 6, 32, 167, 861... tokens: original_max_position_embeddings 100
# puts the first under the high band (25), the second between the bands, and the others above the low band (100).
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 100,
}

# With head_dim 12, theta 20 and original_max_position_embeddings 24, the ramp runs from frequency 1 to 3: frequencies 0 and
# 1 are kept, 2 lies between, and 3 to 5 are divided.
YARN = {
    "rope_type": "yarn",
    "rope_theta": 20.0,
    "factor": 4.0,
    "beta_fast": 2.0,
    "original_max_position_embeddings": 24,
}

# Layers without a window are scaled as those of the larger models are.
GEMMA3_ROPE = {
    "full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}

# One of the three frequencies of a head of 6 rotates.
GEMMA4_ROPE = {
    "full_attention": {"rope_type": "proportional", "rope_theta": 100.0, "partial_rotary_factor": 0.5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}

# Four factors a set, as head_dim is 8.
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.25, 1.5, 2.0],
    "long_factor": [1.5, 4.0, 9.0, 24.0],
}

# Three factors a set: three quarters of a head of 8 are rotated.
PARTIAL_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.75,
    "short_factor": [1.0, 1.25, 2.0],
    "long_factor": [1.5, 4.0, 24.0],
}

# Layers with a window are never scaled; their theta is the default of the class.
OLMO3_ROPE = {
    "full_attention": YARN,
    "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0},
}

# Yarn as published, and queries that grow three times within 33 tokens.
GROWING_YARN = {
    "rope_type": "yarn",
    "rope_theta": 20.0,
    "factor": 4.0,
    "beta_fast": 2.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 11,
    "llama_4_scaling_beta": 0.4,
}

MODELS = {
    "basic": Spec(
        "every head its own key and value, untied (Llama 1 and 2)",
        101,
        dict(vocab_size=131, hidden_size=36, intermediate_size=56, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=6, rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE, tie_word_embeddings=False),
    ),
    "grouped_tied": Spec(
        "three query heads share a key and value, tied embeddings, three layers (SmolLM2, TinyLlama's grouping)",
        102,
        dict(vocab_size=137, hidden_size=36, intermediate_size=52, num_hidden_layers=3, num_attention_heads=6,
             num_key_value_heads=2, rms_norm_eps=1e-5, rope_parameters={**DEFAULT_ROPE, "rope_theta": 100000.0},
             tie_word_embeddings=True),
    ),
    "biases": Spec(
        "attention_bias and mlp_bias, grouped heads, untied",
        103,
        dict(vocab_size=101, hidden_size=36, intermediate_size=44, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=3, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, tie_word_embeddings=False,
             attention_bias=True, mlp_bias=True),
    ),
    "head_dim": Spec(
        "explicit head_dim 10 where hidden / heads is 6, theta 1e6 (CodeLlama), untied",
        104,
        dict(vocab_size=53, hidden_size=18, intermediate_size=34, num_hidden_layers=2, num_attention_heads=3,
             num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-5,
             rope_parameters={**DEFAULT_ROPE, "rope_theta": 1000000.0}, tie_word_embeddings=False),
    ),
    "rope_llama3": Spec(
        "rope scaling llama3 with all three bands in use, explicit head_dim 16, tied (Llama 3.1 and 3.2)",
        105,
        dict(vocab_size=29, hidden_size=14, intermediate_size=18, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, head_dim=16, rms_norm_eps=1e-5, rope_parameters=LLAMA3_ROPE,
             max_position_embeddings=800, tie_word_embeddings=True),
    ),
    "rope_linear": Spec(
        "rope scaling linear, factor 2.5, head_dim 4",
        106,
        dict(vocab_size=89, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=3, rms_norm_eps=1e-6,
             rope_parameters={**DEFAULT_ROPE, "rope_type": "linear", "factor": 2.5}, tie_word_embeddings=False),
    ),
    "rope_yarn": Spec(
        "rope scaling yarn, factor 4, its three bands all in use, explicit head_dim 12, grouped heads, untied",
        118,
        dict(vocab_size=43, hidden_size=18, intermediate_size=22, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, head_dim=12, rms_norm_eps=1e-6, rope_parameters=YARN, max_position_embeddings=96,
             tie_word_embeddings=False),
    ),
    "mistral": Spec(
        "a sliding window of 7 in every layer, explicit head_dim, grouped heads, untied (Mistral 7B v0.1)",
        107,
        dict(vocab_size=59, hidden_size=20, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, sliding_window=7,
             tie_word_embeddings=False),
        "mistral",
    ),
    "qwen2": Spec(
        "biases on q, k and v alone, tied, a window of 9 from layer 1 on",
        108,
        dict(vocab_size=67, hidden_size=24, intermediate_size=30, num_hidden_layers=3, num_attention_heads=6,
             num_key_value_heads=2, rms_norm_eps=1e-6, rope_parameters={**DEFAULT_ROPE, "rope_theta": 1000000.0},
             use_sliding_window=True, sliding_window=9, max_window_layers=1, tie_word_embeddings=True),
        "qwen2",
    ),
    "qwen3": Spec(
        "norms on q and k, explicit head_dim 6 where hidden / heads is 5, a window of 8 in layer 0 alone, untied",
        109,
        dict(vocab_size=61, hidden_size=20, intermediate_size=26, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-6,
             rope_parameters={**DEFAULT_ROPE, "rope_theta": 1000000.0}, use_sliding_window=True, sliding_window=8,
             layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=False),
        "qwen3",
    ),
    "olmo2": Spec(
        "norms after the blocks, q and k normed over all heads, grouped heads, untied (OLMo 2)",
        113,
        dict(vocab_size=59, hidden_size=24, intermediate_size=26, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, rms_norm_eps=1e-6, rope_parameters={**DEFAULT_ROPE, "rope_theta": 500000.0},
             pad_token_id=None, tie_word_embeddings=False),
        "olmo2",
    ),
    "gemma": Spec(
        "norms that multiply by 1 + w, embeddings scaled by sqrt(20), gelu_tanh, grouped heads of 6, tied (Gemma)",
        114,
        dict(vocab_size=61, hidden_size=20, intermediate_size=26, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE,
             pad_token_id=None, tie_word_embeddings=True),
        "gemma",
    ),
    "gemma2": Spec(
        "four norms in a layer, scores and logits capped, a scale of its own, a window of 7 in layers 0 and 2 (Gemma 2)",
        415,
        dict(vocab_size=47, hidden_size=16, intermediate_size=18, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE, sliding_window=7,
             query_pre_attn_scalar=10, attn_logit_softcapping=0.8, final_logit_softcapping=2.5,
             pad_token_id=None, tie_word_embeddings=True),
        "gemma2",
    ),
    "gemma3": Spec(
        "norms on q and k, a window of 7 in two layers of three with a theta of their own, the others scaled (Gemma 3)",
        517,
        dict(vocab_size=41, hidden_size=12, intermediate_size=18, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-6, sliding_window=7, query_pre_attn_scalar=24,
             rope_parameters=GEMMA3_ROPE, layer_types=["sliding_attention", "sliding_attention", "full_attention"],
             pad_token_id=None, tie_word_embeddings=True),
        "gemma3_text",
    ),
    "stablelm": Spec(
        "layer norms with biases, 4 of 10 elements of a head rotated, biases on q, k and v, grouped heads, untied (StableLM 2)",
        116,
        dict(vocab_size=43, hidden_size=20, intermediate_size=18, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, layer_norm_eps=1e-5, use_qkv_bias=True,
             rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.45}, tie_word_embeddings=False),
        "stablelm",
    ),
    "stablelm_12b": Spec(
        "attention and mlp side by side on one layer norm, a layer norm without bias for each head of queries and keys (StableLM 2 12B)",
        118,
        dict(vocab_size=13, hidden_size=8, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=2, layer_norm_eps=1e-5, qk_layernorm=True, use_parallel_residual=True,
             rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.5}, pad_token_id=None, tie_word_embeddings=False),
        "stablelm",
    ),
    "phi": Spec(
        "attention and a plain mlp side by side on one norm, biases everywhere, the head too, half of each head rotated (Phi 2)",
        119,
        dict(vocab_size=43, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, layer_norm_eps=1e-5,
             rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.5}, tie_word_embeddings=False),
        "phi",
    ),
    "gpt_neox": Spec(
        "q, k and v in one tensor head by head, two norms side by side, exact gelu, 2 of 6 elements rotated (Pythia)",
        120,
        dict(vocab_size=41, hidden_size=18, intermediate_size=22, num_hidden_layers=2, num_attention_heads=3,
             layer_norm_eps=1e-5, rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.4},
             tie_word_embeddings=False),
        "gpt_neox",
    ),
    "gpt_neox_in_turn": Spec(
        "the same with one block after the other, gelu in its tanh form, whole heads rotated (RedPajama-INCITE)",
        121,
        dict(vocab_size=31, hidden_size=12, intermediate_size=14, num_hidden_layers=1, num_attention_heads=2,
             layer_norm_eps=1e-5, rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 1.0},
             hidden_act="gelu_fast", use_parallel_residual=False, tie_word_embeddings=False),
        "gpt_neox",
    ),
    "gpt2": Spec(
        "learned positions, linears stored (in, out), q, k and v in one, heads of 3, tied (GPT-2)",
        122,
        dict(vocab_size=23, n_embd=9, n_inner=14, n_layer=2, n_head=3, max_position_embeddings=67),
        "gpt2",
    ),
    "bloom": Spec(
        "scores that fall with distance (3 heads: one slope beyond a power of two), a norm of the embeddings, tied (BLOOM)",
        123,
        dict(vocab_size=23, hidden_size=9, n_layer=2, n_head=3),
        "bloom",
    ),
    "falcon": Spec(
        "one key for all heads, blocks side by side on one norm, exact gelu, no biases, tied (Falcon 7B)",
        124,
        dict(vocab_size=23, hidden_size=12, ffn_hidden_size=14, num_hidden_layers=2, num_attention_heads=3,
             rope_parameters=DEFAULT_ROPE),
        "falcon",
    ),
    "falcon_grouped": Spec(
        "two groups of two heads in one tensor, group by group, two norms side by side, tied (Falcon 40B)",
        125,
        dict(vocab_size=23, hidden_size=16, ffn_hidden_size=10, num_hidden_layers=1, num_attention_heads=4, num_kv_heads=2,
             new_decoder_architecture=True, rope_parameters=DEFAULT_ROPE),
        "falcon",
    ),
    "falcon_rw": Spec(
        "scaled scores that fall with distance, q, k and v head by head, blocks in turn, biases, tied (Falcon-RW)",
        126,
        dict(vocab_size=23, hidden_size=9, ffn_hidden_size=14, num_hidden_layers=1, num_attention_heads=3,
             multi_query=False, parallel_attn=False, bias=True, alibi=True, rope_parameters=DEFAULT_ROPE),
        "falcon",
    ),
    # Of both mixtures of experts the seed is one whose choices are clear: no token's last expert is closer to the next
    # one than 0.028 standard deviations of its logits, or bf16 would choose others.
    "mixtral": Spec(
        "two of five experts for each token, a window of 9, grouped heads, untied (Mixtral 8x7B)",
        181,
        dict(vocab_size=23, hidden_size=12, intermediate_size=5, num_hidden_layers=2, num_attention_heads=3,
             num_key_value_heads=1, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, sliding_window=9,
             num_local_experts=5, num_experts_per_tok=2, pad_token_id=None, tie_word_embeddings=False),
        "mixtral",
    ),
    "qwen3_moe": Spec(
        "three of seven experts whose weights do not sum to one, layer 0 with one mlp, norms on q and k, untied (Qwen3 MoE)",
        481,
        dict(vocab_size=23, hidden_size=12, intermediate_size=14, moe_intermediate_size=5, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, head_dim=4, rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE,
             num_experts=7, num_experts_per_tok=3, norm_topk_prob=False, mlp_only_layers=[0], pad_token_id=None,
             tie_word_embeddings=False),
        "qwen3_moe",
    ),
    "gpt_oss": Spec(
        "sinks, two of five experts with biases and a gate that is clamped at 0.4, a window of 9 in layer 0, yarn at "
        "fractions of a frequency, biases on q, k, v and o, grouped heads, untied (gpt-oss)",
        676,
        dict(vocab_size=23, hidden_size=12, intermediate_size=5, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-5, rope_parameters={**YARN, "truncate": False},
             sliding_window=9, num_local_experts=5, num_experts_per_tok=2, swiglu_limit=0.4, swiglu_alpha=1.3,
             pad_token_id=None, tie_word_embeddings=False),
        "gpt_oss",
    ),
    "qwen2_moe": Spec(
        "two of five experts and a shared one with a gate, layer 0 with one mlp, a window of 9 in layer 2, biases on q, k "
        "and v, untied (Qwen1.5 MoE)",
        509,
        dict(vocab_size=23, hidden_size=16, intermediate_size=14, moe_intermediate_size=5,
             shared_expert_intermediate_size=7, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE, num_experts=5, num_experts_per_tok=2, norm_topk_prob=False,
             mlp_only_layers=[0], use_sliding_window=True, sliding_window=9, max_window_layers=3, pad_token_id=None,
             tie_word_embeddings=False),
        "qwen2_moe",
    ),
    "olmoe": Spec(
        "two of five experts whose weights do not sum to one, norms over all heads of q and k, untied (OLMoE)",
        540,
        dict(vocab_size=23, hidden_size=16, intermediate_size=5, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, num_experts=5, num_experts_per_tok=2,
             pad_token_id=None, tie_word_embeddings=False),
        "olmoe",
    ),
    "granitemoe": Spec(
        "two of five experts in tensors of all, factors of the embedding, the residual, scores and logits, tied "
        "(Granite 3 MoE)",
        402,
        dict(vocab_size=23, hidden_size=12, intermediate_size=5, num_hidden_layers=2, num_attention_heads=3,
             num_key_value_heads=1, rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE, num_local_experts=5,
             num_experts_per_tok=2, embedding_multiplier=3.0, residual_multiplier=0.7, attention_multiplier=0.3,
             logits_scaling=1.7, pad_token_id=None, tie_word_embeddings=True),
        "granitemoe",
    ),
    "glm4_moe": Spec(
        "three of eight experts by sigmoids with corrections, out of two of four groups, weights times 1.7, two shared "
        "experts, layer 0 with one mlp, half of a head rotated, norms on q and k, untied (GLM-4.5)",
        422,
        dict(vocab_size=23, hidden_size=12, intermediate_size=14, moe_intermediate_size=5, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, head_dim=4, rms_norm_eps=1e-5, rope_parameters={**DEFAULT_ROPE,
             "partial_rotary_factor": 0.5}, n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2,
             n_shared_experts=2, routed_scaling_factor=1.7, first_k_dense_replace=1, norm_topk_prob=True, use_qk_norm=True,
             attention_bias=True, pad_token_id=None, tie_word_embeddings=False),
        "glm4_moe",
    ),
    "phi3": Spec(
        "q, k and v in one tensor, gate and up in one, grouped heads, a window of 11 (Phi-3 mini and medium 4k)",
        110,
        dict(vocab_size=53, hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, sliding_window=11,
             pad_token_id=None, tie_word_embeddings=False),
        "phi3",
    ),
    "phi3_long": Spec(
        "longrope on sequences longer than the original 16 positions: long factors (Phi-3 mini 128k)",
        111,
        dict(vocab_size=47, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=2, rms_norm_eps=1e-5, rope_parameters=LONGROPE, max_position_embeddings=128,
             original_max_position_embeddings=16, sliding_window=200, pad_token_id=None, tie_word_embeddings=False),
        "phi3",
    ),
    "phi3_short": Spec(
        "longrope on sequences within the original 40 positions: short factors",
        112,
        dict(vocab_size=47, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=2, rms_norm_eps=1e-5, rope_parameters=LONGROPE, max_position_embeddings=128,
             original_max_position_embeddings=40, pad_token_id=None, tie_word_embeddings=False),
        "phi3",
    ),
    "granite": Spec(
        "the embedding, the residual stream, scores and logits scaled, each by a factor of its own, tied (Granite)",
        701,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, embedding_multiplier=3.0,
             residual_multiplier=0.5, attention_multiplier=0.3, logits_scaling=1.6, pad_token_id=None,
             tie_word_embeddings=True),
        "granite",
    ),
    "smollm3": Spec(
        "layer 1 is not rotated and has a window of 9, grouped heads, tied (SmolLM3)",
        702,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, rms_norm_eps=1e-6, rope_parameters={**DEFAULT_ROPE, "rope_theta": 2000.0},
             no_rope_layers=[1, 0], use_sliding_window=True, sliding_window=9, pad_token_id=None, tie_word_embeddings=True),
        "smollm3",
    ),
    "olmo3": Spec(
        "OLMo 2's layers with a window of 9 in layer 0 alone, and yarn in layer 1 alone, untied (OLMo 3)",
        2903,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, rms_norm_eps=1e-6, sliding_window=9, rope_parameters=OLMO3_ROPE,
             layer_types=["sliding_attention", "full_attention"], pad_token_id=None, tie_word_embeddings=False),
        "olmo3",
    ),
    "seed_oss": Spec(
        "biases on q, k and v, and on o and the mlp too, explicit head_dim, grouped heads, untied (Seed-OSS)",
        704,
        dict(vocab_size=13, hidden_size=10, intermediate_size=12, num_hidden_layers=1, num_attention_heads=3,
             num_key_value_heads=1, head_dim=4, rms_norm_eps=1e-6, rope_parameters=DEFAULT_ROPE,
             attention_out_bias=True, mlp_bias=True, attention_dropout=0.0, residual_dropout=0.0, pad_token_id=None,
             tie_word_embeddings=False),
        "seed_oss",
    ),
    "exaone4": Spec(
        "norms after the blocks and on each head, a window of 9 in layer 0, layer 1 not rotated, untied (EXAONE 4.0)",
        3005,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, sliding_window=9,
             layer_types=["sliding_attention", "full_attention"], pad_token_id=None, tie_word_embeddings=False),
        "exaone4",
    ),
    "glm4": Spec(
        "neighbours rotated in 4 of 10 elements of a head, four norms, gate and up in one, biases on q, k and v, untied (GLM-4)",
        706,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-5,
             rope_parameters={**DEFAULT_ROPE, "rope_theta": 30.0, "partial_rotary_factor": 0.45}, attention_bias=True,
             pad_token_id=None, eos_token_id=2, tie_word_embeddings=False),
        "glm4",
    ),
    "ernie4_5": Spec(
        "neighbours rotated in whole heads of 6, biases everywhere, grouped heads, tied (ERNIE 4.5)",
        707,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-5, rope_parameters={**DEFAULT_ROPE, "rope_theta": 50.0},
             use_bias=True, pad_token_id=None, tie_word_embeddings=True),
        "ernie4_5",
    ),
    "cohere2": Spec(
        "blocks side by side on one layer norm without a bias, a window of 9 in layer 0 whose neighbours are rotated, layer 1 "
        "not rotated, logits scaled, tied (Command R7B)",
        708,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, layer_norm_eps=1e-5, rope_parameters={**DEFAULT_ROPE, "rope_theta": 50.0},
             sliding_window=9, layer_types=["sliding_attention", "full_attention"], logit_scale=0.4, pad_token_id=None,
             tie_word_embeddings=True),
        "cohere2",
    ),
    "hunyuan": Spec(
        "each head of q and k normed after it is rotated, a theta that alpha stretches, biases on q, k, v and o, tied (Hunyuan)",
        709,
        dict(vocab_size=13, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, head_dim=6, rms_norm_eps=1e-5,
             rope_parameters={"rope_type": "dynamic", "rope_theta": 10.0, "alpha": 7.0, "factor": 1.0}, attention_bias=True,
             pad_token_id=None, tie_word_embeddings=True),
        "hunyuan_v1_dense",
    ),
    "ministral3": Spec(
        "queries that grow after every 11 positions, yarn, explicit head_dim 8, grouped heads, untied (Ministral 3)",
        710,
        dict(vocab_size=13, hidden_size=10, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, head_dim=8, rms_norm_eps=1e-5, rope_parameters=GROWING_YARN, pad_token_id=None,
             tie_word_embeddings=False),
        "ministral3",
    ),
    "phi4_mini": Spec(
        "longrope on 6 of 8 elements of a head, q, k and v in one tensor, grouped heads, tied (Phi-4-mini)",
        711,
        dict(vocab_size=13, hidden_size=16, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=1, rms_norm_eps=1e-5, rope_parameters=PARTIAL_LONGROPE, max_position_embeddings=128,
             original_max_position_embeddings=16, pad_token_id=None, tie_word_embeddings=True),
        "phi3",
    ),
    "qwen3_5": Spec(
        "a gated delta net of two key heads and four value heads and a convolution of width 3, then attention with a gate "
        "whose heads are rotated in 2 of 8 elements, norms that multiply by 1 + w, tied (Qwen 3.5)",
        812,
        dict(vocab_size=13, hidden_size=6, intermediate_size=7, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, head_dim=8, rms_norm_eps=1e-6,
             rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.25}, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_key_head_dim=4, linear_value_head_dim=3, linear_conv_kernel_dim=3,
             layer_types=["linear_attention", "full_attention"], pad_token_id=None, tie_word_embeddings=True),
        "qwen3_5_text",
    ),
    "qwen3_5_moe": Spec(
        "the layers of qwen3_5 with two of four experts, those of a layer in one tensor, and a shared one with a gate, tied "
        "(Qwen3.5 35B-A3B)",
        1136,
        dict(vocab_size=13, hidden_size=8, moe_intermediate_size=2, shared_expert_intermediate_size=3, num_hidden_layers=2,
             num_attention_heads=2, num_key_value_heads=1, head_dim=8, rms_norm_eps=1e-6,
             rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.25}, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_key_head_dim=4, linear_value_head_dim=3, linear_conv_kernel_dim=3,
             layer_types=["linear_attention", "full_attention"], num_experts=4, num_experts_per_tok=2, pad_token_id=None,
             tie_word_embeddings=True),
        "qwen3_5_moe_text",
    ),
    "qwen3_next": Spec(
        "the layers of qwen3_5_moe with the projections of a gated delta net in two tensors, by key head, and layer 1 with "
        "one mlp, tied (Qwen3-Next)",
        1013,
        dict(vocab_size=13, hidden_size=6, intermediate_size=5, moe_intermediate_size=2, shared_expert_intermediate_size=3,
             num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=8, rms_norm_eps=1e-6,
             rope_parameters={**DEFAULT_ROPE, "partial_rotary_factor": 0.25}, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_key_head_dim=4, linear_value_head_dim=3, linear_conv_kernel_dim=3,
             layer_types=["linear_attention", "full_attention"], num_experts=4, num_experts_per_tok=2, norm_topk_prob=True,
             mlp_only_layers=[1], pad_token_id=None, tie_word_embeddings=True),
        "qwen3_next",
    ),
    "gemma4": Spec(
        "a window of 7 in layer 0; wider heads, fewer of keys, whose projection gives the values too, and a third "
        "of the frequencies in layer 1; values normed, factors of layers, logits capped (Gemma 4 of 12B and 31B)",
        943,
        dict(vocab_size=13, hidden_size=8, intermediate_size=7, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=4, head_dim=4, global_head_dim=6, num_global_key_value_heads=2, attention_k_eq_v=True,
             sliding_window=7, layer_types=["sliding_attention", "full_attention"], rope_parameters=GEMMA4_ROPE,
             hidden_size_per_layer_input=0, final_logit_softcapping=2.5, pad_token_id=None, tie_word_embeddings=True),
        "gemma4_text",
    ),
    "gemma4_sharing": Spec(
        "layers 2 and 3 read keys and values of layers 0 and 1 and have mlps twice as wide, every layer has an input of 4 "
        "elements from a table of its own, a window of 7 (Gemma 4 E2B and E4B)",
        941,
        dict(vocab_size=13, hidden_size=10, intermediate_size=5, num_hidden_layers=4, num_attention_heads=2,
             num_key_value_heads=1, head_dim=4, global_head_dim=6, sliding_window=7,
             layer_types=["sliding_attention", "full_attention"] * 2,
             rope_parameters=GEMMA4_ROPE, hidden_size_per_layer_input=4, vocab_size_per_layer_input=14,
             num_kv_shared_layers=2, use_double_wide_mlp=True, final_logit_softcapping=2.5, pad_token_id=None,
             tie_word_embeddings=True),
        "gemma4_text",
    ),
    "apertus": Spec(
        "an mlp without a gate whose activation, xielu, has two learned numbers, norms on q and k of a head, rope scaled as "
        "llama3, untied (Apertus)",
        820,
        dict(vocab_size=13, hidden_size=6, intermediate_size=7, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, head_dim=4, rms_norm_eps=1e-5,
             rope_parameters={"rope_type": "llama3", "rope_theta": 1000.0, "factor": 8.0, "low_freq_factor": 1.0,
                              "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
             pad_token_id=None),
        "apertus",
    ),
    "lfm2": Spec(
        "a gated short convolution of width 3, then attention with norms of heads; the mlp has two thirds of the given size, "
        "rounded up to a multiple of 3, tied (LFM2)",
        814,
        dict(vocab_size=13, hidden_size=6, intermediate_size=13, num_hidden_layers=3, num_attention_heads=3,
             num_key_value_heads=1, norm_eps=1e-5, conv_L_cache=3, block_multiple_of=3, rope_parameters=DEFAULT_ROPE,
             layer_types=["conv", "full_attention", "conv"], pad_token_id=None),
        "lfm2",
    ),
    "gemma4_moe": Spec(
        "two of four experts next to the mlp, both with norms of their own, a router with a norm without a weight, a scale "
        "and 1 / sqrt(6), a factor of each expert, heads whose keys give the values too (Gemma 4 26B-A4B)",
        949,
        dict(vocab_size=13, hidden_size=6, intermediate_size=5, num_hidden_layers=1, num_attention_heads=2,
             num_key_value_heads=2, head_dim=4, global_head_dim=6, num_global_key_value_heads=1, attention_k_eq_v=True,
             sliding_window=7, layer_types=["full_attention"], rope_parameters=GEMMA4_ROPE, hidden_size_per_layer_input=0,
             enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=3, final_logit_softcapping=2.5,
             pad_token_id=None, tie_word_embeddings=True),
        "gemma4_text",
    ),
    "granite_hybrid": Spec(
        "granite's factors, with gate and up of the mlp in one tensor (Granite 4.0 without Mamba)",
        815,
        dict(vocab_size=13, hidden_size=6, shared_intermediate_size=5, num_hidden_layers=1, num_attention_heads=3,
             num_key_value_heads=1, rms_norm_eps=1e-5, rope_parameters=DEFAULT_ROPE, embedding_multiplier=3.0,
             residual_multiplier=0.7, attention_multiplier=0.3, logits_scaling=1.7, num_local_experts=0, mamba_n_heads=6, time_step_limit=None,
             position_embedding_type="rope", layer_types=["full_attention"], pad_token_id=None, tie_word_embeddings=True),
        "granitemoehybrid",
    ),
}


def config_of(model_type: str, fields: dict):
    return AutoConfig.for_model(model_type, **fields)


def attention_of(config) -> str:
    """Falcon's eager attention adds ALiBi's bias twice: the mask holds it already. Its other one does not."""
    return "sdpa" if getattr(config, "alibi", False) else "eager"


def implementation_of(config) -> dict:
    """The plain forms of attention and of experts, as arguments of from_config and from_pretrained."""
    chosen = {"attn_implementation": attention_of(config)}
    # The others ask for rows of whole vectors, which tiny models do not have.
    has_experts = hasattr(config, "num_experts_per_tok") or getattr(config, "top_k_experts", None)
    return chosen | ({"experts_implementation": "eager"} if has_experts else {})


def is_centred_at_one(model_type: str, key: str) -> bool:
    """Whether a norm's weight is the factor itself; Gemma, Qwen 3.5 and Qwen3-Next store what they add to one."""
    if model_type in ("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next"):
        return "linear_attn" in key
    return not model_type.startswith("gemma") or model_type.startswith("gemma4")


def build(name: str) -> PreTrainedModel:
    """The fp32 model `name` with random weights, eager attention, in evaluation mode (it has no dropout)."""
    spec = MODELS[name]
    fields = {"max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, **spec.fields}
    config = config_of(spec.model_type, fields)
    model = AutoModelForCausalLM.from_config(config, **implementation_of(config), dtype=torch.float32)
    generator = torch.Generator().manual_seed(spec.seed)
    with torch.no_grad():
        for key, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if key.endswith("bias"):
                weight.copy_(0.2 * noise)
            elif key.endswith("sinks"):  # a sink weighs as much as several keys
                weight.copy_(1.0 + noise)
            elif key.endswith("A_log"):  # states that decay within some twenty tokens
                weight.copy_(-2.5 + 0.5 * noise)
            elif "router.scale" in key or "per_expert_scale" in key:
                weight.copy_(1.0 + 0.25 * noise)
            elif "router.proj" in key:  # of a normed input over its root, whose scores otherwise nearly tie
                weight.copy_(1.5 * noise)
            elif spec.model_type == "gemma4_text" and ("q_norm" in key or "k_norm" in key or "post_" in key):
                # Its scores are not scaled: with more every query sees one key. And what branches add is normed.
                weight.copy_(0.25 + 0.06 * noise)
            elif "norm" in key or ".ln_" in key:
                weight.copy_((1.0 if is_centred_at_one(spec.model_type, key) else 0.0) + 0.25 * noise)
            else:
                weight.copy_((0.2 if "embed" in key else 0.15) * noise)
        for key, constant in sorted(model.named_buffers()):
            if key.endswith("e_score_correction_bias"):
                constant.copy_(0.1 * torch.randn(constant.shape, generator=generator))
            elif key.endswith("layer_scalar"):
                constant.copy_(1.0 + 0.25 * torch.randn(constant.shape, generator=generator))
    return model.eval()


def save(model: PreTrainedModel, folder: pathlib.Path, **options) -> None:
    """Writes a Hugging Face folder as transformers does, and next to its config.json the form transformers 4 wrote."""
    if model.config.model_type == "qwen3_5_moe_text":  # as published; transformers writes a tensor for each matrix
        options["save_original_format"] = False
    model.save_pretrained(folder, **options)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config_v4.json").write_text(json.dumps(as_version_4(config), indent=2) + "\n")


def load(folder: pathlib.Path, dtype: torch.dtype) -> PreTrainedModel:
    """A saved folder computed in dtype. Not the same as model.to(dtype), which rounds the rotary frequencies too."""
    chosen = implementation_of(AutoConfig.from_pretrained(folder))
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **chosen).eval()


def as_version_4(config: dict) -> dict:
    """The same config with rope_theta and rope_scaling at the top and torch_dtype, as most published folders have it."""
    old = dict(config)
    old["torch_dtype"] = old.pop("dtype")
    old["transformers_version"] = "4.46.0"
    if old["model_type"].startswith("gemma4"):
        heads_as_published(old)
    elif "rope_parameters" in old:
        rope_as_version_4(old)
    if (old.get("head_dim") or 0) * old.get("num_attention_heads", 0) == old.get("hidden_size"):
        del old["head_dim"]
    if old["model_type"] == "qwen3_moe":
        old["num_experts"] = old.pop("num_local_experts")
    if old["model_type"] == "qwen2":  # max_window_layers says it
        del old["layer_types"]
    return dict(sorted(old.items()))


def heads_as_published(old: dict) -> None:
    """Gemma 4's sizes of layers without a window, which version 5.23 writes layer by layer, in place."""
    sizes = list(old.pop("per_layer_config").values())[-1]
    old["global_head_dim"] = sizes["head_dim"]
    old["num_global_key_value_heads"] = sizes.get("num_key_value_heads")


def rope_as_version_4(old: dict) -> None:
    """The keys of rotary embeddings, in place."""
    rope = dict(old.pop("rope_parameters"))
    if "sliding_attention" in rope:
        if old["model_type"].startswith("gemma"):  # others have one theta, and list their layers
            old["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
            old["sliding_window_pattern"] = len(old.pop("layer_types"))  # the last layer alone is without a window
        rope = dict(rope["full_attention"])
    if old["model_type"] == "gpt_neox":  # it has names of its own
        old["rotary_emb_base"] = rope.pop("rope_theta")
        old["rotary_pct"] = rope.pop("partial_rotary_factor")
    else:
        old["rope_theta"] = rope.pop("rope_theta")
    if rope.get("partial_rotary_factor", 1.0) == 1.0:
        rope.pop("partial_rotary_factor", None)
    else:  # next to rope_scaling, not in it
        old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if rope["rope_type"] == "longrope":  # what version 4 took: these three keys and no others
        rope = {"type": "longrope", **{key: rope[key] for key in ("short_factor", "long_factor")}}
    old["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
