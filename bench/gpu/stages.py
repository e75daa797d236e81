"""Snug's measurements, each in a process of its own: a training job, where its time goes, decoding, the card's rates."""

import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import time

import bars
import jobs
import model_flops
import processes
from card import MemoryWatch
from jobs import Job
from processes import Failure

THREADS = os.cpu_count() or 1
# Of a calibration's time: it starts, measures the machine's own rates, and ends.
AROUND_CALIBRATING = 20.0
MAX_CALIBRATION_SECONDS = 600.0  # Snug takes no more
# What Snug says where cuDNN refuses an attention that suits it.
LEFT_TO_OWN = "own kernels are planned"


@dataclasses.dataclass(frozen=True)
class Setting:
    snug: pathlib.Path
    python: str  # with torch, transformers and PEFT; empty: no peer
    work: pathlib.Path
    out: pathlib.Path
    backend: str
    device: str
    warmup: int
    steps: int
    limit_seconds: float  # of each measurement
    models: dict[str, pathlib.Path] = dataclasses.field(default_factory=dict)  # folders that stand in for built-in shapes

    def model_word(self, model: str) -> str:
        return f"model={self.models.get(model, model)}"

    @property
    def calibration(self) -> pathlib.Path:
        """Where this device's rates are, once they were measured."""
        return self.out / f"calibration-{re.sub('[^A-Za-z0-9]+', '-', self.device)}.json"


def plan(setting: Setting, words: list[str], environment: dict | None = None) -> dict | None:
    """plan.json of what fits; nothing where it does not. Raises Failure."""
    try:
        return processes.run_json([setting.snug, "plan", "--json", *words], 120, THREADS, environment)
    except Failure as failure:
        if str(failure).startswith("exit code 3:"):
            return None
        raise


def planned_peak(plan_json: dict) -> int:
    """On the card: the arena, and what the plan counts next to it."""
    card = plan_json.get("card", {})
    return plan_json["device"]["peak_bytes"] + card.get("outside_bytes", 0) + card.get("reserved_bytes", 0)


def make_rows(setting: Setting, job: Job) -> pathlib.Path:
    path = setting.work / f"{job.model}-{job.row_tokens}.jsonl"
    if not path.exists():
        rng = random.Random(1)
        rows = job.rows * (setting.warmup + setting.steps)
        path.write_text("".join(json.dumps({"input_ids": [rng.randrange(jobs.CONFIGS[job.model]["vocab_size"]) for _ in
                                                          range(job.row_tokens)]}) + "\n" for _ in range(rows)))
    return path


def words_of(setting: Setting, job: Job, recompute: str) -> list[str]:
    rates = [f"calibration={setting.calibration}"] if setting.calibration.exists() else []
    return [setting.model_word(job.model), "init=random", f"method={job.method}", f"max_length={job.row_tokens}",
            f"per_device_train_batch_size={job.rows}", "max_segments=1", f"recompute={recompute}",
            f"backend={setting.backend}", *rates, *job.words]


def first_that_fits(setting: Setting, job: Job, more: list[str]) -> tuple[str, dict]:
    """What is recomputed and the plan of it. Raises Failure where nothing fits."""
    for recompute in job.recomputes:
        planned = plan(setting, words_of(setting, job, recompute) + more, job.environment)
        if planned is not None:
            return recompute, planned
    raise Failure(f"does not fit with recompute={', '.join(job.recomputes)}")


def require_cudnn(setting: Setting, libraries: str, said: str) -> None:
    """Raises Failure where a row would be measured on other kernels than its plan is about."""
    if setting.backend != "cuda" or setting.models:
        return
    if "cuDNN 9" not in libraries:
        raise Failure(f"attention would run on own kernels: {libraries}")
    if line := next((line for line in said.splitlines() if LEFT_TO_OWN in line), None):
        raise Failure(f"attention runs on own kernels: {line.strip()}")


