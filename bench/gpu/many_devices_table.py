#!/usr/bin/env python3
"""The plans for several cards: the tables of docs/many_devices.md.

    bench/gpu/many_devices_table.py [--snug FILE]      prints them; --check PAGE: fails where that page does not contain them; --write PAGE: writes them there

The jobs with offloading take longest to plan, since the clock chooses how they offload. `--part` leaves them out or takes them alone.
"""

import concurrent.futures
import dataclasses
import functools
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
# With it weights, optimizer state and gradients lie in the host's memory.
OFFLOAD = ("offload_params=true", "offload_optimizer=auto", "host_memory=1TiB")
OFFLOAD_STATE = ("offload_optimizer=auto", "host_memory=1TiB")
OFFLOAD_WEIGHTS = ("offload_params=true", "host_memory=1TiB")
NO_CHANGE = "does not fit, and no change was found that would"


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


def full(model: str, device: str, devices: int, published: str = "", *, lean: bool = False, offloads: bool = False, tokens: int = 2048,
         rows: int = 1) -> Job:
    name = "full, adamw_8bit" if lean else "full, adamw"
    words = FULL_8BIT if lean else FULL
    if offloads:
        words = (*words, *OFFLOAD)
    return Job(name, model, words, device, devices, rows, tokens, published)


