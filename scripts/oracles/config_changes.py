"""Changes of one key of a config.json: each key that the file has, that transformers' class of the family declares or reads, or
that another family's files have, left out, null, or with several other values."""

import copy
import dataclasses
import inspect
import re
import sys
import typing

from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

ABSENT = "absent"
# Keys that name, store or generate, and no part of a network.
NO_PART_OF_A_NETWORK = {
    "architectures", "transformers_version", "dtype", "torch_dtype", "model_type", "initializer_range", "initializer_factor", "id2label",
    "label2id", "num_labels", "problem_type", "name_or_path", "to_dict", "vocab_size", "return_dict", "use_return_dict", "per_layer_config",
}
ACTIVATIONS = ["silu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python", "quick_gelu", "relu", "relu2", "swish", "linear", "no_such"]
FEED_FORWARDS = ["relu", "gelu", "gated-gelu", "gated-silu", "gated-relu", "gated-gelu_new", "gated-gelu_pytorch_tanh", "silu", "gelu_new", "gated"]
ROPE_TYPES = ["default", "linear", "dynamic", "llama3", "yarn", "longrope", "su", "proportional", "no_such"]
SCALINGS = [
    None, {}, {"rope_type": "default"}, {"type": "linear", "factor": 2.5}, {"rope_type": "linear", "factor": 2.5, "rope_theta": 77.0},
    {"rope_type": "linear"}, {"factor": 2.5}, {"rope_type": "dynamic", "factor": 2.0}, {"rope_theta": 77.0},
    {"rope_type": "default", "rope_theta": 77.0, "partial_rotary_factor": 0.5}, {"rope_type": "default", "factor": 3.0, "rope_theta": 20.0},
    {"rope_type": "llama3", "rope_theta": 50.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "original_max_position_embeddings": 20},
    {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "original_max_position_embeddings": 20},
    {"rope_type": "yarn", "factor": 4.0}, {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 1.3},
    {"rope_type": "llama3", "factor": 4.0},
]
# Of keys whose value alone does not say what else they may hold.
OTHERS = {
    "rope_scaling": SCALINGS, "rope_parameters": SCALINGS, "feed_forward_proj": FEED_FORWARDS, "dense_act_fn": ACTIVATIONS,
    "hidden_act": ACTIVATIONS, "hidden_activation": ACTIVATIONS, "activation_function": ACTIVATIONS, "activation": ACTIVATIONS,
    "rope_type": ROPE_TYPES, "type": ROPE_TYPES, "layer_types": [[], ["full_attention"], ["chunked_attention"]],
    "mlp_only_layers": [[], [0], [1], [0, 1], [7], [-1]], "no_rope_layers": [[0], [1, 1], [0, 1]], "attention_types": [[[["global", "local"], 1]]],
    "attn_implementation": ["eager", "sdpa"], "experts_implementation": ["eager"],
}
# Of keys that a file does not have, by the last type that the class declares; nothing is known of most that only code reads.
UNKNOWN_VALUES = [True, 0, 2, 0.5]


def config_class(model_type: str):
    return CONFIG_MAPPING[model_type]


def keys_that_code_reads(config) -> set:
    """What the family's modeling file asks its config for."""
    auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    source = inspect.getsource(sys.modules[auto._model_mapping[type(config)].__module__])
    return set(re.findall(r"config\.([a-z]\w+)", source)) | set(re.findall(r"getattr\((?:self\.)?config, \"(\w+)\"", source))


