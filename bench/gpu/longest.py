"""The longest row that one card holds: found by planning, then a step of it run."""

import dataclasses
import pathlib

import jobs
import stages
from jobs import Job
from processes import Failure
from stages import Setting

MAX_TOKENS = 1 << 20
DRY_TOKENS = 256


def model_with_positions(setting: Setting, model: str) -> pathlib.Path:
    """The shape as a folder without weights whose positions do not end where the published model's do."""
    folder = setting.work / f"{model}-long"
    jobs.write_config(folder, jobs.CONFIGS[model] | {"max_position_embeddings": MAX_TOKENS})
    return folder


def words_of(setting: Setting, job: Job, tokens: int) -> list[str]:
    words = stages.words_of(setting, dataclasses.replace(job, rows=1, row_tokens=tokens), job.recomputes[0])
    return [f"model={model_with_positions(setting, job.model)}"] + words[1:]


def dry_job(setting: Setting) -> Job:
    """The dry run's job with the budget that a short row takes, whatever the element type of this processor's products."""
    job = jobs.DRY_LONGEST
    budget = stages.planned_peak(stages.plan(setting, words_of(setting, job, DRY_TOKENS)))
    return dataclasses.replace(job, words=(f"device_memory={budget}", *job.words))


def job_of(setting: Setting) -> Job:
    """The job, with the budget that a short row takes where models are tiny."""
    if not setting.models:
        return jobs.LONGEST
    job = dataclasses.replace(jobs.LONGEST, words=jobs.OFFLOADED)
    budget = stages.plan(setting, words_of(setting, job, DRY_TOKENS))["device"]["peak_bytes"]
    return dataclasses.replace(job, words=(f"device_memory={budget}", *job.words))


def search(fits, grain: int) -> int:
    """The largest multiple of the grain that fits, where every smaller one does; 0 where none."""
    low, high = 0, 1
    while high * grain <= MAX_TOKENS and fits(high * grain):
        low, high = high, high * 2
    high = min(high, MAX_TOKENS // grain + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle * grain) else (low, middle)
    return low * grain


def longest(setting: Setting, job: Job, grain: int) -> dict:
    tokens = search(lambda tokens: stages.plan(setting, words_of(setting, job, tokens)) is not None, grain)
    if tokens == 0:
        raise Failure(f"not even {grain} tokens fit")
    found = dataclasses.replace(job, rows=1, row_tokens=tokens)
    data = [f"data={stages.make_rows(dataclasses.replace(setting, warmup=0, steps=2), found)}"]
    words = words_of(setting, job, tokens) + data
    planned = stages.plan(setting, words)
    if planned["step_seconds"] > setting.limit_seconds:
        raise Failure(f"a step of {tokens} tokens is planned to take {planned['step_seconds']:.0f} s, more than the {setting.limit_seconds:.0f} s that are left")
    taken, peak, said = stages.run_steps(setting, words, 1)
    stages.require_cudnn(setting, planned["libraries"], said)
    return stages.row(setting, found, job.recomputes[0], taken[0]["step_seconds"]) | {
        "planned_step_seconds": planned["step_seconds"], "planned_step_basis": planned["step_basis"],
        "planned_peak_bytes": stages.planned_peak(planned), "measured_peak_bytes": peak,
        "libraries": planned["libraries"]}
