#!/usr/bin/env python3
"""Snug's training step next to transformers + PEFT, compiled and not, for the jobs of several shapes of bench/shares.py.

    bench/peer/shapes_race.py --snug build/release/snug --python PEER/bin/python [--rounds N] [--jobs NAME ...] [--result FILE]

Both sides start from one folder of random weights (a Llama-shaped one of the job's widths), one adapter and one file of rows, as in
race.py. In each round Snug and the peer's two variants (sdpa, bf16; compiled or not) run once, each in a fresh process, in alternating
order; the peer's slower variant runs in the first round only. A run's time is the median of its steps after one step of warm-up, in which
the peer compiles. A ratio is of one round, a row's ratio the median of its rounds. Peaks are VmHWM, loading included. The file is
written after each job, next to what it has of other jobs of the same machine. Run it on a machine that does nothing else.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import processes  # noqa: E402
from contestants import VARIANTS, Setting, loss_difference, step_seconds, train_peer, train_snug  # noqa: E402
from materials import SHAPES, make_adapter, make_model, make_rows  # noqa: E402
from results_file import machine, with_earlier_rows  # noqa: E402
from shares import JOBS, Job  # noqa: E402
from training import LOSS_TOLERANCE  # noqa: E402

PEERS = {"compiled": next(each for each in VARIANTS if str(each) == "sdpa, bf16, compiled"),
         "plain": next(each for each in VARIANTS if str(each) == "sdpa, bf16")}
SPEED_TARGETS = {"median": 2.2, "least": 1.7}
MEMORY_TARGETS = {"lora": 0.5, "qlora": 0.5, "full": 0.75}


def setting_of(arguments: argparse.Namespace, job: Job, work: pathlib.Path) -> Setting:
    setting = Setting(snug=pathlib.Path(arguments.snug).resolve(), python=arguments.python, work=work, shape=SHAPES[job.model],
                      row_tokens=job.tokens, batch=job.rows, warmup=1, steps=arguments.steps, limit_seconds=arguments.limit_seconds)
    make_model(setting.model, setting.shape, seed=1)
    make_adapter(setting.adapter, setting.shape, setting.model, seed=2)
    make_rows(setting.data, setting.shape, setting.batch * (setting.warmup + setting.steps), setting.row_tokens, seed=3)
    return setting


def run_round(setting: Setting, job: Job, peers: list[str], backwards: bool) -> dict:
    """Every contestant once; a variant of the peer that failed keeps its reason. Raises Failure where Snug fails."""
    contestants = {"snug": lambda: train_snug(setting, job.method, "none", setting.steps)}
    for name in peers:
        contestants[name] = lambda name=name: train_peer(setting, job.method, PEERS[name], setting.steps, setting.limit_seconds)
    runs = {}
    for name in reversed(list(contestants)) if backwards else contestants:
        try:
            run = contestants[name]()
            runs[name] = {"step_seconds": step_seconds(setting, run), "peak_bytes": run["peak_bytes"], "losses": run["losses"],
                          "planned_bytes": run.get("planned_bytes")}
            print(f"  {job} {name}: {runs[name]['step_seconds']:.2f} s, {runs[name]['peak_bytes'] / 2**30:.2f} GiB", file=sys.stderr, flush=True)
        except processes.Failure as failure:
            if name == "snug":
                raise
            runs[name] = {"failure": str(failure)}
            print(f"  {job} {name}: {failure}", file=sys.stderr, flush=True)
    return runs


def sound(rounds: list[dict], name: str) -> bool:
    """It ran, and computed what Snug computed."""
    runs = [(each["snug"], each[name]) for each in rounds if name in each]
    return all("failure" not in theirs and loss_difference(ours, theirs) <= LOSS_TOLERANCE for ours, theirs in runs)


def fastest_peer(rounds: list[dict]) -> str:
    """Raises Failure where none is sound."""
    names = [name for name in PEERS if sound(rounds, name)]
    if not names:
        raise processes.Failure("no variant of the peer ran and computed what Snug computed")
    return min(names, key=lambda name: rounds[0][name]["step_seconds"])


def race(setting: Setting, job: Job, rounds_wanted: int) -> dict:
    rounds = [run_round(setting, job, list(PEERS), False)]
    fastest = fastest_peer(rounds)
    rounds += [run_round(setting, job, [fastest], number % 2 == 1) for number in range(1, rounds_wanted)]
    ratios = [each[fastest]["step_seconds"] / each["snug"]["step_seconds"] for each in rounds]
    peaks = {name: statistics.median(each[name]["peak_bytes"] for each in rounds) for name in ("snug", fastest)}
    return dataclasses.asdict(job) | {
        "peer": str(PEERS[fastest]), "speed_ratio": statistics.median(ratios), "range_of_ratios": [min(ratios), max(ratios)],
        "snug_step_seconds": statistics.median(each["snug"]["step_seconds"] for each in rounds),
        "peer_step_seconds": statistics.median(each[fastest]["step_seconds"] for each in rounds),
        "snug_peak_bytes": peaks["snug"], "peer_peak_bytes": peaks[fastest], "memory_ratio": peaks["snug"] / peaks[fastest],
        "memory_target": MEMORY_TARGETS[job.method], "rounds": rounds}


def key_of(row: dict) -> tuple:
    return row["model"], row["method"], row["rows"], row["tokens"]


def write(path: pathlib.Path, measured: list[dict]) -> None:
    rows = with_earlier_rows(path, measured, key_of)
    ordered = [rows[each] for each in (key_of(dataclasses.asdict(job)) for job in JOBS) if each in rows]
    path.write_text(json.dumps({
        "what": "seconds of a training step and peak bytes, Snug next to the faster of transformers + PEFT compiled and not",
        "command": "bench/peer/shapes_race.py --snug build/release/snug --python PEER/bin/python", "machine": machine(),
        "speed_targets": SPEED_TARGETS, "median_speed_ratio": statistics.median(row["speed_ratio"] for row in ordered),
        "rows": ordered}, indent=1) + "\n")


def line(job: Job, row: dict) -> str:
    low, high = row["range_of_ratios"]
    return (f"| {job} | {row['snug_step_seconds']:.2f} | {row['peer_step_seconds']:.2f} | {row['speed_ratio']:.2f} | {low:.2f} to {high:.2f} | "
            f"{row['snug_peak_bytes'] / 2**30:.2f} | {row['peer_peak_bytes'] / 2**30:.2f} | {row['memory_ratio']:.2f} | {row['peer']} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snug", default="build/release/snug", help="the binary")
    parser.add_argument("--python", default=sys.executable, help="a Python with transformers, peft, bitsandbytes")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2, help="measured steps of a run, after one")
    parser.add_argument("--limit-seconds", type=float, default=1200.0, help="of one run")
    parser.add_argument("--jobs", nargs="*", default=[], help="names as the table has them; all where none is given")
    parser.add_argument("--result", type=pathlib.Path)
    arguments = parser.parse_args()
    jobs = [job for job in JOBS if not arguments.jobs or str(job) in arguments.jobs]
    if len(jobs) < len(arguments.jobs):
        parser.error("--jobs: known are " + "; ".join(map(str, JOBS)))
    print("| job | Snug s | peer s | ratio | range | Snug GiB | peer GiB | ratio | peer |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    rows = []
    for job in jobs:
        with tempfile.TemporaryDirectory(prefix="snug-shapes-") as work:
            try:
                rows.append(race(setting_of(arguments, job, pathlib.Path(work)), job, arguments.rounds))
            except processes.Failure as failure:
                print(f"| {job} | {failure} |", flush=True)
                continue
        print(line(job, rows[-1]), flush=True)
        if arguments.result:
            write(arguments.result, rows)


if __name__ == "__main__":
    main()
