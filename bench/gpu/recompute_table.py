#!/usr/bin/env python3
"""What Snug chooses to compute again in five jobs of public models: the table of docs/recompute.md.

    bench/gpu/recompute_table.py [--snug FILE]      prints it; --check PAGE: fails where that page does not have it; --write PAGE: puts it there
"""

import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import planned_pages  # noqa: E402
import processes  # noqa: E402
from planned_pages import GIB  # noqa: E402
from report import table  # noqa: E402

HEAD = ["job", "device", "chosen", "GiB of budget", "planned s", "all `layer`", "everything kept takes"]


@dataclasses.dataclass(frozen=True)
class Job:
    """One row: what it is called, what it runs on, and its recipe as docs/recompute.md has it."""

    name: str
    device: str
    recipe: str


JOBS = [
    Job("llama-3.2-1b full, 2,048 tokens", "rtx-4090", "model=llama-3.2-1b method=full device=rtx-4090 max_length=2048"),
    Job("llama-3.1-8b LoRA, 8,192 tokens", "h100, 40 GiB of it", "model=llama-3.1-8b method=lora device=h100 max_length=8192 device_memory=40GiB"),
    Job("llama-3.1-8b QLoRA, 8,192 tokens", "rtx-4090", "model=llama-3.1-8b method=qlora device=rtx-4090 max_length=8192"),
    Job("qwen3-8b LoRA, 2 x 8,192 tokens", "h100", "model=qwen3-8b method=lora device=h100 max_length=8192 per_device_train_batch_size=2"),
    Job("llama-3.1-70b QLoRA, 8,192 tokens", "h100", "model=llama-3.1-70b method=qlora device=h100 max_length=8192"),
]


def chosen(plan: dict) -> str:
    modes = [f"`{group['mode']}` in {group['layers']}" for group in plan["recompute_layers"]]
    modes[0] += " layers" if plan["recompute_layers"][0]["layers"] > 1 else " layer"
    return ", ".join(modes) + ("; inputs offloaded" if plan["activation_offloading"] else "")


def row_of(snug: pathlib.Path, job: Job) -> list[str]:
    plan = planned_pages.fitting_plan(snug, job.recipe.split())
    uniform = planned_pages.fitting_plan(snug, [*job.recipe.split(), "recompute=layer"])
    device = plan["device"]
    return [job.name, job.device, chosen(plan), f"{device['peak_bytes'] / GIB:.1f} of {device['capacity_bytes'] / GIB:.1f}",
            f"{plan['step_seconds']:.3g}", f"{uniform['step_seconds']:.3g} s", f"{plan['recompute_nothing_bytes'] / GIB:.1f} GiB"]


def texts(snug: pathlib.Path) -> list[str]:
    return [table(HEAD, [row_of(snug, job) for job in JOBS])]


if __name__ == "__main__":
    try:
        sys.exit(planned_pages.show_or_check("bench/gpu/recompute_table.py", planned_pages.parser(__doc__).parse_args(), texts))
    except processes.Failure as failure:
        sys.exit(f"recompute_table: {failure}")
