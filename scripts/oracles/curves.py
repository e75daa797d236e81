"""Twenty optimizer steps of LoRA, of prompts and of all weights, with PEFT, PyTorch's own clipping and schedule, and the optimizer of
PyTorch, transformers or bitsandbytes."""

import contextlib
import dataclasses
import json
import pathlib

import torch
from peft.optimizers import create_loraplus_optimizer
from torch.optim.swa_utils import get_ema_avg_fn
from transformers import get_cosine_schedule_with_warmup
from transformers.trainer_pt_utils import LabelSmoother

import balance
import cases
import golden_io
import half_precision
import lora
import noise
import peer_optimizers
import prompts
import tiny_models

STEPS, WARMUP, ROWS, LENGTH = 20, 5, 2, 25
WEIGHT_DECAY = 0.1
BAD_STEPS, BAD_FACTOR = (1, 2, 9), 2.0**30  # of curves in fp16: where losses are multiplied by so much
NOISE = 1e-4  # how far fp32 may be from fp64 over the curve, a tenth of what a user of the golden is asked
# muon rounds its products to bf16, and what the last bits of a gradient decide there grows over the steps.
NOISE_OF_MUON, TOLERANCE_OF_MUON = 1e-3, 5e-3


@dataclasses.dataclass(frozen=True)
class Curve:
    model: str
    adapter: bool
    accumulation: int  # micro-batches per step
    learning_rate: float
    max_grad_norm: float  # in the middle of the norms that occur, so that clipping acts in some steps only
    seed: int
    frozen: tuple[str, ...] = ()  # modules of a full run that do not train
    optimizer: str = "adamw"
    batches_of: str = ""  # the curve whose golden holds the batches; empty: its own
    rows: int = ROWS  # of a micro-batch
    balance: float = 0.0  # the coefficient of the loss that balances experts
    scale_power: int = 0  # fp16, whose loss scale begins with this power of two; 0: fp32
    scale_window: int = 0  # finite steps until it grows
    loraplus: float = 0.0  # how many times the learning rate of A that of B is; 0: the same
    ema: float = 0.0  # the share that an average of what trains keeps of itself in a step; 0: none
    smoothing: float = 0.0  # transformers' label_smoothing_factor
    noise: float = 0.0  # transformers' neftune_noise_alpha
    starts_from: str = ""  # the golden whose adapter it trains on; empty: a new one


CURVES = {
    "curve_lora": Curve("grouped_tied", True, 1, 2e-2, 2.4, 4001),
    "curve_lora_accumulated": Curve("grouped_tied", True, 2, 2e-2, 2.2, 4002),
    "curve_full": Curve("biases", False, 1, 5e-3, 2.7, 4003),
    "curve_full_accumulated": Curve("biases", False, 2, 5e-3, 2.0, 4004),
    "curve_full_frozen": Curve("biases", False, 1, 5e-3, 1.5, 4005,
                               frozen=("model.embed_tokens", "model.layers.0", "model.layers.1.self_attn.k_proj")),
}
# On the batches of another curve, which is all that their goldens leave out.
CURVES |= {
    "curve_lora_lion": Curve("grouped_tied", True, 1, 2e-3, 2.4, 4001, optimizer="lion", batches_of="curve_lora"),
    "curve_lora_adafactor": Curve("grouped_tied", True, 1, 2e-2, 2.4, 4001, optimizer="adafactor", batches_of="curve_lora"),
    "curve_full_lion": Curve("biases", False, 1, 1e-3, 2.7, 4003, optimizer="lion", batches_of="curve_full"),
    "curve_full_adafactor": Curve("biases", False, 1, 1e-2, 2.7, 4003, optimizer="adafactor", batches_of="curve_full"),
    "curve_lora_muon": Curve("grouped_tied", True, 1, 5e-3, 2.4, 4001, optimizer="muon", batches_of="curve_lora"),
    "curve_full_muon": Curve("biases", False, 1, 5e-3, 2.7, 4003, optimizer="muon", batches_of="curve_full"),
}

