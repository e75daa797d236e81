#!/usr/bin/env python3
"""What is planned for models that are larger than their card, and next to it what others measured: the tables of docs/offload.md.

    bench/gpu/offload_table.py [--snug FILE]      prints it; --check PAGE: fails where that page does not have it; --write PAGE: puts it there
"""

import dataclasses
import json
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import planned_pages  # noqa: E402
import processes  # noqa: E402
from planned_pages import GIB  # noqa: E402
from report import table  # noqa: E402

LEAN = ("recompute=layer", "activation_offloading=true", "offload_params=true", "max_segments=1")
FULL = ("method=full", "offload_optimizer=auto", *LEAN)
QLORA = ("method=qlora", *LEAN)
NOT_CLIPPED = ("max_grad_norm=0",)


@dataclasses.dataclass(frozen=True)
class Job:
    """One row: what it is called, and a recipe."""

    name: str
    model: str
    device: str
    host_gibibytes: int
    tokens: int
    words: tuple[str, ...]
    # The longest row in steps of 1024 tokens, of a model with more positions than it was trained with.
    is_longest: bool = False


JOBS = [
    Job("full, adamw, bf16 gradients", "llama-3.1-8b", "rtx-4090", 128, 16384, ("gradient_dtype=bf16", *FULL)),
    Job("the same, not clipped", "llama-3.1-8b", "rtx-4090", 128, 16384, ("gradient_dtype=bf16", *NOT_CLIPPED, *FULL)),
    Job("full, adamw, fp32 gradients", "llama-3.1-8b", "rtx-4090", 160, 16384, ("gradient_dtype=fp32", *FULL)),
    Job("full, adamw, bf16 gradients", "llama-3.1-8b", "a100-40gb", 128, 16384, ("gradient_dtype=bf16", *FULL)),
    Job("full, adamw_8bit", "qwen2.5-14b", "rtx-4090", 128, 16384, ("optim=adamw_8bit", *FULL)),
    Job("full, adamw_8bit", "qwen2.5-32b", "rtx-4090", 256, 16384, ("optim=adamw_8bit", *FULL)),
    Job("qlora", "llama-3.1-70b", "rtx-4090", 64, 4096, QLORA),
    Job("qlora, as many tokens as it has positions", "llama-3.1-8b", "h100", 64, 131072, QLORA),
    Job("qlora, as many tokens as it has positions", "llama-3.1-70b", "h100", 256, 131072, QLORA),
    Job("qlora, the longest row", "llama-3.1-8b", "h100", 256, 529408, QLORA, is_longest=True),
    Job("qlora, the longest row", "llama-3.1-70b", "h100", 512, 258048, QLORA, is_longest=True),
]
SHAPES = {
    "llama-3.1-8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32},
    "llama-3.1-70b": {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64},
}
SHARED_BY_SHAPES = {
    "model_type": "llama", "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 1 << 22, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16"}
STEP_TOKENS = 1024


@dataclasses.dataclass(frozen=True)
class Measured:
    """DeepSpeed's ZeRO-3 with weights and optimizer on the host, 8B full on one RTX 4090, a step of so many rows of 1024 tokens: of
    github.com/RegiaYoung/SlideFormer, bench/DeepSpeed/ds_bench_1024_bf16_on_20260224_211132.csv. Not clipped; masters and moments in fp32."""

    rows: int
    seconds: float
    tokens_per_second: float
    host_mebibytes: float  # of the process
    card_mebibytes: float  # reserved by torch


MEASURED = [Measured(8, 8.9672, 913.6, 176321.0, 23270.0), Measured(16, 11.9340, 1372.9, 176341.3, 22382.0),
            Measured(32, 18.2987, 1790.9, 176327.1, 23326.0)]
MEASURED_ROW_TOKENS = 1024
CHANNELS = {"host_to_device": "to the GPU", "device_to_host": "to the host", "host": "the host's CPU"}


def words_of(job: Job, model: str, tokens: int) -> list[str]:
    return [f"model={model}", f"device={job.device}", f"host_memory={job.host_gibibytes}GiB", f"max_length={tokens}", *job.words]


