"""Twenty optimizer steps of LoRA and of all weights, with PEFT, PyTorch's own clipping and schedule, and the optimizer of
PyTorch, transformers or bitsandbytes."""

import dataclasses
import json
import pathlib

import torch
from transformers import get_cosine_schedule_with_warmup

import cases
import golden_io
import lora
import peer_optimizers
import tiny_models

STEPS, WARMUP, ROWS, LENGTH = 20, 5, 2, 25
WEIGHT_DECAY = 0.1
NOISE = 1e-4  # how far fp32 may be from fp64 over the curve, a tenth of what a user of the golden is asked


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
}
ADAPTER = dict(r=4, lora_alpha=8, target_modules="all-linear")
ADAPTER_SEED = 4100


def batches(curve: Curve, vocab: int) -> tuple[torch.Tensor, torch.Tensor]:
    """ids and labels (steps, accumulation, rows, length).

    The text is counting modulo a small number, so that the loss and the gradient norm fall during the run. Prefixes of
    different lengths carry no loss, so micro-batches differ in their number of trained tokens.
    """
    generator = torch.Generator().manual_seed(curve.seed)
    shape = (STEPS, curve.accumulation, ROWS)
    start = torch.randint(0, 13, (*shape, 1), generator=generator)
    stride = torch.randint(1, 3, (*shape, 1), generator=generator)
    ids = (start + stride * torch.arange(LENGTH)) % 13 + vocab // 2
    noisy = torch.rand(ids.shape, generator=generator) < 0.05
    ids = torch.where(noisy, torch.randint(0, vocab, ids.shape, generator=generator), ids)
    prefix = torch.randint(0, LENGTH - 4, (*shape, 1), generator=generator)
    labels = ids.masked_fill(torch.arange(LENGTH) < prefix, golden_io.IGNORED)
    return ids, labels


def parameter_groups(model) -> list:
    """No decay on norms and biases, as transformers' Trainer has it."""
    named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    plain = [weight for name, weight in named if name.endswith("bias") or "norm" in name]
    decayed = [weight for name, weight in named if not (name.endswith("bias") or "norm" in name)]
    return [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0.0}]


def train(model, curve: Curve, ids, targets) -> dict:
    """Runs the steps; returns loss, grad_norm (before clipping) and learning rate of each, and where the weights end."""
    optimizer = peer_optimizers.make(curve.optimizer, parameter_groups(model), curve.learning_rate)
    schedule = get_cosine_schedule_with_warmup(optimizer, WARMUP, STEPS)
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    initial = {name: weight.detach().double().clone() for name, weight in trained.items()}
    found = {"loss": [], "grad_norm": [], "learning_rate": []}
    for step in range(STEPS):
        total = golden_io.trained_tokens(targets[step])
        loss = 0.0
        for micro in range(curve.accumulation):
            logits = model(input_ids=ids[step, micro], use_cache=False).logits
            part = golden_io.summed_loss(logits, targets[step, micro]) / total
            part.backward()
            loss += float(part.detach())
        found["loss"].append(loss)
        found["learning_rate"].append(optimizer.param_groups[0]["lr"])
        found["grad_norm"].append(float(torch.nn.utils.clip_grad_norm_(trained.values(), curve.max_grad_norm)))
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    ends = {key: torch.tensor(values, dtype=torch.float64) for key, values in found.items()}
    for name, weight in trained.items():
        key = name.replace(".default.weight", ".weight")
        ends["final_norm." + key] = weight.detach().double().norm().reshape(1)
        ends["change_norm." + key] = (weight.detach().double() - initial[name]).norm().reshape(1)
    ends["final_norm"] = torch.stack([w.detach().double().norm() for w in trained.values()]).norm().reshape(1)
    return ends


def trainee(curve: Curve):
    """The model before its first step, lora_B at zero."""
    model = tiny_models.build(curve.model)
    for name in curve.frozen:
        model.get_submodule(name).requires_grad_(False)
    return lora.attach(model, curve.model, ADAPTER, ADAPTER_SEED, random_b=False) if curve.adapter else model


def settings(curve: Curve) -> dict:
    return {
        "model": f"tests/goldens/{curve.model}/model", "method": "lora" if curve.adapter else "full",
        "max_steps": STEPS, "warmup_steps": WARMUP, "lr_scheduler_type": "cosine", "max_length": LENGTH,
        "per_device_train_batch_size": ROWS, "gradient_accumulation_steps": curve.accumulation,
        "learning_rate": curve.learning_rate, "weight_decay": WEIGHT_DECAY, "max_grad_norm": curve.max_grad_norm,
        **({"optim": curve.optimizer} if curve.batches_of else {}), **peer_optimizers.SETTINGS[curve.optimizer],
        **({"batches": f"tests/goldens/{curve.batches_of}"} if curve.batches_of else {}),
        **({"freeze_modules": curve.frozen} if curve.frozen else {}),
        **({"adapter": "tests/goldens/curve_adapter", "lora_r": 4, "lora_alpha": 8} if curve.adapter else {}),
    }


def make_adapter(root: pathlib.Path) -> str:
    """The adapter that both LoRA curves start from."""
    lora.save(trainee(CURVES["curve_lora"]), root / "curve_adapter")
    return "curve_adapter: saved"


def make(name: str, root: pathlib.Path) -> str:
    curve = CURVES[name]
    model = trainee(curve)
    ids, labels = batches(curve, model.config.vocab_size)
    targets = golden_io.shifted(labels.flatten(0, 2)).reshape(labels.shape)
    double = cases.in_fp64(model)
    found, exact = train(model, curve, ids, targets), train(double, curve, ids, targets)
    noise = {key: float((found[key] / exact[key] - 1).abs().nan_to_num().max()) for key in found}
    worst = max(noise, key=noise.get)
    clipped = int((found["grad_norm"] > curve.max_grad_norm).sum())
    tokens = [golden_io.trained_tokens(part) for step in targets for part in step]
    line = (f"{name}: loss {found['loss'][0]:.4f} to {found['loss'][-1]:.4f}, clipped {clipped} of {STEPS}, "
            f"{min(tokens)} to {max(tokens)} trained tokens per micro-batch, from fp64: loss {noise['loss']:.1e}, "
            f"worst {worst} {noise[worst]:.1e}")
    assert noise["loss"] < NOISE and noise["grad_norm"] < NOISE and noise["final_norm"] < NOISE, line
    assert 0 < clipped < STEPS, line
    data = {"ids": ids, "labels": labels, "targets": targets,
            "trained_tokens": torch.tensor([golden_io.trained_tokens(step) for step in targets])}
    if curve.batches_of:
        data, found = {}, {key: values for key, values in found.items() if "norm." not in key}
    golden_io.write(root / name / "golden.safetensors", {**data, **found})
    (root / name / "settings.json").write_text(json.dumps(settings(curve), indent=2) + "\n")
    return line
