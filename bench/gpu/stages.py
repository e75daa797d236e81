"""One measurement each, in a process of its own: a training job, decoding, the peer's job."""

import dataclasses
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics

import processes
from card import MemoryWatch
from jobs import NEW_TOKENS, PEER_CONFIGS, PROMPT_TOKENS, VOCABULARY, Job
from processes import Failure

HERE = pathlib.Path(__file__).resolve().parent
THREADS = os.cpu_count() or 1


@dataclasses.dataclass(frozen=True)
class Setting:
    snug: pathlib.Path
    python: str  # with torch, transformers and PEFT; empty: no peer
    work: pathlib.Path
    backend: str
    warmup: int
    steps: int
    limit_seconds: float  # of each measurement


def plan(setting: Setting, words: list[str]) -> dict | None:
    """plan.json of what fits; nothing where it does not. Raises Failure."""
    try:
        return processes.run_json([setting.snug, "plan", "--json", *words], 120, THREADS)
    except Failure as failure:
        if str(failure).startswith("exit code 3:"):
            return None
        raise


def planned_peak(plan_json: dict) -> int:
    """On the card: the arena, and what the plan counts beside it."""
    card = plan_json.get("card", {})
    return plan_json["device"]["peak_bytes"] + card.get("outside_bytes", 0) + card.get("reserved_bytes", 0)


def make_rows(setting: Setting, job: Job) -> pathlib.Path:
    path = setting.work / f"{job.model}-{job.row_tokens}.jsonl"
    if not path.exists():
        rng = random.Random(1)
        rows = job.rows * (setting.warmup + setting.steps)
        path.write_text("".join(json.dumps({"input_ids": [rng.randrange(VOCABULARY[job.model]) for _ in
                                                          range(job.row_tokens)]}) + "\n" for _ in range(rows)))
    return path


def words_of(setting: Setting, job: Job, recompute: str) -> list[str]:
    return [f"model={job.model}", "init=random", f"method={job.method}", f"max_length={job.row_tokens}",
            f"per_device_train_batch_size={job.rows}", "max_segments=1", f"recompute={recompute}",
            f"backend={setting.backend}", *job.words]


def first_that_fits(setting: Setting, job: Job, more: list[str]) -> tuple[str, dict]:
    """What is recomputed and the plan of it. Raises Failure where nothing fits."""
    for recompute in job.recomputes:
        planned = plan(setting, words_of(setting, job, recompute) + more)
        if planned is not None:
            return recompute, planned
    raise Failure(f"does not fit with recompute={', '.join(job.recomputes)}")


def train(setting: Setting, job: Job) -> dict:
    """A step is a micro-batch, the clip and the update. The run is ended when its steps are there: nothing is saved."""
    data = [f"data={make_rows(setting, job)}"]
    recompute, planned = first_that_fits(setting, job, data)
    words = words_of(setting, job, recompute) + data
    folder = setting.work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    metrics, memory = folder / "metrics.jsonl", MemoryWatch()
    wanted = setting.warmup + setting.steps

    def seconds() -> list[float]:
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        return [json.loads(line)["step_seconds"] for line in lines if line.endswith("}") and "step_seconds" in line]

    def watch() -> bool:
        memory.look()
        return len(seconds()) >= wanted

    processes.run([setting.snug, "train", *words, f"output_dir={folder}", f"max_steps={wanted + 1}", "shuffle=false",
                   "max_grad_norm=1", "save_steps=0", "num_train_epochs=1000"], setting.limit_seconds, THREADS, watch=watch)
    taken = seconds()[setting.warmup:wanted]
    shutil.rmtree(folder, ignore_errors=True)
    return row(job, recompute, statistics.median(taken)) | {
        "steps": len(taken), "planned_step_seconds": planned["step_seconds"], "planned_step_basis": planned["step_basis"],
        "planned_arena_bytes": planned["device"]["peak_bytes"], "planned_peak_bytes": planned_peak(planned),
        "measured_peak_bytes": memory.peak or None}


def profile(setting: Setting, job: Job) -> dict:
    """Where a step's time goes: operations alike, the longest first, their times stamped by the device."""
    recompute, _ = first_that_fits(setting, job, [])
    answer = processes.run_json([setting.snug, "bench", "step", *words_of(setting, job, recompute), "--json"],
                                setting.limit_seconds, THREADS)
    return row(job, recompute, answer["step_seconds"]) | {"operations": answer["operations"]}


def row(job: Job, recompute: str, seconds: float) -> dict:
    return {"model": job.model, "method": job.method, "recompute": recompute, "tokens": job.tokens,
            "step_seconds": seconds, "tokens_per_second": job.tokens / seconds}


def decode(setting: Setting, model: str, stored: str) -> dict:
    """Batch 1, greedy, a prompt of random ids; the first new token comes out of the prompt's pass."""
    rng, memory = random.Random(2), MemoryWatch()
    ids = " ".join(str(rng.randrange(VOCABULARY[model])) for _ in range(PROMPT_TOKENS))

    def watch() -> bool:
        memory.look()
        return False

    words = [f"model={model}", "init=random", f"backend={setting.backend}", f"ids={ids}", "temperature=0",
             f"max_new_tokens={NEW_TOKENS}", f"load_in_4bit={'true' if stored == 'nf4' else 'false'}"]
    answer = processes.run_json([setting.snug, "generate", *words, "--json"], setting.limit_seconds, THREADS, watch=watch)
    return {"model": model, "stored": stored, "new_tokens": answer["new_tokens"],
            "tokens_per_second": (answer["new_tokens"] - 1) / answer["decode_seconds"],
            "prefill_seconds": answer["prefill_seconds"], "measured_peak_bytes": memory.peak or None}


def peer(setting: Setting, job: Job) -> dict:
    """Every variant once: attention, compiled or not, checkpointing or not. The fastest, and why others failed."""
    trials = []
    for attention, compiled, checkpointing in itertools.product(("flash_attention_2", "sdpa"), (True, False),
                                                                (False, True)):
        words = dict(config=PEER_CONFIGS[job.model], method=job.method, rows=job.rows, row_tokens=job.row_tokens,
                     attention=attention, compile=compiled, checkpointing=checkpointing, warmup=setting.warmup,
                     steps=setting.steps, data=str(make_rows(setting, job)))
        name = ", ".join([attention] + ["compiled"] * compiled + ["checkpointing"] * checkpointing)
        memory = MemoryWatch()

        def watch() -> bool:
            memory.look()
            return False

        try:
            answer = processes.run_json([setting.python, HERE / "peer_train_cuda.py", json.dumps(words)],
                                        setting.limit_seconds, THREADS, watch=watch)
            seconds = statistics.median(answer["step_seconds"][setting.warmup:])
            trials.append({"variant": name, "step_seconds": seconds, "tokens_per_second": job.tokens / seconds,
                           "measured_peak_bytes": memory.peak or None})
        except Failure as failure:
            trials.append({"variant": name, "failure": str(failure)})
    sound = [trial for trial in trials if "failure" not in trial]
    return {"best": min(sound, key=lambda trial: trial["step_seconds"]) if sound else None, "trials": trials}
