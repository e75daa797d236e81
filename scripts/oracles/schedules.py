"""Learning rates of transformers' schedules, step by step, with a run that resumes half-way."""

import json
import pathlib

import torch
from transformers import TrainingArguments, get_scheduler

LEARNING_RATE = 2e-4
SHAPES = ((0, 9), (1, 9), (5, 13), (7, 7), (9, 7), (0.3, 11))  # (warmup_steps, max_steps); odd ends, shares
POLYNOMIAL = tuple(shape for shape in SHAPES if shape != (7, 7))  # a warm-up of all steps divides by zero there
FEW = ((4, 13), (0.1, 11))
KINDS = [
    ("constant", {}, FEW),
    ("constant_with_warmup", {}, SHAPES),
    ("linear", {}, SHAPES),
    ("cosine", {}, SHAPES),
    ("cosine", {"num_cycles": 1.25}, FEW),
    ("cosine_with_min_lr", {"min_lr": 3e-5}, SHAPES),
    ("cosine_with_min_lr", {"min_lr_rate": 0.1}, FEW),
    ("cosine_with_min_lr", {"min_lr_rate": 0.25, "num_cycles": 2}, FEW),
    ("cosine_with_min_lr", {"min_lr": 5e-4}, FEW),  # above the peak
    ("warmup_stable_decay", {"num_decay_steps": 4}, SHAPES),
    ("warmup_stable_decay", {"num_decay_steps": 0}, FEW),
    ("warmup_stable_decay", {"num_decay_steps": 5, "num_stable_steps": 3, "min_lr_ratio": 0.1}, FEW),
    ("warmup_stable_decay", {"num_decay_steps": 6, "num_stable_steps": 0}, FEW),
    ("warmup_stable_decay", {"num_decay_steps": 30}, FEW),  # longer than what the warm-up leaves
    ("warmup_stable_decay", {"num_decay_steps": 8, "num_cycles": 1.5, "min_lr_ratio": 0.05}, FEW),
]
KINDS += [
    ("cosine_with_restarts", {}, SHAPES),
    ("cosine_with_restarts", {"num_cycles": 3}, SHAPES),
    ("cosine_with_restarts", {"num_cycles": 2.5}, FEW),
    ("cosine_warmup_with_min_lr", {"min_lr": 3e-5}, SHAPES),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1, "warmup_lr_rate": 0.2}, SHAPES),
    ("cosine_warmup_with_min_lr", {"min_lr_rate": 0.1, "warmup_lr_rate": 0.0, "num_cycles": 2}, FEW),
    ("polynomial", {}, POLYNOMIAL),
    ("polynomial", {"power": 2.0, "lr_end": 2e-5}, POLYNOMIAL),
    ("polynomial", {"power": 0.5, "lr_end": 0.0}, FEW),
    ("inverse_sqrt", {}, SHAPES),
    ("inverse_sqrt", {"timescale": 3}, SHAPES),
    ("inverse_sqrt", {"timescale": 100}, FEW),
]
KINDS += [
    ("warmup_stable_decay", {"num_decay_steps": 7, "warmup_type": rise, "decay_type": fall, "min_lr_ratio": 0.2}, ((4, 12),))
    for rise in ("linear", "cosine", "1-sqrt")
    for fall in ("linear", "cosine", "1-sqrt")
]


def start(name: str, options: dict, warmup: float, total: int) -> tuple:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LEARNING_RATE)
    steps = TrainingArguments(output_dir="unused", warmup_steps=warmup).get_warmup_steps(total)
    schedule = get_scheduler(
        name, optimizer, num_warmup_steps=steps, num_training_steps=total, scheduler_specific_kwargs=options or None
    )
    return optimizer, schedule


def rates(name: str, options: dict, warmup: float, total: int) -> list:
    """What the optimizer uses in steps 1..total, and one more that a step after the end would have, as shares of LEARNING_RATE."""
    optimizer, schedule = start(name, options, warmup, total)
    found = []
    for step in range(total + 1):
        if step == total // 2:  # as a run that is resumed from a checkpoint
            states = optimizer.state_dict(), schedule.state_dict()
            optimizer, schedule = start(name, options, warmup, total)
            optimizer.load_state_dict(states[0])
            schedule.load_state_dict(states[1])
        share = round(optimizer.param_groups[0]["lr"] / LEARNING_RATE, 7)
        found.append(int(share) if share in (0, 1) else share)
        optimizer.step()
        schedule.step()
    return found


def make(root: pathlib.Path) -> str:
    table = [
        {"type": name, "kwargs": options, "runs": [[warmup, total, rates(name, options, warmup, total)] for warmup, total in shapes]}
        for name, options, shapes in KINDS
    ]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table)
    (root / "schedules.json").write_text(f'{{"learning_rate": {LEARNING_RATE}, "schedules": [\n{lines}\n]}}\n')
    return f"schedules: {len(table)} tables"
