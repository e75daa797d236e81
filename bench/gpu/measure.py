#!/usr/bin/env python3
"""Training steps and decoding on a card: planned beside measured, and transformers + PEFT where a Python has them.

Writes gpu.json and gpu.md after every measurement, so that a run that is cut off is of use. Each has a time limit and
says one line. --dry-run goes the same ways on the processor, with a tiny shape, and checks what comes out.
"""

import argparse
import dataclasses
import datetime
import json
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import card  # noqa: E402
import jobs  # noqa: E402
import results_table  # noqa: E402
import stages  # noqa: E402
from processes import Failure  # noqa: E402
from provenance import commit  # noqa: E402


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snug", default="build/gpu/snug", help="the binary, built with CUDA")
    parser.add_argument("--python", default="", help="a Python with torch, transformers, peft; left out without")
    parser.add_argument("--only", default="", help="words that a measurement's name must have one of, by commas")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds of each measurement")
    parser.add_argument("--out", default="bench/results", help="folder of gpu.json and gpu.md")
    parser.add_argument("--dry-run", action="store_true", help="on the processor, a tiny shape, two steps")
    return parser.parse_args()


def write(out: pathlib.Path, result: dict) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu.json").write_text(json.dumps(result, indent=2) + "\n")
    (out / "gpu.md").write_text(results_table.markdown(result))


def measurements(setting: stages.Setting, dry: bool) -> list[tuple[str, str, object]]:
    """By name: the list of results it goes to, and what to run."""
    training = jobs.DRY_TRAINING if dry else jobs.TRAINING
    decoding = jobs.DRY_DECODING if dry else jobs.DECODING
    found = [(job.name, "training", lambda job=job: stages.train(setting, job)) for job in training]
    found += [(f"{model} decoding {stored}", "decoding", lambda model=model, stored=stored: stages.decode(
        setting, model, stored)) for model, stored in decoding]
    found += [(f"{job.name} profile", "profile", lambda job=job: stages.profile(setting, job)) for job in training]
    if setting.python:
        found += [(f"{job.name} peer", "peer", lambda job=job: {"model": job.model, "method": job.method} |
                   stages.peer(setting, job)) for job in training]
    return found


def run(arguments: argparse.Namespace, setting: stages.Setting, out: pathlib.Path) -> dict:
    result = {**card.facts(), "commit": commit(), "date": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%MZ"), "backend": setting.backend, "dry_run": arguments.dry_run,
              "warmup": setting.warmup, "steps": setting.steps, "training": [], "decoding": [], "profile": [], "peer": [], "failures": {}}
    words = [word for word in arguments.only.split(",") if word]
    for name, kind, measure in measurements(setting, arguments.dry_run):
        if words and not any(word in name for word in words):
            continue
        try:
            result[kind].append(measure())
            print(f"{name}: {results_table.line(kind, result[kind][-1])}", flush=True)
        except Failure as failure:
            result["failures"][name] = str(failure)
            print(f"{name}: FAILED, {failure}", flush=True)
        write(out, result)
    return result


def check_dry(result: dict) -> None:
    """What a dry run must have made of every stage."""
    assert result["failures"] == {}, result["failures"]
    assert len(result["training"]) == len(result["profile"]) == len(jobs.DRY_TRAINING) and len(result["decoding"]) == len(jobs.DRY_DECODING)
    for row in result["training"]:
        assert row["steps"] == result["steps"], row
        assert row["step_seconds"] > 0 and row["planned_peak_bytes"] > 0 and row["tokens_per_second"] > 0, row
    for row in result["profile"]:
        seconds = sum(line["seconds"] for line in row["operations"])
        assert 0.5 * row["step_seconds"] < seconds < 2 * row["step_seconds"], (seconds, row["step_seconds"])
    for row in result["decoding"]:
        assert row["tokens_per_second"] > 0 and row["new_tokens"] == jobs.NEW_TOKENS, row
    compile((HERE / "peer_train_cuda.py").read_text(), "peer_train_cuda.py", "exec")
    text = results_table.markdown(result)
    for part in ("| smollm2-135m | qlora | layer |", "| smollm2-135m | nf4 |", "no figure of a card",
                 "Where a step of smollm2-135m lora goes", "| everything else |"):
        assert part in text, (part, text)


def check_jobs(setting: stages.Setting) -> None:
    """Every real job has a plan that fits an H100."""
    for job in jobs.TRAINING:
        recompute, planned = stages.first_that_fits(dataclasses.replace(setting, backend="cuda"), job, ["device=h100"])
        assert planned["tokens_per_step"] == job.tokens == 16384, (job, planned["tokens_per_step"])
        assert planned["card"]["name"] == "h100" and planned["step_basis"] == "data sheet", planned["card"]
        print(f"{job.name}: recompute={recompute} fits an h100", flush=True)


def main() -> int:
    arguments = parse_arguments()
    work = pathlib.Path(tempfile.mkdtemp(prefix="snug-gpu-"))
    dry = arguments.dry_run
    if dry:
        jobs.PROMPT_TOKENS, jobs.NEW_TOKENS = stages.PROMPT_TOKENS, stages.NEW_TOKENS = 8, 4
    setting = stages.Setting(snug=pathlib.Path(arguments.snug).resolve(), python=arguments.python, work=work,
                             backend="cpu" if dry else "cuda", warmup=1 if dry else jobs.WARMUP,
                             steps=2 if dry else jobs.STEPS, limit_seconds=arguments.limit)
    try:
        result = run(arguments, setting, work / "results" if dry else pathlib.Path(arguments.out))
        if dry:
            check_dry(result)
            check_jobs(setting)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