def require_kernels(setting: Setting, job: Job, libraries: str, said: str) -> None:
    """Raises Failure where the job's attention is not done by whom its row is about."""
    if not job.own_attention:
        require_cudnn(setting, libraries, said)
    elif "cuDNN 9" in libraries:
        raise Failure(f"attention would run in cuDNN: {libraries}")


def outside(said: str) -> dict[str, str]:
    """What of the card's memory was no arena's, after tuning and after two steps, each of what was planned."""
    return dict(re.findall(r"outside the arenas on the card after ([a-z ]+): (.*)$", said, re.MULTILINE))


def run_steps(setting: Setting, words: list[str], wanted: int, environment: dict | None = None) -> tuple[list[dict], int | None, str]:
    """What metrics.jsonl says of each step, the card's peak, and what was said. The run is ended when its steps are there: nothing is saved.
    The driver is asked before the timed steps and after them, when what a run takes has long been taken."""
    folder = setting.work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    metrics, memory = folder / "metrics.jsonl", MemoryWatch()

    def steps() -> list[dict]:
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}") and "step_seconds" in line]

    def watch() -> bool:
        there = len(steps())
        if there < min(setting.warmup, wanted) or there >= wanted:
            memory.look(at_once=there >= wanted)
        return there >= wanted

    clip = [] if jobs.NOT_CLIPPED in words else ["max_grad_norm=1"]
    outcome = processes.run([setting.snug, "train", *words, f"output_dir={folder}", f"max_steps={wanted + 1}", "shuffle=false",
                             *clip, "save_steps=0", "num_train_epochs=1000"], setting.limit_seconds, THREADS, environment, watch)
    found = steps()[:wanted]
    shutil.rmtree(folder, ignore_errors=True)
    return found, memory.peak or None, outcome.stderr


def train(setting: Setting, job: Job) -> dict:
    """A step is a micro-batch, the clip (unless the job says that there is none) and the update."""
    if job.is_long:
        setting = dataclasses.replace(setting, warmup=min(setting.warmup, jobs.LONG_WARMUP), steps=min(setting.steps, jobs.LONG_STEPS))
    data = [f"data={make_rows(setting, job)}"]
    recompute, planned = first_that_fits(setting, job, data)
    require_kernels(setting, job, planned["libraries"], "")
    lines, peak, said = run_steps(setting, words_of(setting, job, recompute) + data, setting.warmup + setting.steps, job.environment)
    require_kernels(setting, job, planned["libraries"], said)
    taken = [line["step_seconds"] for line in lines[setting.warmup:]]
    return row(setting, job, recompute, statistics.median(taken)) | {
        "steps": len(taken), "planned_step_seconds": planned["step_seconds"], "planned_step_basis": planned["step_basis"],
        "planned_arena_bytes": planned["device"]["peak_bytes"], "planned_peak_bytes": planned_peak(planned),
        "measured_peak_bytes": peak, "outside": outside(said), "libraries": planned["libraries"], **streamed(planned)}


def streamed(planned: dict) -> dict:
    """What the plan says of a job whose state lies in host memory: where it is updated, how much it is, how busy each channel is."""
    if planned["offload_optimizer"] == "none":
        return {}
    return {"updates": planned["offload_optimizer"], "planned_host_bytes": planned["host"]["peak_bytes"],
            "planned_busy_seconds": planned["busy_seconds"]}


def profile(setting: Setting, job: Job) -> dict:
    """Where a step's time goes: operations alike, the longest first, their times stamped by the device."""
    recompute, _ = first_that_fits(setting, job, [])
    outcome = processes.run([setting.snug, "bench", "step", *words_of(setting, job, recompute), "--json"], setting.limit_seconds, THREADS, job.environment)
    answer = processes.parsed(outcome)
    require_kernels(setting, job, answer["libraries"], outcome.stderr)
    return row(setting, job, recompute, answer["step_seconds"]) | {
        "planned_step_basis": answer["planned_basis"], "operations": answer["operations"]}


