"""The peer's measurements: transformers + PEFT, every variant in a process of its own until the time is up."""

import dataclasses
import itertools
import json
import pathlib
import statistics
import time

import jobs
import processes
import stages
from card import MemoryWatch
from jobs import Job
from processes import Failure
from stages import THREADS, Setting

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Peer:
    setting: Setting
    train_script: pathlib.Path = HERE / "peer_train_cuda.py"
    generate_script: pathlib.Path = HERE / "peer_generate_cuda.py"


def training_variants() -> dict[str, dict]:
    """The likeliest best first: compiled, then without checkpoints where those fit."""
    return {", ".join([attention] + ["compiled"] * compiled + ["checkpointing"] * checkpointing):
            dict(attention=attention, compile=compiled, checkpointing=checkpointing)
            for attention, compiled, checkpointing in itertools.product(("sdpa", "flash_attention_2"), (True, False), (False, True))}


def run(setting: Setting, script: pathlib.Path, job: dict, limit_seconds: float) -> dict:
    """What the script answers, with the card's peak. Raises Failure."""
    memory = MemoryWatch()

    def watch() -> bool:
        memory.look()
        return False

    answer = processes.run_json([setting.python, script, json.dumps(job)], limit_seconds, THREADS, watch=watch)
    return answer | {"measured_peak_bytes": memory.peak or None}


def try_all(setting: Setting, variants: list[str], attempt) -> list[dict]:
    """Each variant's figures or failure; what the setting's limit leaves no time for is not tried, and says so."""
    trials, end = [], time.monotonic() + setting.limit_seconds
    for name in variants:
        left = end - time.monotonic()
        try:
            if left < 1:
                raise Failure("not tried: no time left")
            trials.append({"variant": name} | attempt(name, left))
        except Failure as failure:
            trials.append({"variant": name, "failure": str(failure)})
    return trials


def train(peer: Peer, job: Job, known: list[dict]) -> dict:
    """`known`: trials of other jobs on this card; what was quickest there goes first here."""
    setting, variants = peer.setting, training_variants()
    rates = {trial["variant"]: trial["tokens_per_second"] for trial in known if "failure" not in trial}
    order = sorted(variants, key=lambda name: (-rates.get(name, 0.0), list(variants).index(name)))

    def attempt(name: str, left: float) -> dict:
        words = dict(config=jobs.CONFIGS[job.model], method=job.method, rows=job.rows, row_tokens=job.row_tokens,
                     warmup=jobs.PEER_WARMUP, steps=jobs.PEER_STEPS, data=str(stages.make_rows(setting, job)), **variants[name])
        answer = run(setting, peer.train_script, words, left)
        seconds = statistics.median(answer["step_seconds"][jobs.PEER_WARMUP:])
        return {"step_seconds": seconds, "tokens_per_second": job.tokens / seconds, "optimizer": answer["optimizer"], "versions": answer["versions"],
                "measured_peak_bytes": answer["measured_peak_bytes"]}

    return {"model": job.model, "method": job.method, "trials": try_all(setting, order, attempt)}


def decode(peer: Peer, model: str, stored: str) -> dict:
    variants = {"sdpa, static cache, compiled": True, "sdpa": False}

    def attempt(name: str, left: float) -> dict:
        words = dict(config=jobs.CONFIGS[model], stored=stored, ids=stages.prompt_of(model), new_tokens=jobs.NEW_TOKENS, compile=variants[name])
        answer = run(peer.setting, peer.generate_script, words, left)
        return {key: answer[key] for key in ("tokens_per_second", "prefill_seconds", "measured_peak_bytes")}

    return {"model": model, "stored": stored, "trials": try_all(peer.setting, list(variants), attempt)}
