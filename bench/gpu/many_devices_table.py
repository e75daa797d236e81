#!/usr/bin/env python3
"""What is planned for several cards: the tables of docs/many_devices.md.

    bench/gpu/many_devices_table.py [--snug FILE]      prints them; --check PAGE: fails where that page does not have them; --write PAGE: puts them there
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import planned_pages  # noqa: E402
import processes  # noqa: E402
from planned_pages import GIB  # noqa: E402
from report import table  # noqa: E402

COMMON = ("strategy=full_shard", "recompute=layer", "max_segments=1")
FULL = ("method=full",)
FULL_8BIT = ("method=full", "optim=adamw_8bit")
# As the authors of the published QLoRA and LoRA rows trained.
ADAPTER = ("lora_r=64", "target_modules=q_proj,k_proj,v_proj,gate_proj,up_proj,down_proj")
NEEDS_OFFLOAD = "needs offload, not built for several devices"


@dataclasses.dataclass(frozen=True)
class Job:
    """One row: a recipe, and what was published of it."""

    name: str
    model: str
    words: tuple[str, ...]
    device: str
    devices: int
    rows: int = 1
    tokens: int = 2048
    published: str = ""
    # The published run kept weights in the host's memory.
    was_offloaded: bool = False


def full(model: str, device: str, devices: int, published: str = "", *, lean: bool = False, tokens: int = 2048, rows: int = 1) -> Job:
    name = "full, adamw_8bit" if lean else "full, adamw"
    return Job(name, model, FULL_8BIT if lean else FULL, device, devices, rows, tokens, published)


def adapter(method: str, model: str, device: str, devices: int, rows: int = 1, published: str = "", was_offloaded: bool = False) -> Job:
    return Job(method, model, (f"method={method}", *ADAPTER), device, devices, rows, 2048, published, was_offloaded)


FULL_JOBS = [
    full("llama-7b", "a100", 2, "81 GB"),
    full("llama-7b", "a100", 4, "59 GB"),
    full("llama-7b", "a100", 8, "45 GB"),
    full("llama-7b", "a100", 8, "56 GB", rows=4),
    full("llama-13b", "a100", 2),
    full("llama-13b", "a100", 2, lean=True),
    full("llama-13b", "a100", 4, "81 GB"),
    full("llama-13b", "a100", 8, "78 GB"),
    full("llama-30b", "a100", 2, lean=True),
    full("llama-30b", "a100", 4, "out of memory"),
    full("llama-30b", "a100", 4, lean=True),
    full("llama-30b", "a100", 8, "out of memory"),
    full("llama-30b", "a100", 8, lean=True),
    full("llama-65b", "a100", 4, lean=True),
    full("llama-65b", "a100", 8, "out of memory"),
    full("llama-65b", "a100", 8, lean=True),
    full("llama-3.1-8b", "h100", 2, tokens=8192, rows=2),
    full("llama-3.1-8b", "h100", 2, lean=True, tokens=8192, rows=2),
    full("llama-2-13b", "h100", 2, tokens=4096, rows=4),
    full("llama-2-13b", "h100", 2, lean=True, tokens=4096, rows=4),
]
PUBLISHED_ADAPTERS = [
    adapter("qlora", "llama-2-7b", "rtx-3090", 2, 10, "21.0 GiB, 2241 tokens/s"),
    adapter("lora", "llama-2-7b", "rtx-3090", 2, 6, "21.4 GiB, 1749 tokens/s"),
    adapter("qlora", "llama-2-7b", "rtx-4090", 2, 10, "21.0 GiB, 4500 tokens/s"),
    adapter("lora", "llama-2-7b", "rtx-4090", 2, 6, "21.4 GiB, 4360 tokens/s"),
    adapter("qlora", "yi-34b", "rtx-3090", 2, 2, "23.1 GiB, 416 tokens/s"),
    adapter("qlora", "yi-34b", "rtx-4090", 2, 2, "23.1 GiB, 1012 tokens/s"),
    adapter("qlora", "yi-34b", "rtx-4090", 2, 4, "23.0 GiB, 1018 tokens/s", was_offloaded=True),
    adapter("qlora", "llama-2-70b", "rtx-3090", 2, 2, "14.9 GiB, 178 tokens/s", was_offloaded=True),
    adapter("qlora", "llama-2-70b", "rtx-4090", 2, 2, "14.9 GiB, 477 tokens/s", was_offloaded=True),
    adapter("qlora", "llama-2-70b", "a100-40gb", 2, 1, "640 tokens/s"),
    adapter("qlora", "llama-2-70b", "a100-40gb", 4, 4, "1657 tokens/s"),
    adapter("qlora", "llama-2-70b", "a100-40gb", 8, 4, "3121 tokens/s"),
    adapter("qlora", "llama-2-70b", "h100", 4, 8, "3144 tokens/s"),
    adapter("qlora", "llama-3.1-70b", "rtx-4090", 2),
    adapter("qlora", "llama-3.1-70b", "rtx-a6000", 2),
]
CARDS = ("rtx-4090", "rtx-a6000", "h100")
DEVICES = (2, 4, 8)
ADAPTER_JOBS = [adapter(method, model, card, devices)
                for model in ("llama-2-7b", "yi-34b", "llama-2-70b") for method in ("lora", "qlora") for card in CARDS for devices in DEVICES]


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    head: int  # elements
    layer: int
    tokens: int


# On which the page explains strategies and memory.
EXAMPLE = ("model=llama-3.1-8b", "method=full", "device=h100", "devices=8", "recompute=layer", "max_length=2048", "max_segments=1")
EXAMPLE_SHAPE = Shape(layers=32, hidden=4096, head=128256 * 4096, tokens=2048,
                      layer=2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096 + 2 * 4096)
SETTINGS = [*((f"strategy={name}",) for name in ("ddp", "zero1", "zero2", "shard_grad_op", "full_shard")),
            ("strategy=full_shard", "prefetch=post"), ("strategy=full_shard", "prefetch=none"), ("strategy=full_shard", "reduce_dtype=bf16"),
            ("strategy=full_shard", "nodes=2"), ("strategy=hybrid_full_shard", "nodes=2")]
FULL_SHARD = 4


def planned(snug: pathlib.Path, job: Job) -> dict:
    words = [f"model={job.model}", f"device={job.device}", f"devices={job.devices}", f"max_length={job.tokens}",
             f"per_device_train_batch_size={job.rows}", *COMMON, *job.words]
    return planned_pages.plan(snug, words)


def all_planned(snug: pathlib.Path, jobs: list[Job]) -> list[dict]:
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda job: planned(snug, job), jobs))


def card_gibibytes(plan: dict) -> tuple[float, float]:
    """What a rank takes of its card, and what the card has."""
    card = plan["card"]
    return (plan["device"]["peak_bytes"] + card["outside_bytes"]) / GIB, card["memory_bytes"] / GIB


def sent_bytes(plan: dict) -> int:
    """By a rank, in a step."""
    return sum(each["sent_bytes"] for each in plan["ranks"]["collectives"].values())


def rate_of(plan: dict) -> str:
    """Tokens in a second, to three digits: more a plan does not know."""
    return f"{float(format(plan['tokens_per_second'], '.3g')):.0f}"


def note_of(job: Job, plan: dict) -> str:
    published = f"published: {job.published}" + (", weights offloaded" if job.was_offloaded else "") if job.published else ""
    if plan["fits"]:
        return published
    if job.was_offloaded or not plan["change"]:
        return "; ".join(filter(None, [NEEDS_OFFLOAD, published]))
    return "; ".join(filter(None, [f"does not fit; fits with `{plan['change']}`", published]))


def row_of(job: Job, plan: dict) -> list[str]:
    taken, there = card_gibibytes(plan)
    return [f"{job.model} {job.name}", f"{job.devices} x {job.device}", f"{job.rows} x {job.tokens}", f"{taken:.1f} of {there:.1f}",
            f"{plan['ranks']['node']['host_bytes'] / GIB:.1f}", f"{sent_bytes(plan) / 1e9:.1f}", f"{plan['step_seconds']:.2f}",
            rate_of(plan), note_of(job, plan)]


def jobs_table(snug: pathlib.Path, jobs: list[Job]) -> str:
    head = ["job", "cards", "rows", "GiB of a card", "host GiB", "sent GB", "planned s", "tokens/s", "note"]
    return table(head, [row_of(job, plan) for job, plan in zip(jobs, all_planned(snug, jobs), strict=True)])


def cell_of(plan: dict) -> str:
    taken = f"{card_gibibytes(plan)[0]:.1f}"
    return f"{taken}; {plan['step_seconds']:.2f}; {rate_of(plan)}" if plan["fits"] else f"({taken})"


def refusals_of(jobs: list[Job], plans: list[dict]) -> str:
    return "; ".join(f"{job.devices}: {f'`{change}`' if (change := plan['change']) else NEEDS_OFFLOAD}"
                     for job, plan in zip(jobs, plans, strict=True) if not plan["fits"])


def grid(snug: pathlib.Path) -> list[str]:
    """A line for each job and card, with a column for each number of cards; and what ranks send, whatever the card."""
    plans = all_planned(snug, ADAPTER_JOBS)
    lines, sent = [], {}
    for i in range(0, len(ADAPTER_JOBS), len(DEVICES)):
        jobs, of_jobs = ADAPTER_JOBS[i:i + len(DEVICES)], plans[i:i + len(DEVICES)]
        name = f"{jobs[0].model} {jobs[0].name}"
        sent[name] = [f"{sent_bytes(plan) / 1e9:.1f}" for plan in of_jobs]
        lines.append([name, f"{jobs[0].device}, {card_gibibytes(of_jobs[0])[1]:.1f}", *map(cell_of, of_jobs), refusals_of(jobs, of_jobs)])
    counts = [f"{count} cards" for count in DEVICES]
    return [table(["job", "card, GiB", *counts, "what fits where it does not"], lines),
            table(["sent GB", *counts], [[name, *row] for name, row in sent.items()])]


def strategies(snug: pathlib.Path) -> str:
    lines = []
    for setting in SETTINGS:
        plan = planned_pages.plan(snug, [*EXAMPLE, *setting])
        waits = 1 - plan["busy_seconds"]["compute"] / plan["step_seconds"]
        taken, there = card_gibibytes(plan)
        lines.append([" ".join(f"`{word}`" for word in setting), f"{taken:.1f}" + ("" if plan["fits"] else f" (does not fit in {there:.1f})"),
                      f"{sent_bytes(plan) / 1e9:.1f}", f"{1000 * plan['step_seconds']:.0f}", f"{100 * waits:.0f} %"])
    return table(["setting", "GiB of a card", "sent GB", "planned ms", "the card waits"], lines)


def memory(snug: pathlib.Path) -> str:
    """The formula for a rank next to what the plan says."""
    plan = planned_pages.fitting_plan(snug, [*EXAMPLE, *SETTINGS[FULL_SHARD]])
    shape, by_role = EXAMPLE_SHAPE, plan["device"]["by_role"]
    parameters, ranks = plan["parameters"]["total"], plan["ranks"]["count"]
    inputs = (shape.layers + 1) * shape.tokens * shape.hidden * 2
    parts = [("weights, master weights, moments", "14 P / n", 14 * parameters / ranks, ["weight", "master", "moment"]),
             ("gradients: dealt out, and the head's before they are summed", "4 P / n + 4 H", 4 * parameters / ranks + 4 * shape.head, ["gradient"]),
             ("gathered: the head and the layer that is next", "2 H + 2 L", 2 * (shape.head + shape.layer), ["comm_buffer"]),
             ("what layers keep: their inputs", "2 (layers + 1) x tokens x hidden size", inputs, ["checkpoint"]),
             ("scratch of the head's loss and of sums", "", None, ["workspace"]),
             ("activations, batch, numbers", "", None, ["activation", "batch", "scalar"])]
    lines = [[what, formula, "" if bytes_ is None else f"{bytes_ / 1e9:.2f}", f"{sum(by_role[role] for role in roles) / 1e9:.2f}"]
             for what, formula, bytes_, roles in parts]
    lines.append(["all", "", "", f"{plan['device']['peak_bytes'] / 1e9:.2f}"])
    return table(["of a rank", "formula", "GB by formula", "GB by the plan"], lines)


def texts(snug: pathlib.Path) -> list[str]:
    return [strategies(snug), memory(snug), jobs_table(snug, FULL_JOBS), jobs_table(snug, PUBLISHED_ADAPTERS), *grid(snug)]


if __name__ == "__main__":
    try:
        sys.exit(planned_pages.show_or_check("bench/gpu/many_devices_table.py", planned_pages.parser(__doc__).parse_args(), texts))
    except processes.Failure as failure:
        sys.exit(f"many_devices_table: {failure}")