def row(setting: Setting, job: Job, recompute: str, seconds: float) -> dict:
    """What is said of any step: model FLOPs count nothing that is recomputed."""
    flops = model_flops.training_flops(jobs.shape_of(job.model), job.method, job.row_tokens) * job.tokens / seconds
    practical = bars.practical_seconds(job.name, setting.device)
    return {"model": job.model, "method": job.method, "recompute": recompute, "tokens": job.tokens,
            "row_tokens": job.row_tokens, "step_seconds": seconds, "tokens_per_second": job.tokens / seconds,
            "model_flops_per_second": flops, "share_of_peak": flops / bars.PEAK_FLOPS,
            "practical_seconds": practical, "times_practical": seconds / practical if practical else None}


def decode(setting: Setting, job: jobs.Decoding) -> dict:
    """A prompt of random ids, tokens drawn as Lit-GPT draws them; the first comes out of the prompt's pass. Kernels and graphs are
    there when the time begins. With it where the time of a token of each sequence goes, its operations one by one."""
    memory = MemoryWatch()

    def watch() -> bool:
        memory.look()
        return False

    words = [*recipe_of_rates(setting), setting.model_word(job.model), "init=random", f"backend={setting.backend}",
             f"ids={' '.join(map(str, prompt_of(job.model)))}", "temperature=0.8", "top_k=200", f"max_new_tokens={jobs.NEW_TOKENS}",
             f"load_in_4bit={'true' if job.stored == 'nf4' else 'false'}", f"batch={job.sequences}"]
    answer = processes.run_json([setting.snug, "bench", "decode", *words, "--json"], setting.limit_seconds, THREADS, watch=watch)
    rate = answer["tokens_per_second"]
    read = model_flops.decoded_bytes(jobs.shape_of(job.model), job.stored) * rate / answer["sequences"]
    bandwidth = bars.BANDWIDTH.get(bars.card_of(setting.device))
    return {"model": job.model, "stored": job.stored, "sequences": answer["sequences"], "prompt_tokens": jobs.PROMPT_TOKENS,
            "new_tokens": answer["new_tokens"], "tokens_per_second": rate, "prefill_seconds": answer["prefill_seconds"],
            "planned_step_basis": answer["planned_basis"], "operations": answer["operations"], "libraries": answer["libraries"],
            "weight_bytes_per_second": read, "share_of_bandwidth": read / bandwidth if bandwidth else None, "measured_peak_bytes": memory.peak or None}


def recipe_of_rates(setting: Setting) -> list[pathlib.Path]:
    """A recipe that names the card's calibration, once there is one: on its command line decoding takes no such word."""
    if not setting.calibration.exists():
        return []
    recipe = setting.work / "rates.yaml"
    recipe.write_text(f"calibration: {json.dumps(str(setting.calibration.resolve()))}\n")
    return [recipe]


def prompt_of(model: str) -> list[int]:
    rng = random.Random(2)
    return [rng.randrange(jobs.CONFIGS[model]["vocab_size"]) for _ in range(jobs.PROMPT_TOKENS)]


def calibrate(setting: Setting, most_steps: int) -> dict:
    """The card's rates, from which later plans of this run predict. 0 steps: the whole grid, as far as the time goes. The emulated
    device is ten thousand times slower than a card: there, those steps of the quick grid that end within a second."""
    start = time.monotonic()
    verb, seconds = ("calibrate-quickly", 1.0) if setting.models else ("calibrate", min(setting.limit_seconds - AROUND_CALIBRATING, MAX_CALIBRATION_SECONDS))
    outcome = processes.run([setting.snug, "bench", verb, f"backend={setting.backend}", f"calibration={setting.calibration}",
                             f"max_steps={most_steps}", "--json"], setting.limit_seconds, THREADS,
                            {"SNUG_CALIBRATION_SECONDS": f"{max(seconds, 1.0):.1f}"})
    answer = processes.parsed(outcome)
    left_out = re.findall(r"(\d+ of \d+) steps are left out", outcome.stderr)
    return {"file": setting.calibration.name, "samples": len(answer["samples"]), "grid": answer["grid"],
            "left_out": left_out, "seconds": time.monotonic() - start}
