"""LLaMA-Adapter's prompts: with one gate a layer as PEFT has them, and with one a head written here from the paper's description,
since PEFT has none; and adapter v2, which PEFT does not have either: norms train too, and a bias and a scale of each linear.
Logits, loss and the gradients of what trains."""

import json
import pathlib

import torch
from peft import AdaptionPromptConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

import cases
import golden_io
import tiny_models

# Name to model, gates, vectors of a prompt, and layers from the top.
ADAPTERS = {
    "prompt_layer": ("grouped_tied", "layer", 5, 2),
    "prompt_head": ("qwen3", "head", 4, 1),
    "prompt_gpt_neox": ("gpt_neox_in_turn", "head", 3, 1),
    "prompt_gpt2": ("gpt2", "head", 3, 1),
}
V2 = {
    "prompt_v2_llama": ("grouped_tied", "head", 3, 1),
    "prompt_v2_gpt_neox": ("gpt_neox_in_turn", "head", 3, 1),
}
ADAPTERS |= V2
# What logits of a larger vocabulary would add to the files.
WITHOUT_LOGITS = ("prompt_v2_llama",)
PREFIX = "base_model.model."


def keys_and_values(module, prompt: torch.Tensor, heads: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(key heads, vectors, width) each: the module's own projections of the vectors, neither normed nor rotated."""
    if hasattr(module, "query_key_value"):  # GPT-NeoX: query, key and value of a head lie side by side
        parts = module.query_key_value(prompt).view(len(prompt), heads, 3, width)
        return parts[:, :, 1].transpose(0, 1), parts[:, :, 2].transpose(0, 1)
    if hasattr(module, "c_attn"):  # GPT-2
        _, key, value = module.c_attn(prompt).chunk(3, dim=-1)
    else:
        key, value = module.k_proj(prompt), module.v_proj(prompt)
    return key.view(len(prompt), -1, width).transpose(0, 1), value.view(len(prompt), -1, width).transpose(0, 1)


def attention(module, query, key, value, attention_mask, scaling=None, **_):
    """Softmax attention, plus the gated softmax over the prompt's keys where the module has one. query (rows, heads, tokens, width),
    rotated; gives (rows, tokens, heads, width)."""
    heads, width = query.shape[1], query.shape[3]
    scaling = width**-0.5 if scaling is None else scaling
    shared = heads // key.shape[1]
    scores = query @ key.repeat_interleave(shared, 1).transpose(2, 3) * scaling
    scores = scores if attention_mask is None else scores + attention_mask[..., : key.shape[2]]
    read = torch.softmax(scores, -1) @ value.repeat_interleave(shared, 1)
    if hasattr(module, "adaption_prompt"):
        keys, values = keys_and_values(module, module.adaption_prompt[0], heads, width)
        keys, values = (each.repeat_interleave(heads // each.shape[0], 0) for each in (keys, values))
        read = read + module.adaption_gate.view(-1, 1, 1) * (torch.softmax(query @ keys.transpose(1, 2) * scaling, -1) @ values)
    return read.transpose(1, 2).contiguous(), None


AttentionInterface.register("prompted", attention)
AttentionMaskInterface.register("prompted", eager_mask)


def attention_modules(model) -> list:
    return [module for name, module in model.named_modules() if name.endswith((".self_attn", ".attention", ".attn"))]


def attach_gates_of_heads(model, tokens: int, layers: int, generator: torch.Generator):
    model.set_attn_implementation("prompted")
    model.requires_grad_(False)
    for module in attention_modules(model)[-layers:]:
        prompt = torch.randn((1, tokens, model.config.hidden_size), generator=generator)
        module.adaption_prompt = torch.nn.Parameter(prompt)
        module.adaption_gate = torch.nn.Parameter(torch.zeros(model.config.num_attention_heads))
    return model


def adjusted(self, x: torch.Tensor) -> torch.Tensor:
    """A linear's forward pass with what adapter v2 adds: scale (W x + b + bias)."""
    return self.adapter_scale * (torch.nn.functional.linear(x, self.weight, self.bias) + self.adapter_bias)


def adjust_linears(model, generator: torch.Generator):
    """Biases and scales as they begin, and norms that train, moved a little at random."""
    for module in list(model.modules()):
        if isinstance(module, torch.nn.Linear):
            module.adapter_bias = torch.nn.Parameter(torch.zeros(module.out_features))
            module.adapter_scale = torch.nn.Parameter(torch.ones(module.out_features))
            module.forward = adjusted.__get__(module)
        elif "Norm" in type(module).__name__:
            module.requires_grad_(True)
    return model


def attach(model, name: str, random_gates: bool = True):
    """Prompts as PEFT initialises them, gates random or zero."""
    model_name, gates, tokens, layers = ADAPTERS[name]
    model.config._name_or_path = model.name_or_path = f"tests/goldens/{model_name}/model"
    seed = 7000 + 10 * list(ADAPTERS).index(name)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed + 1)
    if gates == "layer":
        options = dict(adapter_len=tokens, adapter_layers=layers, task_type="CAUSAL_LM")
        model = get_peft_model(model, AdaptionPromptConfig(**options))
    else:
        model = attach_gates_of_heads(model, tokens, layers, generator)
    if name in V2:
        adjust_linears(model, generator)
    with torch.no_grad():
        for key, weight in sorted(model.named_parameters()):
            if random_gates and "adaption_gate" in key:
                weight.copy_(0.7 * torch.randn(weight.shape, generator=generator))
            elif random_gates and weight.requires_grad and "adaption_prompt" not in key:
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return model


def in_fp64(model):
    """A copy in fp64, which reads its prompts as the model does."""
    double = cases.in_fp64(model)
    if model.config._attn_implementation == "prompted":
        double.set_attn_implementation("prompted")
    return double


def trained(model) -> dict:
    """Name in the adapter's file to tensor."""
    names = golden_io.FILE_NAMES.get(model.config.model_type, {})
    head = {old.removesuffix(".weight"): new.removesuffix(".weight") for old, new in names.items()}

    def file_name(name: str) -> str:
        module, _, last = name.removeprefix(PREFIX).rpartition(".")
        return f"{PREFIX}{head.get(module, module)}.{last}"
    return {file_name(name): weight for name, weight in model.named_parameters() if weight.requires_grad}


def save(model, name: str, folder: pathlib.Path) -> None:
    model_name, gates, tokens, layers = ADAPTERS[name]
    if gates == "layer":
        model.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        return
    folder.mkdir(parents=True)
    save_file({key: weight.detach().contiguous() for key, weight in trained(model).items()}, folder / "adapter_model.safetensors")
    config = {"peft_type": "LLAMA_ADAPTER_V2" if name in V2 else "LLAMA_ADAPTER", "adapter_len": tokens, "adapter_layers": layers, "adapter_gates": gates,
              "base_model_name_or_path": f"tests/goldens/{model_name}/model", "task_type": "CAUSAL_LM"}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def make(name: str, root: pathlib.Path) -> str:
    model_name = ADAPTERS[name][0]
    model = tiny_models.build(model_name)
    ids, labels = cases.batch(model_name)
    targets = golden_io.shifted(labels)
    with torch.no_grad():
        base_logits = model(input_ids=ids).logits
    unchanged = attach(tiny_models.build(model_name), name, random_gates=False)
    with torch.no_grad():
        assert golden_io.relative_error(unchanged(input_ids=ids).logits, base_logits) < 1e-5, "gates of zero change nothing"
    model = attach(model, name)
    logits, loss = cases.mean_loss(model, ids, targets)
    loss.backward()
    change = golden_io.relative_error(logits, base_logits)
    assert change > 0.02, f"the adapter must matter: {change}"
    folder = root / name
    save(model, name, folder / "adapter")
    golden_io.write(folder / "golden.safetensors", {
        "ids": ids, "labels": labels, "targets": targets, "loss": loss.reshape(1),
        **({} if name in WITHOUT_LOGITS else {"logits": logits}),
        **{"grad." + key: weight.grad for key, weight in trained(model).items()},
    })
    count = sum(weight.numel() for weight in trained(model).values())
    return f"{name}: {count} trainable, loss {float(loss.detach()):.6f}, logits moved by {change:.2f}"
