#!/usr/bin/env python3
"""Snug against transformers + PEFT on this machine, the same jobs in turn; see README.md next to this file.

Writes race.json and race.md. Needs nothing but Python's own library itself; the peer runs in the Python that --python
names. Run it on a machine that does nothing else.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import decoding
import processes
import report
import self_test
import training
from contestants import HERE, Setting
from materials import SHAPES, make_adapter, make_model, make_rows
from provenance import commit
from results_file import processor

METHODS = ("lora", "qlora", "full")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snug", default="build/release/snug", help="the binary")
    parser.add_argument("--python", default=sys.executable, help="a Python with transformers, peft, bitsandbytes")
    parser.add_argument("--llama-python", default="", help="a Python with llama-cpp-python and gguf; left out without")
    parser.add_argument("--no-peer", action="store_true", help="Snug alone")
    parser.add_argument("--jobs", default="lora,qlora,full,in_turn,decode",
                        help="which of these, by commas; in_turn: Snug's LoRA and QLoRA alone")
    parser.add_argument("--pairs", type=int, default=5, help="rounds of the winners, of generation at most 3; 0: only the peer's trials")
    parser.add_argument("--steps", type=int, default=8, help="measured steps a run, after two")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--trial-seconds", type=float, default=600.0, help="limit of a variant's first run")
    parser.add_argument("--trials", default="",
                        help="a file that keeps the peer's trials; one that is in it is not run again")
    parser.add_argument("--skip", default="",
                        help="words of the peer's variants to leave out, by commas: compiled,fp32,eager")
    parser.add_argument("--out", default="bench/results", help="folder of race.json and race.md")
    parser.add_argument("--work", default="", help="folder for models and runs; kept; by default a temporary one")
    parser.add_argument("--quick", action="store_true", help="a tiny shape and one round, to see that everything runs")
    parser.add_argument("--self-test", action="store_true", help="with --quick: check what comes out")
    return parser.parse_args()


def machine() -> dict:
    limits = {name: os.environ[name] for name in ("ONEDNN_MAX_CPU_ISA", "SNUG_ISA") if name in os.environ}
    if preloaded := os.environ.get("LD_PRELOAD"):
        limits["LD_PRELOAD"] = pathlib.Path(preloaded).name
    return {"cpu": processor(), "environment": limits, "cores": os.cpu_count(), "kernel": platform.release(), "load_before": round(os.getloadavg()[0], 2),
            "memory_gib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30}


def versions(arguments: argparse.Namespace) -> dict:
    found = {"snug": subprocess.run([arguments.snug, "--version"], capture_output=True, text=True).stdout.split()[-1]}
    for python in filter(None, ("" if arguments.no_peer else arguments.python, arguments.llama_python)):
        answer = processes.run_json([python, HERE / "peer_versions.py"], 60, 1)
        answer.pop("peak_bytes")
        found |= {name: version for name, version in answer.items() if version}
    return found


def setting_of(arguments: argparse.Namespace, work: pathlib.Path) -> Setting:
    common = dict(snug=pathlib.Path(arguments.snug).resolve(), python="" if arguments.no_peer else arguments.python,
                  work=work, threads=arguments.threads)
    if arguments.quick:
        return Setting(shape=SHAPES["quick"], row_tokens=64, warmup=1, steps=2, **common)
    return Setting(shape=SHAPES["smollm2-135m"], steps=arguments.steps, **common)


def trial_options(arguments: argparse.Namespace, setting: Setting) -> training.TrialOptions:
    return training.TrialOptions(steps=min(3, setting.steps), limit_seconds=arguments.trial_seconds,
                                 skip=[word for word in arguments.skip.split(",") if word],
                                 file=pathlib.Path(arguments.trials) if arguments.trials else None)


def run(arguments: argparse.Namespace, work: pathlib.Path) -> dict:
    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    setting = setting_of(arguments, work)
    pairs = 1 if arguments.quick else arguments.pairs
    jobs = arguments.jobs.split(",")
    shape = "quick" if arguments.quick else "smollm2-135m"
    result = {"command": "bench/peer/race.py " + " ".join(sys.argv[1:]), "machine": machine(), "commit": commit(),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
              "versions": versions(arguments), "jobs": [],
              "setting": {"shape": shape, "row_tokens": setting.row_tokens, "batch": setting.batch, "pairs": pairs,
                          "warmup": setting.warmup, "steps": setting.steps, "threads": setting.threads}}
    say("making the model, the adapter and the rows")
    make_model(setting.model, setting.shape, seed=1)
    make_adapter(setting.adapter, setting.shape, setting.model, seed=2)
    make_rows(setting.data, setting.shape, setting.batch * (setting.warmup + setting.steps), setting.row_tokens, seed=3)
    for method in METHODS:
        if method in jobs:
            say(method)
            result["jobs"].append(training.race(setting, method, pairs, trial_options(arguments, setting), say))
            write(arguments, result)
    if "in_turn" in jobs:
        say("lora and qlora in turn")
        result["in_turn"] = training.qlora_next_to_lora(setting, max(1, pairs), say)
        write(arguments, result)
    if "decode" in jobs:
        say("decode")
        name = "quick" if arguments.quick else "llama-3.2-1b"
        prompt, new_tokens = (16, 8) if arguments.quick else (128, 256)
        result["decode"] = {"shape": name} | decoding.race(
            setting, SHAPES[name], arguments.llama_python, min(3, max(1, pairs)), prompt, new_tokens, say,
            budget="256MiB" if arguments.quick else "")
    write(arguments, result)
    return result


def write(arguments: argparse.Namespace, result: dict) -> None:
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "race.json").write_text(json.dumps(result, indent=2) + "\n")
    (out / "race.md").write_text(report.markdown(result))


def main() -> int:
    arguments = parse_arguments()
    work = pathlib.Path(arguments.work or tempfile.mkdtemp(prefix="snug-race-")).resolve()
    work.mkdir(parents=True, exist_ok=True)
    if arguments.self_test:
        arguments.quick = arguments.no_peer = True
        arguments.out = str(work / "results")
    try:
        result = run(arguments, work)
        if arguments.self_test:
            self_test.check(result, pathlib.Path(arguments.out))
    finally:
        if not arguments.work:
            shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
