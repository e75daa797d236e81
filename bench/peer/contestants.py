"""The two sides of a training job: Snug's binary and transformers + PEFT, each run in a fresh process."""

import dataclasses
import itertools
import json
import pathlib
import shutil
import statistics

import processes

HERE = pathlib.Path(__file__).resolve().parent
LEARNING_RATES = {"lora": 1e-4, "qlora": 1e-4, "full": 1e-5}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is the same for all jobs of a race."""

    snug: pathlib.Path
    python: str  # with transformers and PEFT; empty: no peer
    work: pathlib.Path
    shape: dict
    row_tokens: int = 1024
    batch: int = 2
    warmup: int = 2
    steps: int = 8
    threads: int = 2
    limit_seconds: float = 1800.0

    @property
    def model(self) -> pathlib.Path:
        return self.work / "model"

    @property
    def adapter(self) -> pathlib.Path:
        return self.work / "adapter"

    @property
    def data(self) -> pathlib.Path:
        return self.work / "rows.jsonl"


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to run the peer."""

    attention: str
    compile: bool
    dtype: str
    checkpointing: bool

    def __str__(self) -> str:
        parts = [self.attention, self.dtype]
        parts += ["compiled"] if self.compile else []
        parts += ["checkpointing"] if self.checkpointing else []
        return ", ".join(parts)


VARIANTS = [Variant(*choice) for choice in
            itertools.product(("sdpa", "eager"), (False, True), ("bf16", "fp32"), (False, True))]


def snug_words(setting: Setting, method: str) -> list[str]:
    """What a job is, for any verb that takes a recipe."""
    return [f"model={setting.model}", f"method={method}", f"max_length={setting.row_tokens}", "max_segments=1",
            f"per_device_train_batch_size={setting.batch}", "lora_dropout=0", f"threads={setting.threads}"]


def train_snug(setting: Setting, method: str, recompute: str, steps: int) -> dict:
    """Losses, gradient norms, seconds of each step, planned and resident bytes. Raises Failure."""
    folder = setting.work / f"snug-{method}-{recompute}"
    shutil.rmtree(folder, ignore_errors=True)
    words = snug_words(setting, method) + [
        f"data={setting.data}", "shuffle=false", f"recompute={recompute}", f"output_dir={folder}",
        f"max_steps={setting.warmup + steps}", f"learning_rate={LEARNING_RATES[method]}", "lr_scheduler_type=constant",
        "warmup_steps=0", "warmup_ratio=0", "max_grad_norm=1", "weight_decay=0", "optim=adamw"]
    if method != "full":
        words.append(f"adapter={setting.adapter}")
    outcome = processes.run([setting.snug, "train", *words], setting.limit_seconds, setting.threads)
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    metrics = [line for line in metrics if "step_seconds" in line]
    measured = json.loads((folder / "measured.json").read_text())
    planned = json.loads((folder / "plan.json").read_text())
    shutil.rmtree(folder, ignore_errors=True)
    return {"losses": [line["loss"] for line in metrics], "grad_norms": [line["grad_norm"] for line in metrics],
            "step_seconds": [line["step_seconds"] for line in metrics],
            "trained_tokens": metrics[0]["trained_tokens"],
            "planned_bytes": planned["resident"]["peak_bytes"],
            "peak_bytes": max(measured["resident"]["peak_bytes"], outcome.peak_bytes)}


def train_peer(setting: Setting, method: str, variant: Variant, steps: int, limit_seconds: float) -> dict:
    """The same of the peer. Raises Failure."""
    job = dict(method=method, model=str(setting.model), adapter=str(setting.adapter), data=str(setting.data),
               batch=setting.batch, warmup=setting.warmup, steps=steps, threads=setting.threads,
               learning_rate=LEARNING_RATES[method], **dataclasses.asdict(variant))
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(setting.work / "inductor")}
    return processes.run_json([setting.python, HERE / "peer_train.py", json.dumps(job)], limit_seconds,
                              setting.threads, environment)


def step_seconds(setting: Setting, run: dict) -> float:
    """The median step after warm-up."""
    return statistics.median(run["step_seconds"][setting.warmup:])


def tokens_per_second(setting: Setting, run: dict) -> float:
    return setting.batch * setting.row_tokens / step_seconds(setting, run)


def loss_difference(ours: dict, theirs: dict) -> float:
    """The largest relative difference of two runs' losses over the steps that both took."""
    pairs = list(zip(ours["losses"], theirs["losses"]))
    return max(abs(a - b) / abs(b) for a, b in pairs)


def product_rates(setting: Setting, method: str) -> dict:
    """What oneDNN alone reaches on the job's products; QLoRA multiplies the shapes of LoRA."""
    words = snug_words(setting, "lora" if method == "qlora" else method)
    return processes.run_json([setting.snug, "bench", "products", *words, "--json"], setting.limit_seconds,
                              setting.threads)


def memory_bandwidth(setting: Setting, budget: str = "") -> dict:
    words = [f"threads={setting.threads}"] + ([f"device_memory={budget}"] if budget else [])
    return processes.run_json([setting.snug, "bench", "memory", *words, "--json"], setting.limit_seconds,
                              setting.threads)