def known_keys(fields: dict) -> list:
    kind = config_class(fields["model_type"])
    declared = {field.name for field in dataclasses.fields(kind)} - {field.name for field in dataclasses.fields(PreTrainedConfig)}
    read = keys_that_code_reads(kind())
    methods = {name for name in dir(PreTrainedConfig) if callable(getattr(PreTrainedConfig, name, None))}
    legacy = {"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor", "tie_word_embeddings", "is_decoder", "add_cross_attention",
              "cross_attention_hidden_size", "chunk_size_feed_forward", "is_encoder_decoder", "layer_types", "sliding_window", "head_dim", "num_key_value_heads",
              "attention_bias", "mlp_bias", "rotary_pct", "rotary_emb_base", "rope_local_base_freq", "sliding_window_pattern", "max_window_layers",
              "use_sliding_window", "attention_dropout", "num_experts", "num_local_experts", "scale_decoder_outputs", "dense_act_fn", "is_gated_act",
              "use_bidirectional_attention", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "hidden_act", "activation_function",
              "attention_multiplier", "logit_scale", "original_max_position_embeddings", "n_positions", "n_ctx", "n_head_kv"}
    every = set(fields) | declared | set(kind.attribute_map) | read | legacy
    return sorted(key for key in every - NO_PART_OF_A_NETWORK - methods if not key.startswith("_"))


def declared_type(kind, key: str):
    """The first plain type that the class declares for a key, or nothing."""
    try:
        hint = typing.get_type_hints(kind).get(kind.attribute_map.get(key, key))
    except (NameError, TypeError):
        return None
    for plain in (bool, int, float, str):
        if hint is plain or plain in typing.get_args(hint):
            return plain
    return None


def other_values(key: str, value) -> list:
    if key in OTHERS and not (isinstance(value, list) and value):
        return OTHERS[key]
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int):
        return [0, 1, 2, value + 1, value * 2, value // 2, -1, float(value), value + 0.5, str(value)]
    if isinstance(value, float):
        return [0.0, 1.0, 0.5, value * 2, value / 2, -value, 7, str(value)]
    if isinstance(value, str):
        return [value + "x", ""]
    if isinstance(value, list) and value:
        return [value[::-1], value[:-1], value + value[-1:], [value[0]] * len(value), [value[-1]] * len(value), []]
    return UNKNOWN_VALUES


def inner_changes(key: str, value: dict) -> list:
    """Changes of the keys within an object."""
    found = []
    names = sorted(set(value) | ({"partial_rotary_factor", "attention_factor", "factor", "mscale", "mscale_all_dim", "beta_fast", "beta_slow", "truncate",
                                  "rope_theta", "type", "original_max_position_embeddings"} if not any(isinstance(v, dict) for v in value.values()) else set()))
    for name in names:
        own = value.get(name)
        if isinstance(own, dict):
            found += [(f"{name}.{path}", {**value, name: inner}) for path, inner in inner_changes(name, own)]
            continue
        if name in value:
            found.append((f"{name} absent", {k: v for k, v in value.items() if k != name}))
        for other in [None, *other_values(name, own if own is not None else 2.0 if name not in ("type", "truncate") else own)]:
            if other != own or type(other) is not type(own):
                found.append((f"{name}={other!r}", {**value, name: other}))
    return found


def changes(fields: dict, other_form: dict, all_keys: bool = True):
    """(key, words for the change, the changed fields), each once: of keys that another form of the file does not have alike, and
    with `all_keys` of those that neither has."""
    seen = set()
    kind = config_class(fields["model_type"])
    default = kind()
    for key in known_keys(fields):
        if (key in other_form and other_form[key] == fields.get(key, ABSENT)) or (not all_keys and key not in fields):
            continue
        own = fields.get(key)
        values = [] if key not in fields else [(ABSENT, None)]
        if own is not None or key not in fields:
            values.append(("null", None))
        if isinstance(own, dict):
            values += inner_changes(key, own)
        if own is None:
            own = getattr(default, key, None)
        if own is None and declared_type(kind, key) is not None:
            own = {bool: False, int: 4, float: 2.0, str: ""}[declared_type(kind, key)]
        own_given = fields.get(key, ABSENT)
        values += [(repr(value), value) for value in other_values(key, own)]
        if key not in fields and not isinstance(own, (dict, list)) and own is not None:
            values.append((repr(own), own))
        for words, value in values:
            if (key, words) in seen or (words != ABSENT and value == own_given and type(value) is type(own_given)):
                continue
            seen.add((key, words))
            changed = copy.deepcopy(fields)
            changed.pop(key, None)
            if words != ABSENT:
                changed[key] = value
            yield key, words, changed
