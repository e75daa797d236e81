#!/usr/bin/env python3
"""Training steps and decoding on a card: planned next to measured, and transformers + PEFT where a Python has them.

Adds to gpu.json and gpu.md after every measurement, so that a run that is cut off is of use and several make one table. Each
has a time limit and says one line; what is worth most goes first. --dry-run goes the same ways on the processor, with a
tiny shape, and checks what comes out. --merge only adds other runs' gpu.json to the one in --out.
"""

import argparse
import dataclasses
import datetime
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import card  # noqa: E402
import gpu_self_test  # noqa: E402
import jobs  # noqa: E402
import longest  # noqa: E402
import peer_stage  # noqa: E402
import results  # noqa: E402
import results_table  # noqa: E402
import rewarded  # noqa: E402
import stages  # noqa: E402
from peer_stage import Peer  # noqa: E402
from processes import Failure  # noqa: E402
from provenance import commit  # noqa: E402

MIN_SECONDS = 20.0  # no measurement is started with less


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snug", default="build/gpu/snug", help="the binary, built with CUDA")
    parser.add_argument("--python", default="", help="a Python with torch, transformers, peft; left out without")
    parser.add_argument("--parts", default=",".join(results.KINDS), help="of these, by commas")
    parser.add_argument("--only", default="", help="words that a measurement's name must have one of, by commas")
    parser.add_argument("--exactly", default="", help="names of measurements, by commas; a profile goes by its job's")
    parser.add_argument("--missing", action="store_true", help="only what gpu.json lacks of this card at this commit")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds of each measurement")
    parser.add_argument("--seconds", type=float, default=1e9, help="of all; what they do not suffice for is left out, and named")
    parser.add_argument("--out", default="bench/results", help="folder of gpu.json, gpu.md and the card's calibration")
    parser.add_argument("--merge", nargs="+", default=[], metavar="FILE", help="gpu.json of other runs")
    parser.add_argument("--tiny", action="store_true", help="the real measurements with models of some thousand weights, a made-up peer")
    parser.add_argument("--dry-run", action="store_true", help="on the processor, a tiny shape, two steps")
    return parser.parse_args()


def write(out: pathlib.Path, result: dict) -> None:
    results.add_peers(result)
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu.json").write_text(results.to_json(result))
    (out / "gpu.md").write_text(results_table.markdown(result))


@dataclasses.dataclass(frozen=True)
class Measurement:
    name: str
    kind: str  # of results.KINDS
    measure: object  # of a Setting: a row
    limits: int = 1  # how many times the limit of a measurement it may take


def training(setting_jobs) -> list[Measurement]:
    return [Measurement(job.name, "training", lambda setting, job=job: stages.train(setting, job)) for job in setting_jobs]


def profiles(setting_jobs) -> list[Measurement]:
    return [Measurement(f"{job.name} profile", "profile", lambda setting, job=job: stages.profile(setting, job)) for job in setting_jobs]


def decoding(decodings) -> list[Measurement]:
    return [Measurement(each.name, "decoding", lambda setting, each=each: stages.decode(setting, each)) for each in decodings]


def rewards() -> list[Measurement]:
    return [Measurement(each.name, "rewarded", lambda setting, each=each: rewarded.train(setting, each)) for each in jobs.REWARDED]


def peers(setting_jobs, result: dict, peer_of) -> list[Measurement]:
    """Of each job once: quick and lean rows share their peer."""
    def known(setting: stages.Setting) -> list[dict]:
        return [trial for row in result["peer"] if row["device"] == setting.device for trial in row["trials"]]

    by_name = {}
    for job in setting_jobs:
        by_name.setdefault(results.peer_name(job.model, job.method, job.row_tokens), job)
    return [Measurement(name, "peer", lambda setting, job=job: peer_stage.train(peer_of(setting), job, known(setting)))
            for name, job in by_name.items()]


def peer_decoding(decodings, peer_of) -> list[Measurement]:
    return [Measurement(f"{each.name} peer", "peer_decoding",
                        lambda setting, each=each: peer_stage.decode(peer_of(setting), each.model, each.stored)) for each in decodings]


def real_measurements(result: dict, peer_of) -> list[Measurement]:
    return [*training(jobs.FIRST), *decoding(jobs.DECODING), *profiles(jobs.named(*jobs.PROFILED)), *peers(jobs.FIRST, result, peer_of),
            *peer_decoding(jobs.DECODING, peer_of), *training(jobs.THEN), *decoding(jobs.SIDE_BY_SIDE), *rewards(),
            Measurement("calibration", "calibration", lambda setting: stages.calibrate(setting, 0), limits=2),
            Measurement(jobs.LONGEST.name, "longest",
                        lambda setting: longest.longest(setting, longest.job_of(setting), jobs.LONGEST_GRAIN), limits=2),
            *peers(jobs.THEN, result, peer_of)]