# Of each family of decoders, on batches that fit the smallest vocabulary; with the norms of full runs and of LoRA.
FAMILY_BATCHES = "curve_gpt2_full"
FAMILIES = {
    "gpt2": (0.64, 0.21), "gemma": (1.8, 0.72), "gemma2": (2.4, 1.1), "gemma3": (2.5, 1.4), "phi": (1.4, 0.55),
    "gpt_neox": (1.3, 0.41), "stablelm": (1.8, 0.73), "falcon": (1.2, 0.56), "bloom": (1.0, 0.3), "mixtral": (1.1, None),
    "qwen3_moe": (1.7, None), "gpt_oss": (0.81, 0.29), "qwen2_moe": (1.5, None), "olmoe": (1.5, None), "granitemoe": (0.68, None),
    "glm4_moe": (1.5, None),
}

# The families of 2025, whose vocabularies are smaller.
NEWER_BATCHES = "curve_granite_full"
NEWER_FAMILIES = {
    "granite": (0.51, None), "smollm3": (1.2, None), "olmo3": (2.1, None), "ministral3": (0.97, None), "ernie4_5": (0.78, None), "glm4": (1.5, None),
    "seed_oss": (0.8, None), "hunyuan": (0.85, 0.43), "exaone4": (4.3, 2.0), "cohere2": (0.46, 0.21), "gemma4": (1.1, None),
    "gemma4_sharing": (1.6, 0.2), "gemma4_moe": (1.3, None), "qwen3_5_moe": (2.0, None), "qwen3_next": (1.6, None),
    "apertus": (1.3, None), "lfm2": (1.1, 0.49), "stablelm_12b": (0.92, None),
}


def family_curves(families: dict, shared_batches: str, seed: int) -> dict:
    found = {}
    for model, (full_norm, lora_norm) in families.items():
        name = f"curve_{model}_full"
        batches_of = "" if name == shared_batches else shared_batches
        found[name] = Curve(model, False, 1, 5e-3, full_norm, seed, batches_of=batches_of)
        if lora_norm is not None:
            found[f"curve_{model}_lora"] = Curve(model, True, 1, 2e-2, lora_norm, seed, batches_of=shared_batches)
    return found


CURVES |= family_curves(FAMILIES, FAMILY_BATCHES, 4008) | family_curves(NEWER_FAMILIES, NEWER_BATCHES, 4009)
# Mixtures with the loss that balances experts: of a micro-batch it counts by the share of the step's tokens.
CURVES |= {
    "curve_mixtral_balanced": Curve("mixtral", False, 2, 5e-3, 1.1, 4008, batches_of=FAMILY_BATCHES, rows=1, balance=0.3),
    "curve_qwen3_moe_balanced": Curve("qwen3_moe", False, 1, 5e-3, 1.8, 4008, batches_of=FAMILY_BATCHES, balance=0.3),
}
# fp16, with steps whose loss is made so large that their gradients are infinite.
CURVES |= {
    "curve_lora_fp16": Curve("grouped_tied", True, 1, 2e-2, 2.4, 4001, batches_of="curve_lora", scale_power=11, scale_window=4),
    "curve_full_fp16": Curve("biases", False, 1, 5e-3, 2.7, 4003, batches_of="curve_full", scale_power=11, scale_window=4),
}
CURVES["curve_loraplus"] = Curve("grouped_tied", True, 1, 5e-3, 2.4, 4001, batches_of="curve_lora", loraplus=8.0)
CURVES["curve_ema"] = Curve("grouped_tied", True, 1, 2e-2, 2.4, 4001, batches_of="curve_lora", ema=0.8)
CURVES["curve_smoothed"] = Curve("biases", False, 2, 5e-3, 2.0, 4004, batches_of="curve_full_accumulated", smoothing=0.1)
CURVES["curve_smoothed_gemma2"] = Curve("gemma2", True, 1, 2e-2, 1.1, 4008, batches_of=FAMILY_BATCHES, smoothing=0.2)
CURVES["curve_noisy"] = Curve("grouped_tied", True, 2, 2e-2, 2.2, 4002, batches_of="curve_lora_accumulated", noise=5.0)
CURVES["curve_noisy_gemma"] = Curve("gemma", False, 1, 5e-3, 1.8, 4008, batches_of=FAMILY_BATCHES, noise=10.0)
CURVES["curve_dora"] = Curve("gpt2", True, 1, 2e-2, 0.31, 4008, batches_of=FAMILY_BATCHES, starts_from="dora_gpt2")
CURVES["curve_prompt"] = Curve("grouped_tied", True, 2, 3e-2, 0.5, 4002, batches_of="curve_lora_accumulated", starts_from="prompt_layer")
CURVES["curve_prompt_v2"] = Curve("gpt_neox_in_turn", True, 1, 1e-2, 0.6, 4008, batches_of=FAMILY_BATCHES, starts_from="prompt_v2_gpt_neox")
ADAPTER_SEED = 4100
# Of these models the module that others lack, as all would be large files.
OWN_MODULES = {"gemma4_sharing": ["per_layer_model_projection"]}