def adapter(method: str, model: str, device: str, devices: int, rows: int = 1, published: str = "", *, offloads: bool = False) -> Job:
    name, words = method, (f"method={method}", *ADAPTER)
    if offloads:
        name, words = f"{name}, weights offloaded", (*words, *OFFLOAD_WEIGHTS)
    return Job(name, model, words, device, devices, rows, 2048, published)


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
OFFLOADED_JOBS = [
    full("llama-7b", "a100", 2, "60 GB by FSDP", offloads=True),
    full("llama-7b", "a100", 4, offloads=True),
    full("llama-7b", "a100", 8, offloads=True),
    full("llama-13b", "a100", 2, offloads=True),
    full("llama-13b", "a100", 4, "77 GB by FSDP, 14 GB by ZeRO-3", offloads=True),
    full("llama-13b", "a100", 4, "55 GB by ZeRO-3", offloads=True, rows=8),
    full("llama-13b", "a100", 8, offloads=True),
    full("llama-30b", "a100", 2, offloads=True),
    full("llama-30b", "a100", 4, "18 GB by ZeRO-3", offloads=True),
    full("llama-30b", "a100", 4, "80 GB by ZeRO-3", offloads=True, rows=8),
    full("llama-30b", "a100", 8, "80 GB by FSDP, 36 GB by ZeRO-3", offloads=True),
    full("llama-65b", "a100", 2, offloads=True),
    full("llama-65b", "a100", 4, offloads=True),
    full("llama-65b", "a100", 8, "out of memory by FSDP, 50 GB by ZeRO-3", offloads=True),
    full("llama-65b", "a100", 8, "77 GB by ZeRO-3", offloads=True, rows=4),
    Job("full, adamw, weights kept", "llama-65b", (*FULL, *OFFLOAD_STATE), "a100", 8),
    Job("full, adamw, weights kept", "llama-65b", (*FULL, *OFFLOAD_STATE), "a100", 8, rows=4),
]
PUBLISHED_ADAPTERS = [
    adapter("qlora", "llama-2-7b", "rtx-3090", 2, 10, "21.0 GiB, 2241 tokens/s"),
    adapter("lora", "llama-2-7b", "rtx-3090", 2, 6, "21.4 GiB, 1749 tokens/s"),
    adapter("qlora", "llama-2-7b", "rtx-4090", 2, 10, "21.0 GiB, 4500 tokens/s"),
    adapter("lora", "llama-2-7b", "rtx-4090", 2, 6, "21.4 GiB, 4360 tokens/s"),
    adapter("qlora", "yi-34b", "rtx-3090", 2, 2, "23.1 GiB, 416 tokens/s"),
    adapter("qlora", "yi-34b", "rtx-4090", 2, 2, "23.1 GiB, 1012 tokens/s"),
    adapter("qlora", "yi-34b", "rtx-4090", 2, 4, "23.0 GiB, 1018 tokens/s", offloads=True),
    adapter("qlora", "llama-2-70b", "rtx-3090", 2, 2, "14.9 GiB, 178 tokens/s", offloads=True),
    adapter("qlora", "llama-2-70b", "rtx-4090", 2, 2, "14.9 GiB, 477 tokens/s", offloads=True),
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
    """GiB that a rank takes on its card, and the GiB of the card."""
    card = plan["card"]
    return (plan["device"]["peak_bytes"] + card["outside_bytes"]) / GIB, card["memory_bytes"] / GIB


def sent_bytes(plan: dict) -> int:
    """Bytes that a rank sends in a step."""
    return sum(each["sent_bytes"] for each in plan["ranks"]["collectives"].values())


def rate_of(plan: dict) -> str:
    """Tokens per second, to three digits: a plan is not more precise."""
    return f"{float(format(plan['tokens_per_second'], '.3g')):.0f}"


def note_of(job: Job, plan: dict) -> str:
    change = "" if plan["fits"] else f"does not fit; fits with `{plan['change']}`" if plan["change"] else NO_CHANGE
    return "; ".join(filter(None, [change, f"published: {job.published}" if job.published else ""]))


def host_gibibytes(plan: dict) -> float:
    """What the ranks of a node hold in its memory, next to what each holds of code and libraries, which differs between builds and machines."""
    node = plan["ranks"]
    return (node["node"]["host_bytes"] - node["per_node"] * plan["outside"]["process_bytes"]) / GIB


def row_of(job: Job, plan: dict) -> list[str]:
    taken, there = card_gibibytes(plan)
    return [f"{job.model} {job.name}", f"{job.devices} x {job.device}", f"{job.rows} x {job.tokens}", f"{taken:.1f} of {there:.1f}",
            f"{host_gibibytes(plan):.1f}", f"{sent_bytes(plan) / 1e9:.1f}", f"{plan['step_seconds']:.2f}",
            rate_of(plan), note_of(job, plan)]


def jobs_table(snug: pathlib.Path, jobs: list[Job], first: str = "job") -> str:
    head = [first, "GPUs", "rows", "GiB per GPU", "host GiB", "GB sent", "planned s", "tokens/s", "note"]
    return table(head, [row_of(job, plan) for job, plan in zip(jobs, all_planned(snug, jobs), strict=True)])


def cell_of(plan: dict) -> str:
    taken = f"{card_gibibytes(plan)[0]:.1f}"
    return f"{taken}; {plan['step_seconds']:.2f}; {rate_of(plan)}" if plan["fits"] else f"({taken})"


def refusals_of(jobs: list[Job], plans: list[dict]) -> str:
    return "; ".join(f"{job.devices}: {f'`{change}`' if (change := plan['change']) else NO_CHANGE}"
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
    counts = [f"{count} GPUs" for count in DEVICES]
    return [table(["job", "GPU, GiB", *counts, "what fits where it does not"], lines),
            table(["GB sent", *counts], [[name, *row] for name, row in sent.items()])]


def strategies(snug: pathlib.Path) -> str:
    lines = []
    for setting in SETTINGS:
        plan = planned_pages.plan(snug, [*EXAMPLE, *setting])
        waits = 1 - plan["busy_seconds"]["compute"] / plan["step_seconds"]
        taken, there = card_gibibytes(plan)
        lines.append([" ".join(f"`{word}`" for word in setting), f"{taken:.1f}" + ("" if plan["fits"] else f" (does not fit in {there:.1f})"),
                      f"{sent_bytes(plan) / 1e9:.1f}", f"{1000 * plan['step_seconds']:.0f}", f"{100 * waits:.0f} %"])
    return table(["setting", "GiB per GPU", "GB sent", "planned ms", "the GPU waits"], lines)


def memory(snug: pathlib.Path) -> str:
    """The formula for a rank next to what the plan says."""
    plan = planned_pages.fitting_plan(snug, [*EXAMPLE, *SETTINGS[FULL_SHARD]])
    shape, by_role = EXAMPLE_SHAPE, plan["device"]["by_role"]
    parameters, ranks = plan["parameters"]["total"], plan["ranks"]["count"]
    inputs = (shape.layers + 1) * shape.tokens * shape.hidden * 2
    parts = [("weights, master weights, moments", "14 P / n", 14 * parameters / ranks, ["weight", "master", "moment"]),
             ("gradients: sharded, and the head's before they are summed", "4 P / n + 4 H", 4 * parameters / ranks + 4 * shape.head, ["gradient"]),
             ("gathered: the head and the layer that is next", "2 H + 2 L", 2 * (shape.head + shape.layer), ["comm_buffer"]),
             ("what layers keep: their inputs", "2 (layers + 1) x tokens x hidden size", inputs, ["checkpoint"]),
             ("scratch of the head's loss and of sums", "", None, ["workspace"]),
             ("activations, batch, numbers", "", None, ["activation", "batch", "scalar"])]
    lines = [[what, formula, "" if bytes_ is None else f"{bytes_ / 1e9:.2f}", f"{sum(by_role[role] for role in roles) / 1e9:.2f}"]
             for what, formula, bytes_, roles in parts]
    lines.append(["all", "", "", f"{plan['device']['peak_bytes'] / 1e9:.2f}"])
    return table(["a rank holds", "formula", "formula, GB", "planned, GB"], lines)


def explained(snug: pathlib.Path) -> list[str]:
    return [strategies(snug), memory(snug), jobs_table(snug, FULL_JOBS)]


def offloaded(snug: pathlib.Path) -> list[str]:
    return [jobs_table(snug, OFFLOADED_JOBS, "job, offloaded")]


def adapters(snug: pathlib.Path) -> list[str]:
    return [jobs_table(snug, PUBLISHED_ADAPTERS), *grid(snug)]


# In the order of the page.
PARTS = {"all": (explained, offloaded, adapters), "quick": (explained, adapters), "offloaded": (offloaded,)}


def texts(part: str, snug: pathlib.Path) -> list[str]:
    return [text for make in PARTS[part] for text in make(snug)]


def main() -> int:
    parser = planned_pages.parser(__doc__)
    parser.add_argument("--part", choices=PARTS, default="all")
    arguments = parser.parse_args()
    return planned_pages.show_or_check("bench/gpu/many_devices_table.py", arguments, functools.partial(texts, arguments.part))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except processes.Failure as failure:
        sys.exit(f"many_devices_table: {failure}")
