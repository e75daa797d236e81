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

# Four factors a set, as head_dim is 8.
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.25, 1.5, 2.0],
    "long_factor": [1.5, 4.0, 9.0, 24.0],
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
        dict(vocab_size=113, hidden_size=36, intermediate_size=58, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, head_dim=10, rms_norm_eps=1e-5,
             rope_parameters={**DEFAULT_ROPE, "rope_theta": 1000000.0}, tie_word_embeddings=False),
    ),
    "rope_llama3": Spec(
        "rope scaling llama3 with all three bands in use, explicit head_dim 16, tied (Llama 3.1 and 3.2)",
        105,
        dict(vocab_size=131, hidden_size=30, intermediate_size=50, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=3, head_dim=16, rms_norm_eps=1e-5, rope_parameters=LLAMA3_ROPE,
             max_position_embeddings=800, tie_word_embeddings=True),
    ),
    "rope_linear": Spec(
        "rope scaling linear, factor 2.5, head_dim 4",
        106,
        dict(vocab_size=89, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=3, rms_norm_eps=1e-6,
             rope_parameters={**DEFAULT_ROPE, "rope_type": "linear", "factor": 2.5}, tie_word_embeddings=False),
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
}


def config_of(model_type: str, fields: dict):
    return AutoConfig.for_model(model_type, **fields)


def build(name: str) -> PreTrainedModel:
    """The fp32 model `name` with random weights, eager attention, in evaluation mode (it has no dropout)."""
    spec = MODELS[name]
    fields = {"max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, **spec.fields}
    model = AutoModelForCausalLM.from_config(config_of(spec.model_type, fields), attn_implementation="eager",
                                             dtype=torch.float32)
    generator = torch.Generator().manual_seed(spec.seed)
    with torch.no_grad():
        for key, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in key:
                weight.copy_(1.0 + 0.25 * noise)
            elif key.endswith("bias"):
                weight.copy_(0.2 * noise)
            else:
                weight.copy_((0.2 if "embed" in key else 0.15) * noise)
    return model.eval()


def save(model: PreTrainedModel, folder: pathlib.Path, **options) -> None:
    """Writes a Hugging Face folder as transformers does, and next to its config.json the form transformers 4 wrote."""
    model.save_pretrained(folder, **options)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config_v4.json").write_text(json.dumps(as_version_4(config), indent=2) + "\n")


def load(folder: pathlib.Path, dtype: torch.dtype) -> PreTrainedModel:
    """A saved folder computed in dtype. Not the same as model.to(dtype), which rounds the rotary frequencies too."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def as_version_4(config: dict) -> dict:
    """The same config with rope_theta and rope_scaling at the top and torch_dtype, as most published folders have it."""
    old = dict(config)
    rope = dict(old.pop("rope_parameters"))
    old["rope_theta"] = rope.pop("rope_theta")
    rope.pop("partial_rotary_factor", None)
    if rope["rope_type"] == "longrope":  # what version 4 took: these three keys and no others
        rope = {"type": "longrope", **{key: rope[key] for key in ("short_factor", "long_factor")}}
    old["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
    old["torch_dtype"] = old.pop("dtype")
    old["transformers_version"] = "4.46.0"
    if old.get("head_dim", 0) * old["num_attention_heads"] == old["hidden_size"]:
        del old["head_dim"]
    if old["model_type"] == "qwen2":  # max_window_layers says it
        del old["layer_types"]
    return dict(sorted(old.items()))