def dry_measurements(result: dict) -> list[Measurement]:
    return [*training(jobs.DRY_TRAINING), *decoding(jobs.DRY_DECODING),
            Measurement("calibration", "calibration", lambda setting: stages.calibrate(setting, 4)),
            *profiles(jobs.DRY_PROFILED), *peers(jobs.DRY_TRAINING, result, gpu_self_test.made_up_peer),
            *peer_decoding(jobs.DRY_DECODING, gpu_self_test.made_up_peer),
            Measurement("longest", "longest", lambda setting: longest.longest(setting, longest.dry_job(setting), 64))]


def wanted(arguments: argparse.Namespace, setting: stages.Setting, result: dict, stamp: dict) -> list[Measurement]:
    """Those of the parts and words asked for that, with --missing, were not made yet. What cannot be made here is named."""
    exactly = [name for name in arguments.exactly.split(",") if name]
    parts, words = arguments.parts.split(","), [word for word in arguments.only.split(",") if word]
    if unknown := set(parts) - set(results.KINDS):
        raise SystemExit(f"measure.py: --parts {','.join(sorted(unknown))}: none of {', '.join(results.KINDS)}")
    all_of_them = (dry_measurements(result) if arguments.dry_run else
                   real_measurements(result, gpu_self_test.made_up_peer if arguments.tiny else Peer))
    if unknown := set(exactly) - {each.name.removesuffix(" profile") for each in all_of_them}:
        raise SystemExit(f"measure.py: --exactly {','.join(sorted(unknown))}: no measurement is called so")
    found = []
    for each in all_of_them:
        row = results.find(result[each.kind], each.name, setting.device)
        there = row is not None and row["commit"] == stamp["commit"]
        if each.kind not in parts or (words and not any(word in each.name for word in words)):
            continue
        if exactly and each.name.removesuffix(" profile") not in exactly:
            continue
        # Jobs of both lists may share a peer.
        if not (arguments.missing and there) and all((each.kind, each.name) != (other.kind, other.name) for other in found):
            found.append(each)
    if not setting.python and (left_out := [each.name for each in found if each.kind.startswith("peer")]):
        print(f"left out, --python names no Python with the peer: {', '.join(left_out)}", flush=True)
        found = [each for each in found if each.name not in left_out]
    return found


def run(arguments: argparse.Namespace, setting: stages.Setting, result: dict) -> bool:
    """Whether nothing failed."""
    good, end = True, time.monotonic() + arguments.seconds
    stamp = {**card.facts(), "commit": commit()}
    found = wanted(arguments, setting, result, stamp)
    print(f"{len(found)} measurements on {setting.device}", flush=True)
    for each in found:
        left = end - time.monotonic()
        if left < MIN_SECONDS:
            print(f"no time left for {', '.join(other.name for other in found[found.index(each):])}", flush=True)
            break
        facts = {"name": each.name, **stamp, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        try:
            row = facts | each.measure(dataclasses.replace(setting, limit_seconds=min(each.limits * setting.limit_seconds, left)))
            results.put(result, each.kind, row)
            print(f"{each.name}: {results_table.line(each.kind, row)}", flush=True)
        except Failure as failure:
            good = False
            results.put(result, "failures", facts | {"reason": str(failure)})
            print(f"{each.name}: FAILED, {failure}", flush=True)
        write(setting.out, result)
    return good


def main() -> int:
    arguments = parse_arguments()
    out, dry = pathlib.Path(arguments.out), arguments.dry_run
    if arguments.merge:
        result = results.load(out / "gpu.json")
        for path in arguments.merge:
            results.merge(result, results.load(pathlib.Path(path)))
        write(out, result)
        return 0
    work = pathlib.Path(tempfile.mkdtemp(prefix="snug-gpu-"))
    if dry:
        jobs.PROMPT_TOKENS, jobs.NEW_TOKENS = 8, 4
        out = work / "results"
    models = jobs.make_tiny(work) if arguments.tiny else {}
    setting = stages.Setting(snug=pathlib.Path(arguments.snug).resolve(), python=sys.executable if dry else arguments.python, work=work,
                             out=out, backend="cpu" if dry else "cuda", device=card.facts()["device"], warmup=1 if dry else jobs.WARMUP,
                             steps=2 if dry else jobs.STEPS, limit_seconds=arguments.limit, models=models)
    try:
        result = results.load(out / "gpu.json")
        good = run(arguments, setting, result)
        if dry:
            gpu_self_test.check(setting, result)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
