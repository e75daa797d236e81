"""Checks that need no peer: what a quick race of Snug alone gave, and what is made of a peer's answers."""

import copy
import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import decode_shares
import model_flops
import processes
import report
import shapes_race
import training
from contestants import VARIANTS
from materials import SHAPES


def require(condition: bool, what: object) -> None:
    if not condition:
        raise SystemExit(f"self-test: {what}")


def check_formula() -> None:
    """The figures that the bars were stated in: about 910 and 676 tokens per second at 60 % of 1.05 TFLOP/s."""
    shape = SHAPES["smollm2-135m"]
    require(model_flops.linear_weights(shape) + model_flops.head_weights(shape) == 134_479_872, "weights")
    require(model_flops.adapter_weights(shape) == 4_884_480, "adapter weights")
    for method, expected in (("lora", 910), ("qlora", 910), ("full", 676)):
        rate = 0.6 * 1.05e12 / model_flops.training_flops(shape, method, 1024)
        require(abs(rate / expected - 1) < 0.003, f"{method}: {rate:.1f} tokens/s, expected about {expected}")


def check_job(job: dict) -> None:
    """Every step has a loss, the modes compute the same, and all that is reported is a positive number."""
    name = job["method"]
    for contestant, summary in job["contestants"].items():
        for key in ("tokens_per_second", "peak_bytes", "model_flops_per_second"):
            require(math.isfinite(summary[key]) and summary[key] > 0, (name, contestant, key, summary[key]))
        require(summary["peak_bytes"] < 4 << 30, (name, contestant, summary["peak_bytes"]))
        require(len(job["losses"][contestant]) >= 3, (name, contestant, job["losses"]))
    require(job["losses_agree"], (name, job["loss_difference"]))
    require(min(job["grad_norms"]["snug none"]) > 1e-4, (name, job["grad_norms"]))
    parts = sum(job["profile"]["groups"].values())
    require(job["profile"]["groups"]["head and loss"] > 0 and parts > 0, (name, job["profile"]))
    expected = 2 * (64 - 1)
    require(job["trained_tokens_per_step"] == expected, (name, job["trained_tokens_per_step"], expected))


def check_made_up_peer(job: dict) -> None:
    """Winners are those that computed the same; failures are kept; the table names both."""
    trials = [{"variant": str(variant), "index": index, "failure": "exit code 1: no compiler"}
              for index, variant in enumerate(VARIANTS)]
    require(training.winners(trials) == {}, "winners among failures")
    for index, seconds, peak, difference in ((0, 2.0, 5 << 30, 0.001), (1, 3.0, 2 << 30, 0.001), (2, 1.0, 1 << 30, 0.5)):
        trials[index] = {"variant": str(VARIANTS[index]), "index": index, "step_seconds": seconds, "peak_bytes": peak,
                         "loss_difference": difference}
    peers = training.winners(trials)
    require(peers == {"fastest": VARIANTS[0], "leanest": VARIANTS[1]}, peers)
    job = copy.deepcopy(job)
    job |= {"trials": trials, "peer_variants": {name: str(variant) for name, variant in peers.items()},
            "speed_ratio": {"snug none": 2.5}, "memory_ratio": {"snug none": 0.25}}
    for name in peers:
        job["contestants"][f"peer {name}"] = job["contestants"]["snug none"]
        job["loss_difference"][f"peer {name}"] = 0.001
    section = "\n".join(report.training_section({"jobs": [job], "setting": dict(
        shape="quick", batch=2, row_tokens=64, pairs=1, steps=2, warmup=1, threads=2)}))
    for part in (f"transformers + PEFT, leanest: {VARIANTS[1]}", "| 2.50 | 0.25 |", "no compiler", "0.10 %"):
        require(part in section, f"no '{part}' in:\n{section}")


def check_fastest_peer() -> None:
    """One that computed something else, or failed, is not the fastest, however fast."""
    ours = {"step_seconds": 1.0, "losses": [2.0, 1.0]}
    theirs = {"step_seconds": 3.0, "losses": [2.0, 1.0]}
    require(shapes_race.fastest_peer([{"snug": ours, "compiled": theirs | {"step_seconds": 2.0}, "plain": theirs}]) == "compiled", "the faster")
    wrong = {"step_seconds": 0.5, "losses": [2.0, 1.5]}
    require(shapes_race.fastest_peer([{"snug": ours, "compiled": wrong, "plain": theirs}]) == "plain", "the one that computed the same")
    require(shapes_race.fastest_peer([{"snug": ours, "compiled": {"failure": "killed"}, "plain": theirs}]) == "plain", "the one that ran")
    try:
        shapes_race.fastest_peer([{"snug": ours, "compiled": wrong, "plain": {"failure": "killed"}}])
    except processes.Failure:
        return
    require(False, "a winner among failures")


def check_limits_of_decoding() -> None:
    """Llama 3.2 1B has 1.236e9 weights, in bf16 twice as many bytes, and caches 32 KiB a token; of many sequences the products take longer."""
    limits = {"bytes_per_second": 1e10, "flops_per_second": 1e11}
    one, many = (decode_shares.token_seconds("llama-3.2-1b", "bf16", sequences, limits) for sequences in (1, 16))
    cached = 32768 * (decode_shares.CONTEXT_TOKENS + decode_shares.NEW_TOKENS / 2) / 1e10
    require(abs((one["memory"] - cached) / 0.2471 - 1) < 0.001 and one["memory"] > one["products"], one)
    require(abs((many["memory"] - one["memory"]) / (15 * cached) - 1) < 0.001 and many["products"] > many["memory"], many)


def check(result: dict, out: pathlib.Path) -> None:
    """Of a run with --quick and no peer."""
    check_formula()
    check_fastest_peer()
    check_limits_of_decoding()
    jobs = {job["method"]: job for job in result["jobs"]}
    for name in ("lora", "qlora", "full"):
        require("failure" not in jobs[name], jobs[name])
        check_job(jobs[name])
    require(jobs["qlora"]["profile"]["groups"]["dequantising"] > 0, jobs["qlora"]["profile"])
    check_made_up_peer(jobs["lora"])
    decode = result["decode"]
    require(decode["failures"] == {}, decode["failures"])
    for name in ("snug bf16", "snug nf4"):
        require(decode["contestants"][name]["share_of_bound"] > 0, decode)
    text = (out / "race.md").read_text()
    for part in ("Snug's QLoRA next to its LoRA, 1 rounds", "| lora | Snug, recompute=none |", "| full | Snug, recompute=layer |", "## Generation", "| snug bf16 |", "| operations | lora |",
                 "| products of adapters | "):
        require(part in text, f"no '{part}' in:\n{text}")
    require((out / "race.json").stat().st_size > 1000, "race.json")