def planned(snug: pathlib.Path, job: Job) -> dict:
    """The plan of a job, which has to fit; of a longest row, one step more does not. Raises Failure."""
    if not job.is_longest:
        return planned_pages.fitting_plan(snug, words_of(job, job.model, job.tokens))
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps({**SHARED_BY_SHAPES, **SHAPES[job.model]}))
        if planned_pages.plan(snug, words_of(job, folder, job.tokens + STEP_TOKENS))["fits"]:
            raise processes.Failure(f"{job.model}: a row longer than {job.tokens} tokens fits")
        return planned_pages.fitting_plan(snug, words_of(job, folder, job.tokens))


def limit_of(plan: dict) -> str:
    """The busiest channel, with its share of the step."""
    channel, seconds = max(plan["busy_seconds"].items(), key=lambda each: each[1])
    return f"{CHANNELS.get(channel, 'the GPU')}, {100 * seconds / plan['step_seconds']:.0f} %"


def waits(plan: dict) -> str:
    """How long the card waits for copies and updates."""
    return f"{100 * (1 - plan['busy_seconds']['compute'] / plan['step_seconds']):.1f} %"


def row_of(job: Job, plan: dict) -> list[str]:
    updates = {"none": "on the GPU", "stream": "on the GPU", "host": "on the host"}[plan["offload_optimizer"]]
    return [f"{job.model} {job.name}", job.device, f"{job.tokens}", updates, f"{plan['device']['peak_bytes'] / GIB:.1f}",
            f"{plan['host']['peak_bytes'] / GIB:.1f} of {job.host_gibibytes}", f"{plan['step_seconds']:.1f}", waits(plan), limit_of(plan)]


def waiting_table(snug: pathlib.Path) -> str:
    """The first job with fewer tokens in a step: an update takes as long for few as for many."""
    rows = []
    for tokens in (16384, 8192, 4096, 2048):
        plans = [planned(snug, dataclasses.replace(job, tokens=tokens)) for job in JOBS[:2]]
        rows.append([f"{tokens}", *(cell for plan in plans for cell in (f"{plan['step_seconds']:.1f}", waits(plan)))])
    return table(["tokens in a step", "clipped: planned s", "the GPU waits", "not clipped: planned s", "the GPU waits"], rows)


def compared_row(snug: pathlib.Path, measured: Measured) -> list[str]:
    """The same job, planned; its host has as much memory as theirs took."""
    job = Job("full, adamw", "llama-3.1-8b", "rtx-4090", 172, MEASURED_ROW_TOKENS,
              ("gradient_dtype=fp32", f"per_device_train_batch_size={measured.rows}", *NOT_CLIPPED, *FULL))
    plan = planned(snug, job)
    tokens, seconds = measured.rows * MEASURED_ROW_TOKENS, plan["step_seconds"]
    if plan["tokens_per_step"] != tokens:
        raise processes.Failure(f"{plan['tokens_per_step']} tokens in a step of {measured.rows} rows")
    return [f"{measured.rows} x {MEASURED_ROW_TOKENS}", f"{measured.seconds:.2f}", f"{measured.tokens_per_second:.0f}",
            f"{measured.card_mebibytes / 1024:.1f}", f"{measured.host_mebibytes / 1024:.1f}", f"{seconds:.2f}", f"{tokens / seconds:.0f}",
            f"{plan['device']['peak_bytes'] / GIB:.1f}", f"{plan['host']['peak_bytes'] / GIB:.1f}", waits(plan)]


def compared_table(snug: pathlib.Path) -> str:
    measured = [f"DeepSpeed, measured: {unit}" for unit in ("s", "tokens/s", "GPU GiB", "host GiB")]
    return table(["rows", *measured, *(f"Snug, planned: {unit}" for unit in ("s", "tokens/s", "GPU GiB", "host GiB", "the GPU waits"))],
                 [compared_row(snug, each) for each in MEASURED])


def texts(snug: pathlib.Path) -> list[str]:
    head = ["job", "GPU", "tokens", "updates", "GPU GiB", "host GiB", "planned s", "the GPU waits", "busiest"]
    return [waiting_table(snug), table(head, [row_of(job, planned(snug, job)) for job in JOBS]), compared_table(snug)]


if __name__ == "__main__":
    try:
        sys.exit(planned_pages.show_or_check("bench/gpu/offload_table.py", planned_pages.parser(__doc__).parse_args(), texts))
    except processes.Failure as failure:
        sys.exit(f"offload_table: {failure}")
