"""Parts of the calls of scripts/gpu_check by themselves, with made-up programs: attention dense against ragged, learning from rewards, the longest row."""

import contextlib
import io
import json
import pathlib
import stat

import call_stages
import jobs
import longest
import results
import results_table
import rewarded
import session
import stages
from processes import Failure


def require(condition: bool, what: object) -> None:
    if not condition:
        raise SystemExit(f"calls self-test: {what}")


def script(folder: pathlib.Path, name: str, body: str) -> pathlib.Path:
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def check(folder: pathlib.Path) -> None:
    check_dense_attention(folder)
    check_rewarded(folder)
    check_planned_too_long(folder)


def setting_of(folder: pathlib.Path, snug: pathlib.Path, limit_seconds: float) -> stages.Setting:
    return stages.Setting(snug=snug, python="", work=folder, out=folder, backend="cuda", device="Emulated", warmup=1, steps=2, limit_seconds=limit_seconds)


def check_dense_attention(folder: pathlib.Path) -> None:
    """The dense form is worth building from 5 % on; without a profile or torch nothing is decided."""
    operations = [{"name": "attention bf16 by library", "work": 4e12, "seconds": 0.01}, {"name": "attention_grad bf16 by library", "work": 4e12, "seconds": 0.01}]
    row = {"name": "job profile", "device": "Emulated", "operations": operations}
    gradient = '{"forward_tflops": 500.0, "gradient_tflops": %s, "cudnn": 91400, "torch": "2"}'
    for said, status, decided in ((gradient % 419, 0, "ragged"), (gradient % 420, 0, "dense"), ("no torch here", 77, None)):
        python = script(folder, "python", f"echo '{said}'; exit {status}")
        run = session.Session("4", folder / "dense", 60, {"device": "Emulated"})
        machine = call_stages.Machine(python, python, python, str(python), workers=1)
        (folder / "dense/gpu.json").write_text(results.to_json(results.empty() | {"profile": [row]}))
        with contextlib.redirect_stdout(io.StringIO()):
            call_stages.dense_attention(run, machine, "job")
            call_stages.dense_attention(run, machine, "another job")
        require(run.decisions.get("attention_grad") == decided and run.good(), (said, run.decisions, run.stages))
        require([bool(stage.get("left_out")) for stage in run.stages] == [decided is None, True], run.stages)


def check_rewarded(folder: pathlib.Path) -> None:
    """The medians of the timed steps stand next to the plan, in the row and in the page. The first step is none of them."""
    plan = {"libraries": "cuDNN 9.25", "step_seconds": 20.0, "step_basis": "calibrated", "device": {"peak_bytes": 1 << 30},
            "rollouts": {"seconds": 16.0, "step_seconds": 20.0, "side_by_side": 64, "prompt_tokens": 200}}
    steps = [{"step_seconds": seconds, "rollout_seconds": seconds - 4, "completions/mean_length": 500.0} for seconds in (90.0, 22.0, 24.0, 23.0)]
    lines = "\n".join(json.dumps(step) for step in steps)
    snug = script(folder, "rewarding", f"""
case $1 in plan) echo '{json.dumps(plan)}'; exit;; esac
for word; do case $word in output_dir=*) folder=${{word#output_dir=}};; data=*) prompts=${{word#data=}};; esac; done
# Eight prompts for each step, and for one more, before whose end the run is ended.
[ "$(wc -l < "$prompts")" = 40 ] || exit 1
mkdir -p "$folder" && echo '{lines}' > "$folder/metrics.jsonl" && exec sleep 60""")
    [job] = jobs.REWARDED
    row = rewarded.train(setting_of(folder, snug, 30), job)
    require((row["step_seconds"], row["rollout_seconds"], row["steps"]) == (23.0, 19.0, 3), row)
    require(row["answers"] == 64 and abs(row["tokens_per_second"] - 64 * 500 / 19) < 1e-9, row)
    found = results.empty() | {"rewarded": [row | {"name": job.name, "device": "NVIDIA H200", "commit": "a", "driver": "1", "date": "2026-01-01T00:00:00Z"}]}
    text = results_table.markdown(found)
    require("| llama-3.1-8b qlora rewarded | 64 of 512 tokens | 23.00 | 20.00 (calibrated) | 19.00 | 16.00 | not measured of 1.00 |" in text, text)


def check_planned_too_long(folder: pathlib.Path) -> None:
    """No step is begun that is planned to take longer than there is time."""
    plan = {"libraries": "cuDNN 9.25", "step_seconds": 31.0, "device": {"peak_bytes": 1 << 30}}
    snug = script(folder, "planning", f"[ \"$1\" = plan ] || exit 1; for word; do case $word in max_length=1024) echo '{json.dumps(plan)}'; exit;; esac; done; exit 3")
    try:
        longest.longest(setting_of(folder, snug, 30), jobs.LONGEST, 1024)
    except Failure as failure:
        require(str(failure) == "a step of 1024 tokens is planned to take 31 s, more than the 30 s that are left", failure)
    else:
        require(False, "a step that is planned to take too long was begun")
