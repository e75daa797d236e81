"""LoRA adapters as PEFT saves them, with logits, loss and the gradients of lora_A, lora_B and DoRA's magnitudes."""

import json
import os
import pathlib

import torch
from peft import LoraConfig, PeftModel, get_peft_model

import cases
import golden_io
import tiny_models

ADAPTERS = {
    "lora_all_linear": ("grouped_tied", dict(r=4, lora_alpha=8, target_modules="all-linear")),
    "lora_qv_rslora": ("grouped_tied", dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], use_rslora=True)),
    "lora_phi3": ("phi3", dict(r=3, lora_alpha=6, target_modules="all-linear")),
    "lora_gpt_neox": ("gpt_neox_in_turn", dict(r=2, lora_alpha=8, target_modules="all-linear")),
    "lora_gpt2": ("gpt2", dict(r=2, lora_alpha=8, target_modules="all-linear", fan_in_fan_out=True)),
    # PEFT compares ends of names: "norm" is every norm.
    "lora_saved": ("stablelm", dict(r=2, lora_alpha=4, target_modules=["q_proj", "down_proj"],
                                    modules_to_save=["embed_tokens", "lm_head", "norm"])),
    "dora_gpt2": ("gpt2", dict(r=2, lora_alpha=8, target_modules="all-linear", fan_in_fan_out=True, use_dora=True)),
    "dora_q_down": ("grouped_tied", dict(r=2, lora_alpha=8, target_modules=["q_proj", "down_proj"], layers_to_transform=[1],
                                          use_dora=True)),
    # The embedding has an adapter: untied; tied and scaled; that of positions, too.
    "lora_embedding": ("stablelm", dict(r=3, lora_alpha=6, target_modules=["embed_tokens", "q_proj"])),
    "lora_embedding_tied": ("gemma", dict(r=2, lora_alpha=4, target_modules=["embed_tokens", "v_proj"])),
    "lora_embedding_gpt2": ("gpt2", dict(r=2, lora_alpha=8, target_modules=["wte", "wpe", "c_attn"], fan_in_fan_out=True)),
    # The head is embed_out in the model's files and lm_head in transformers since 5, and so in PEFT's.
    "lora_saved_head": ("gpt_neox_in_turn", dict(r=2, lora_alpha=4, target_modules=["query_key_value"], modules_to_save=["lm_head"])),
    # Of the matrices of all experts of a layer, which are parameters and no modules.
    "lora_experts": ("qwen3_moe", dict(r=2, lora_alpha=6, target_modules=["k_proj", "o_proj"], target_parameters=[
        "mlp.experts.gate_up_proj", "mlp.experts.down_proj"], rank_pattern={r".*\.gate_up_proj": 3})),
    # Files hold these matrices together: transposed, and under other names.
    "lora_experts_gpt_oss": ("gpt_oss", dict(r=2, lora_alpha=6, target_modules=["k_proj"], target_parameters=[
        "mlp.experts.gate_up_proj", "mlp.experts.down_proj"])),
    "lora_experts_granitemoe": ("granitemoe", dict(r=2, lora_alpha=6, target_modules=["k_proj"], target_parameters=[
        "experts.gate_up_proj", "experts.down_proj"])),
    # Next to gated delta nets, which PEFT adapts by the names of their linears.
    "lora_experts_qwen3_5_moe": ("qwen3_5_moe", dict(r=1, lora_alpha=3, target_modules=["in_proj_z", "q_proj"], target_parameters=[
        "mlp.experts.gate_up_proj", "mlp.experts.down_proj"])),
}
# With these no rounding to bf16 takes a gate past its limit or a router to other experts: transformers' own gradients in bf16 are near.
SEEDS = {"lora_experts_gpt_oss": 4003, "lora_experts_qwen3_5_moe": 4009}
# Saved with the base model's own table, as PEFT does unless it is told not to.
WITH_TABLES = ("lora_embedding",)
# What logits of a larger vocabulary would add to the files.
WITHOUT_LOGITS = ("dora_q_down", "lora_saved_head")


def attach(model, model_name: str, options: dict, seed: int, random_b: bool, task_type: str = "CAUSAL_LM") -> PeftModel:
    """PEFT's adapter on the model: lora_A as PEFT initialises it, lora_B random (or left at zero), and so are magnitudes and what
    is saved whole."""
    model.config._name_or_path = model.name_or_path = f"tests/goldens/{model_name}/model"
    torch.manual_seed(seed)
    peft_model = get_peft_model(model, LoraConfig(task_type=task_type, lora_dropout=0.0, bias="none", **options))
    if random_b:
        generator = torch.Generator().manual_seed(seed + 1)
        with torch.no_grad():
            for key, weight in sorted(peft_model.named_parameters()):
                if "lora_B" in key or "lora_embedding_A" in key:
                    weight.copy_(0.1 * torch.randn(weight.shape, generator=generator))
                elif "lora_magnitude" in key:
                    weight.mul_(1 + 0.2 * torch.randn(weight.shape, generator=generator))
                elif "modules_to_save" in key:
                    weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return peft_model


def save(peft_model: PeftModel, folder: pathlib.Path, with_tables: bool = False) -> None:
    """The adapter folder as PEFT writes it, without the model card."""
    peft_model.save_pretrained(folder, save_embedding_layers=with_tables)
    (folder / "README.md").unlink()
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] and not os.path.isabs(config["base_model_name_or_path"])


def attach_named(model, name: str) -> PeftModel:
    model_name, options = ADAPTERS[name]
    return attach(model, model_name, options, SEEDS.get(name, 3000 + 10 * list(ADAPTERS).index(name)), random_b=True)


def make(name: str, root: pathlib.Path) -> str:
    model_name, _ = ADAPTERS[name]
    model = tiny_models.build(model_name)
    ids, labels = cases.batch(model_name)
    targets = golden_io.shifted(labels)
    with torch.no_grad():
        base_logits = model(input_ids=ids).logits
    peft_model = attach_named(model, name)
    logits, loss = cases.mean_loss(peft_model, ids, targets)
    loss.backward()
    change = golden_io.relative_error(logits, base_logits)
    assert change > 0.05, "the adapter must matter"

    folder = root / name
    save(peft_model, folder / "adapter", with_tables=name in WITH_TABLES)
    golden_io.write(folder / "golden.safetensors", {
        "ids": ids, "labels": labels, "targets": targets, "loss": loss.reshape(1),
        **({} if name in WITHOUT_LOGITS else {"logits": logits}), **golden_io.gradients(peft_model),
    })
    trainable, _ = peft_model.get_nb_trainable_parameters()
    return f"{name}: {trainable} trainable, loss {float(loss.detach()):.6f}, logits moved by {change:.2f}"