def adapter_options(curve: Curve) -> dict:
    if curve.starts_from:
        return lora.ADAPTERS[curve.starts_from][1]
    rank = 4 if curve.model == "grouped_tied" else 2
    targets = OWN_MODULES.get(curve.model, "all-linear")
    return dict(r=rank, lora_alpha=2 * rank, target_modules=targets) | ({"fan_in_fan_out": True} if curve.model == "gpt2" else {})


def adapter_folder(curve: Curve) -> str:
    """Where the curves of a model's LoRA start from."""
    if curve.starts_from:
        return f"{curve.starts_from}/adapter"
    return "curve_adapter" if curve.model == "grouped_tied" else f"curve_adapter_{curve.model}"


def batches(curve: Curve) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and labels (steps, accumulation, rows, length), its own or those of another curve.

    The text is counting modulo a small number, so that the loss and the gradient norm fall during the run. Prefixes of
    different lengths carry no loss, so micro-batches differ in their number of trained tokens.
    """
    counts = (STEPS, curve.accumulation, curve.rows, LENGTH)
    curve = CURVES[curve.batches_of] if curve.batches_of else curve
    vocab = tiny_models.MODELS[curve.model].fields["vocab_size"]
    generator = torch.Generator().manual_seed(curve.seed)
    shape = (STEPS, curve.accumulation, curve.rows)
    start = torch.randint(0, 13, (*shape, 1), generator=generator)
    stride = torch.randint(1, 3, (*shape, 1), generator=generator)
    ids = (start + stride * torch.arange(LENGTH)) % 13 + min(vocab // 2, vocab - 13)
    noisy = torch.rand(ids.shape, generator=generator) < 0.05
    ids = torch.where(noisy, torch.randint(0, vocab, ids.shape, generator=generator), ids)
    prefix = torch.randint(0, LENGTH - 4, (*shape, 1), generator=generator)
    labels = ids.masked_fill(torch.arange(LENGTH) < prefix, golden_io.IGNORED)
    return ids.reshape(counts), labels.reshape(counts)


def parameter_groups(model) -> list:
    """No decay on norms and biases, as transformers' Trainer has it. `hidden`: the matrices of layers, which muon steps."""
    def is_plain(name: str) -> bool:
        return name.endswith(("bias", "adapter_scale")) or "norm" in name or ".ln_" in name

    def is_hidden(name: str, weight) -> bool:
        return weight.dim() == 2 and ".layers." in name

    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    plain = [weight for name, weight in named if is_plain(name)]
    decayed = [(name, weight) for name, weight in named if not is_plain(name)]
    groups = [{"params": [weight for name, weight in decayed if is_hidden(name, weight) == hidden],
               "weight_decay": WEIGHT_DECAY, "hidden": hidden} for hidden in (True, False)]
    groups.append({"params": plain, "weight_decay": 0.0, "hidden": False})
    return [group for group in groups if group["params"]]


def optimizer_of(model, curve: Curve) -> torch.optim.Optimizer:
    if not curve.loraplus:
        return peer_optimizers.make(curve.optimizer, parameter_groups(model), curve.learning_rate)
    return create_loraplus_optimizer(model, torch.optim.AdamW, lr=curve.learning_rate, loraplus_lr_ratio=curve.loraplus,
                                     loraplus_weight_decay=WEIGHT_DECAY, betas=(0.9, 0.999), eps=1e-8)


def noise_of(model, curve: Curve, step: int, micro: int):
    if not curve.noise:
        return contextlib.nullcontext()
    return noise.added(model, curve.noise, step + 1, micro * curve.rows)


def loss_of(logits, targets, total: int, curve: Curve):
    if not curve.smoothing:
        return golden_io.summed_loss(logits, targets) / total
    return LabelSmoother(epsilon=curve.smoothing)({"logits": logits}, targets, num_items_in_batch=total)


