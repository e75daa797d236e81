"""Learning rates of transformers' schedules, step by step."""

import json
import pathlib

import torch
from transformers import get_scheduler

NAMES = {"constant": "constant_with_warmup", "linear": "linear", "cosine": "cosine"}  # Snug's name to transformers'
SHAPES = ((0, 10), (1, 10), (5, 20), (7, 37), (20, 20), (30, 20))  # (warmup_steps, max_steps); odd ends included
LEARNING_RATE = 2e-4


def rates(name: str, warmup: int, total: int) -> list:
    """What the optimizer uses in steps 1..total, and one more: the rate a step after the end would have."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LEARNING_RATE)
    schedule = get_scheduler(NAMES[name], optimizer, num_warmup_steps=warmup, num_training_steps=total)
    found = []
    for _ in range(total + 1):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def make(root: pathlib.Path) -> str:
    table = [
        {"lr_scheduler_type": name, "learning_rate": LEARNING_RATE, "warmup_steps": warmup, "max_steps": total,
         "rates": rates(name, warmup, total)}
        for name in NAMES
        for warmup, total in SHAPES
    ]
    lines = ",\n".join(json.dumps(row) for row in table)
    (root / "schedules.json").write_text(f"[\n{lines}\n]\n")
    return f"schedules: {len(table)} tables"
