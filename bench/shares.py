#!/usr/bin/env python3
"""What share of the rate that oneDNN alone reaches on a job's products a training step makes of them, for jobs of several shapes.

    bench/shares.py SNUG [--rounds N] [--jobs NAME ...] [--isa v3|v4] [--result bench/results/shares.json]

A share is a step's model FLOPs (bench/peer/model_flops.py: linears, head, adapters, attention; nothing that is recomputed) per second over
oneDNN's rate on the products of that step (`snug bench products`), of linears and head, and of all products, the thin ones of adapters
among them. Shares mean something only where the machine does not change meanwhile: oneDNN's rate is measured before and after each step's
measurement (`snug bench step`), and a round in which it moved by more than 10 % is made again. Where it never stands still, the round
that moved least counts, and the result says so. With --isa both sides may use AVX2 (v3) or AVX-512 (v4) alone, and multiply in fp32,
as on a processor that has no more; such rows go to a file of their own. Run it on a machine that does nothing else.
Exit code 0, whatever was measured: speed fails nothing.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "bench" / "peer"))

import processes  # noqa: E402
from materials import SHAPES  # noqa: E402
from model_flops import training_flops  # noqa: E402
from results_file import machine, with_earlier_rows  # noqa: E402

LIMIT_SECONDS = 900.0
MOST_MOVEMENT = 0.10
TRIES = 3  # of a round
LIBRARY_ISA = {"v3": "AVX2", "v4": "AVX512_CORE"}
BARS = {"lora": 0.75, "qlora": 0.75, "full": 0.70}

@dataclasses.dataclass(frozen=True)
class Job:
    """A step: `rows` documents of `tokens`, one row each."""

    model: str
    method: str
    rows: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.model} {self.method} {self.rows} x {self.tokens}"

    def words(self, method: str, compute_dtype: str) -> list[str]:
        return [f"model={self.model}", f"method={method}", f"max_length={self.tokens}", "max_segments=1", "recompute=none",
                f"per_device_train_batch_size={self.rows}", f"compute_dtype={compute_dtype}"]

    def flops(self) -> float:
        return training_flops(SHAPES[self.model], self.method, self.tokens) * self.rows * self.tokens


JOBS = [Job("smollm2-135m", "lora", 2, 1024), Job("qwen3-0.6b", "lora", 1, 1024), Job("qwen3-0.6b", "qlora", 1, 1024),
        Job("llama-3.2-1b", "lora", 1, 512), Job("llama-3.2-1b", "lora", 4, 512), Job("tinyllama-1.1b", "lora", 1, 2048),
        Job("qwen2.5-0.5b", "full", 2, 512)]


class Bench:
    """`snug bench`, each measurement in a process of its own."""

    def __init__(self, snug: str, isa: str = ""):
        self.snug = pathlib.Path(snug).resolve()
        self.isa = isa
        self.compute_dtype = "fp32" if isa else "bf16"

    def measure(self, verb: str, words: list[str]) -> dict:
        environment = {"SNUG_ISA": self.isa, "ONEDNN_MAX_CPU_ISA": LIBRARY_ISA[self.isa]} if self.isa else {}
        return processes.run_json([self.snug, "bench", verb, *words, "--json"], LIMIT_SECONDS, os.cpu_count(), environment)

    def step_seconds(self, job: Job) -> float:
        return self.measure("step", ["init=random", *job.words(job.method, self.compute_dtype)])["step_seconds"]

    def products(self, job: Job) -> dict:
        """QLoRA multiplies the shapes of LoRA."""
        return self.measure("products", job.words("full" if job.method == "full" else "lora", self.compute_dtype))


def one_round(bench: Bench, job: Job) -> dict:
    """The quietest of up to TRIES, the first that is quiet."""
    rounds = []
    before = bench.products(job)
    for _ in range(TRIES):
        seconds = bench.step_seconds(job)
        after = bench.products(job)
        rates = {group: [of[group]["flops_per_second"] for of in (before, after)] for group in ("wide", "all")}
        movement = max(rates["wide"]) / min(rates["wide"]) - 1
        rounds.append({"step_seconds": seconds, "movement": movement, "libraries": after["libraries"],
                       "onednn_flops_per_second": {group: statistics.mean(pair) for group, pair in rates.items()}})
        if movement <= MOST_MOVEMENT:
            break
        before = after
    return min(rounds, key=lambda each: each["movement"]) | {"tries": len(rounds)}


def summary(job: Job, rounds: list[dict]) -> dict:
    flops = job.flops()
    shares = {group: [flops / each["step_seconds"] / each["onednn_flops_per_second"][group] for each in rounds]
              for group in ("wide", "all")}
    return {"model": job.model, "method": job.method, "rows": job.rows, "tokens": job.tokens, "flops": flops,
            "step_seconds": statistics.median(each["step_seconds"] for each in rounds),
            "tokens_per_second": job.rows * job.tokens / statistics.median(each["step_seconds"] for each in rounds),
            "share_of_linears_and_head": statistics.median(shares["wide"]), "share_of_all": statistics.median(shares["all"]),
            "range_of_shares": [min(shares["wide"]), max(shares["wide"])], "bar": BARS[job.method],
            "quiet_rounds": sum(each["movement"] <= MOST_MOVEMENT for each in rounds), "rounds": rounds}


def line(job: Job, row: dict) -> str:
    low, high = row["range_of_shares"]
    return (f"| {job} | {row['step_seconds']:.3f} | {row['tokens_per_second']:.0f} | {row['share_of_linears_and_head']:.0%} | {low:.0%} to {high:.0%} | "
            f"{row['share_of_all']:.0%} | {row['bar']:.0%} | {row['quiet_rounds']} of {len(row['rounds'])} |")


def write(path: pathlib.Path, measured: list[dict], isa: str) -> None:
    """Next to what the file has of other jobs on the same machine and instruction set, each row with the commit and the date of its measurement."""
    rows = with_earlier_rows(path, [row | ({"isa": isa} if isa else {}) for row in measured], key_of)
    order = [(job.model, job.method, job.rows, job.tokens, each) for each in ("", *LIBRARY_ISA) for job in JOBS]
    path.write_text(json.dumps({
        "what": "model FLOPs of a training step per second over the rate of oneDNN alone on its products; "
                f"{'fp32' if isa else 'bf16'}, nothing recomputed",
        "command": "bench/shares.py build/release/snug" + (f" --isa {' and '.join(LIBRARY_ISA)}" if isa else ""), 
        "machine": machine(), "rows": [rows[key] for key in order if key in rows]}, indent=1) + "\n")


def key_of(row: dict) -> tuple:
    return row["model"], row["method"], row["rows"], row["tokens"], row.get("isa", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snug")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", nargs="*", default=[], help="names as the table has them; all where none is given")
    parser.add_argument("--isa", default="", choices=("", *LIBRARY_ISA))
    parser.add_argument("--result", type=pathlib.Path)
    wanted = parser.parse_args()
    jobs = [job for job in JOBS if not wanted.jobs or str(job) in wanted.jobs]
    if len(jobs) < len(wanted.jobs):
        parser.error("--jobs: known are " + "; ".join(map(str, JOBS)))
    bench, rows = Bench(wanted.snug, wanted.isa), []
    print("| job | s a step | tokens/s | of oneDNN, linears and head | range | of oneDNN, all | bar | quiet rounds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for job in jobs:
        rows.append(summary(job, [one_round(bench, job) for _ in range(wanted.rounds)]))
        print(line(job, rows[-1]), flush=True)
    if wanted.result:
        write(wanted.result, rows, wanted.isa)


if __name__ == "__main__":
    main()