def train(model, curve: Curve, ids, targets) -> dict:
    """Runs the steps; returns loss, grad_norm (before clipping) and learning rate of each, and where the weights end."""
    optimizer = optimizer_of(model, curve)
    schedule = get_cosine_schedule_with_warmup(optimizer, WARMUP, STEPS)
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    initial = {name: weight.detach().double().clone() for name, weight in trained.items()}
    average = get_ema_avg_fn(curve.ema)
    averages = {name: weight.clone() for name, weight in initial.items()}
    found = {"loss": [], "grad_norm": [], "learning_rate": []} | ({"aux_loss": []} if curve.balance else {})
    for step in range(STEPS):
        total = golden_io.trained_tokens(targets[step])
        loss, aux_loss = 0.0, 0.0
        for micro in range(curve.accumulation):
            with noise_of(model, curve, step, micro):
                outputs = model(input_ids=ids[step, micro], use_cache=False)
            part = loss_of(outputs.logits, targets[step, micro], total, curve)
            if curve.balance:
                aux_loss += float(outputs.aux_loss.detach()) / curve.accumulation  # all rows are full
                part = part + curve.balance * outputs.aux_loss / curve.accumulation
            part.backward()
            loss += float(part.detach())
        found["loss"].append(loss)
        if curve.balance:
            found["aux_loss"].append(aux_loss)
        found["learning_rate"].append(optimizer.param_groups[0]["lr"])
        found["grad_norm"].append(float(torch.nn.utils.clip_grad_norm_(trained.values(), curve.max_grad_norm)))
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        averages = {name: average(averages[name], weight.detach().double(), step) for name, weight in trained.items()}
    ends = {key: torch.tensor(values, dtype=torch.float64) for key, values in found.items()}
    for name, weight in trained.items():
        key = name.replace(".default.weight", ".weight")
        ends["final_norm." + key] = weight.detach().double().norm().reshape(1)
        if curve.ema:
            ends["average_lag." + key] = (weight.detach().double() - averages[name]).norm().reshape(1)
        ends["change_norm." + key] = (weight.detach().double() - initial[name]).norm().reshape(1)
    ends["final_norm"] = torch.stack([w.detach().double().norm() for w in trained.values()]).norm().reshape(1)
    return ends


def trainee(curve: Curve):
    """The model before its first step, lora_B at zero in a new adapter."""
    model = tiny_models.build(curve.model)
    for name in curve.frozen:
        model.get_submodule(name).requires_grad_(False)
    if curve.balance:
        balance.turn_on(model, curve.balance)
    if not curve.adapter:
        return model
    if curve.starts_from in prompts.ADAPTERS:
        return prompts.attach(model, curve.starts_from)
    if curve.starts_from:
        return lora.attach_named(model, curve.starts_from)
    return lora.attach(model, curve.model, adapter_options(curve), ADAPTER_SEED, random_b=False)


def settings(curve: Curve) -> dict:
    return {
        "model": f"tests/goldens/{curve.model}/model", "method": method_of(curve),
        "max_steps": STEPS, "warmup_steps": WARMUP, "lr_scheduler_type": "cosine", "max_length": LENGTH,
        "per_device_train_batch_size": curve.rows, "gradient_accumulation_steps": curve.accumulation,
        "learning_rate": curve.learning_rate, "weight_decay": WEIGHT_DECAY, "max_grad_norm": curve.max_grad_norm,
        **({"optim": curve.optimizer} if curve.batches_of else {}), **peer_optimizers.SETTINGS[curve.optimizer],
        **({"tolerance": TOLERANCE_OF_MUON} if curve.optimizer == "muon" else {}),
        **({"batches": f"tests/goldens/{curve.batches_of}"} if curve.batches_of else {}),
        **({"ema_decay": curve.ema} if curve.ema else {}),
        **({"loraplus_lr_ratio": curve.loraplus} if curve.loraplus else {}),
        **({"label_smoothing_factor": curve.smoothing} if curve.smoothing else {}),
        **({"neftune_noise_alpha": curve.noise} if curve.noise else {}),
        **({"freeze_modules": curve.frozen} if curve.frozen else {}),
        **({"output_router_logits": True, "router_aux_loss_coef": curve.balance} if curve.balance else {}),
        **({"compute_dtype": "fp16", "initial_scale_power": curve.scale_power, "loss_scale_window": curve.scale_window}
              | {"bad_steps": BAD_STEPS, "bad_factor": BAD_FACTOR} if curve.scale_power else {}),
        **(adapter_settings(curve) if curve.adapter else {}),
    }


