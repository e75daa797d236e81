"""Which evaluations transformers' Trainer takes for the best, and where its EarlyStoppingCallback ends a run."""

import json
import pathlib
import random
import types

from transformers import EarlyStoppingCallback, Trainer, TrainerControl, TrainerState

METRICS = [1.0, 0.9, 0.95, 0.905, 0.8, 0.8, 0.79, 0.85, 0.9, 0.95]


def run(values: list, greater: bool, patience: int, threshold: float) -> dict:
    """The evaluation (from 1 on) after which the run ends, or 0; its best metric; and those that were the best so far."""
    args = types.SimpleNamespace(
        metric_for_best_model="loss", greater_is_better=greater, save_strategy="best", load_best_model_at_end=True
    )
    trainer = types.SimpleNamespace(args=args, state=TrainerState())
    callback = EarlyStoppingCallback(patience, threshold)
    control = TrainerControl()
    better = []
    for number, value in enumerate(values, start=1):
        metrics = {"eval_loss": value}
        callback.on_evaluate(args, trainer.state, control, metrics)
        if Trainer._determine_best_metric(trainer, metrics, None):
            better.append(number)
        if control.should_training_stop:
            return {"end": number, "best": trainer.state.best_metric, "better": better}
    return {"end": 0, "best": trainer.state.best_metric, "better": better}


def make(root: pathlib.Path) -> str:
    random.seed(7)
    cases = []
    for greater in (False, True):
        for patience, threshold in ((1, 0), (2, 0), (3, 0), (2, 0.02), (3, 0.05), (5, 0.3)):
            walks = [[round(random.uniform(0.5, 1.5), 3) for _ in range(12)] for _ in range(2)]
            for values in [METRICS, [2 - value for value in METRICS], *walks]:
                case = {"values": values, "greater": greater, "patience": patience, "threshold": threshold}
                cases.append({**case, **run(values, greater, patience, threshold)})
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (root / "best_models.json").write_text(f"[\n{lines}\n]\n")
    return f"best_models: {len(cases)} cases"
