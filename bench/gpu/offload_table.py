#!/usr/bin/env python3
"""What is planned for models that are larger than their card: the table of docs/offload.md.

    bench/gpu/offload_table.py [--snug FILE]      prints it; --check PAGE: fails where that page does not have it
"""

import argparse
import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import processes  # noqa: E402
from report import table  # noqa: E402

LEAN = ("recompute=layer", "activation_offloading=true", "offload_params=true", "max_segments=1")
FULL = ("method=full", "offload_optimizer=auto", *LEAN)
QLORA = ("method=qlora", *LEAN)
IN_BACKWARD = ("max_grad_norm=0", "optim_in_backward=true")
LIMIT_SECONDS = 120
GIB = 2.0**30


@dataclasses.dataclass(frozen=True)
class Job:
    """One row: what it is called, and a recipe."""

    name: str
    model: str
    device: str
    host_gibibytes: int
    tokens: int
    words: tuple[str, ...]


JOBS = [
    Job("full, adamw, bf16 gradients", "llama-3.1-8b", "rtx-4090", 128, 16384, ("gradient_dtype=bf16", *FULL)),
    Job("the same, not clipped", "llama-3.1-8b", "rtx-4090", 128, 16384, ("gradient_dtype=bf16", *IN_BACKWARD, *FULL)),
    Job("full, adamw, fp32 gradients", "llama-3.1-8b", "rtx-4090", 160, 16384, ("gradient_dtype=fp32", *FULL)),
    Job("full, adamw, bf16 gradients", "llama-3.1-8b", "a100-40gb", 128, 16384, ("gradient_dtype=bf16", *FULL)),
    Job("full, adamw_8bit", "qwen2.5-14b", "rtx-4090", 128, 16384, ("optim=adamw_8bit", *FULL)),
    Job("full, adamw_8bit", "qwen2.5-32b", "rtx-4090", 256, 16384, ("optim=adamw_8bit", *FULL)),
    Job("qlora", "llama-3.1-70b", "rtx-4090", 64, 4096, QLORA),
    Job("qlora, the model's longest row", "llama-3.1-8b", "h100", 64, 131072, QLORA),
    Job("qlora, the model's longest row", "llama-3.1-70b", "h100", 256, 131072, QLORA),
]
CHANNELS = {"host_to_device": "to the card", "device_to_host": "to the host", "host": "the host's processor"}


def planned(snug: pathlib.Path, job: Job) -> dict:
    """The plan of a job, which has to fit. Raises Failure."""
    words = [f"model={job.model}", f"device={job.device}", f"host_memory={job.host_gibibytes}GiB", f"max_length={job.tokens}", *job.words]
    return processes.run_json([snug, "plan", *words, "--json"], LIMIT_SECONDS, 1)


def limit_of(plan: dict) -> str:
    """The busiest channel, with its share of the step."""
    channel, seconds = max(plan["busy_seconds"].items(), key=lambda each: each[1])
    return f"{CHANNELS.get(channel, 'the card')}, {100 * seconds / plan['step_seconds']:.0f} %"


def row_of(job: Job, plan: dict) -> list[str]:
    waits = 1 - plan["busy_seconds"]["compute"] / plan["step_seconds"]
    updates = {"none": "on the card", "stream": "on the card", "host": "on the host"}[plan["offload_optimizer"]]
    return [f"{job.model} {job.name}", job.device, f"{job.tokens}", updates, f"{plan['device']['peak_bytes'] / GIB:.1f}",
            f"{plan['host']['peak_bytes'] / GIB:.1f} of {job.host_gibibytes}", f"{plan['step_seconds']:.1f}", f"{100 * waits:.1f} %", limit_of(plan)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snug", default="build/release/snug", help="the binary, of any build")
    parser.add_argument("--check", default="", help="a file that must hold the table")
    arguments = parser.parse_args()
    snug = pathlib.Path(arguments.snug).resolve()
    text = table(["job", "card", "tokens", "updates", "card GiB", "host GiB", "planned s", "the card waits", "busiest"],
                 [row_of(job, planned(snug, job)) for job in JOBS])
    if not arguments.check:
        print(text, end="")
        return 0
    if text in pathlib.Path(arguments.check).read_text():
        return 0
    print(f"{arguments.check} does not hold what bench/gpu/offload_table.py prints:\n{text}")
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except processes.Failure as failure:
        sys.exit(f"offload_table: {failure}")