def method_of(curve: Curve) -> str:
    if curve.starts_from in prompts.ADAPTERS:
        return "adapter_v2" if curve.starts_from in prompts.V2 else "adapter"
    return "lora" if curve.adapter else "full"


def adapter_settings(curve: Curve) -> dict:
    if curve.starts_from in prompts.ADAPTERS:
        return {"adapter": f"tests/goldens/{adapter_folder(curve)}"}
    options = adapter_options(curve)
    return {"adapter": f"tests/goldens/{adapter_folder(curve)}", "lora_r": options["r"], "lora_alpha": options["lora_alpha"]}


def adapters() -> dict:
    """Folder to model of what the curves of LoRA start from."""
    return {adapter_folder(curve): curve.model for curve in CURVES.values() if curve.adapter and not curve.starts_from}


def make_adapter(folder: str, root: pathlib.Path) -> str:
    curve = next(curve for curve in CURVES.values() if curve.adapter and adapter_folder(curve) == folder)
    lora.save(trainee(curve), root / folder)
    return f"{folder}: saved"


def make_half(name: str, root: pathlib.Path) -> str:
    curve = CURVES[name]
    model = trainee(curve)
    ids, labels = batches(curve)
    targets = golden_io.shifted(labels.flatten(0, 2)).reshape(labels.shape)
    optimizer = peer_optimizers.make(curve.optimizer, parameter_groups(model), curve.learning_rate)
    options = dict(optimizer=optimizer, max_grad_norm=curve.max_grad_norm, warmup=WARMUP, steps=STEPS,
                   first_scale=2.0**curve.scale_power, window=curve.scale_window, bad_steps=BAD_STEPS, bad_factor=BAD_FACTOR)
    found = half_precision.train(model, options, ids[:, 0], targets[:, 0])
    skipped = int((~found["grad_norm"].isfinite()).sum())
    line = (f"{name}: loss {found['loss'][0]:.4f} to {found['loss'][-1]:.4f}, skipped {skipped} of {STEPS}, loss scale "
            f"{found['loss_scale'].tolist()}")
    assert skipped == len(BAD_STEPS) and found["loss_scale"].diff().max() > 0, line
    golden_io.write(root / name / "golden.safetensors", found)
    (root / name / "settings.json").write_text(json.dumps(settings(curve), indent=2) + "\n")
    return line


def make(name: str, root: pathlib.Path) -> str:
    curve = CURVES[name]
    if curve.scale_power:
        return make_half(name, root)
    model = trainee(curve)
    ids, labels = batches(curve)
    targets = golden_io.shifted(labels.flatten(0, 2)).reshape(labels.shape)
    double = prompts.in_fp64(model) if curve.starts_from in prompts.ADAPTERS else cases.in_fp64(model)
    found, exact = train(model, curve, ids, targets), train(double, curve, ids, targets)
    apart = {key: float((found[key] / exact[key] - 1).abs().nan_to_num().max()) for key in found}
    worst = max(apart, key=apart.get)
    clipped = int((found["grad_norm"] > curve.max_grad_norm).sum())
    tokens = [golden_io.trained_tokens(part) for step in targets for part in step]
    line = (f"{name}: loss {found['loss'][0]:.4f} to {found['loss'][-1]:.4f}, clipped {clipped} of {STEPS}, "
            f"{min(tokens)} to {max(tokens)} trained tokens per micro-batch, from fp64: loss {apart['loss']:.1e}, "
            f"worst {worst} {apart[worst]:.1e}")
    allowed = NOISE_OF_MUON if curve.optimizer == "muon" else NOISE
    assert max(apart["loss"], apart["grad_norm"], apart["final_norm"]) < allowed, line
    assert 0 < clipped < STEPS, line
    data = {"ids": ids, "labels": labels, "targets": targets,
            "trained_tokens": torch.tensor([golden_io.trained_tokens(step) for step in targets])}
    if curve.batches_of:
        data, found = {}, {key: values for key, values in found.items() if "norm." not in key}
    golden_io.write(root / name / "golden.safetensors", {**data, **found})
    (root / name / "settings.json").write_text(json.dumps(settings(curve), indent=2) + "\n")
    return line
