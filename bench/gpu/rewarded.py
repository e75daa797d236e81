"""Learning from rewards on a card: steps of GRPO from random weights, what the plan says of them next to what they took."""

import dataclasses
import json
import pathlib
import shutil
import statistics

import jobs
import stages
from jobs import Rewarded
from processes import Failure
from stages import Setting

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/wordnet"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def model_that_reads(setting: Setting, model: str) -> pathlib.Path:
    """The shape as a folder without weights, with the example's tokenizer: what is asked and answered are texts."""
    folder = setting.work / f"{model}-reads"
    tokens = json.loads((EXAMPLE / "config.json").read_text())["vocab_size"]
    jobs.write_config(folder, jobs.CONFIGS[model] | {"vocab_size": max(tokens, jobs.CONFIGS[model]["vocab_size"])})
    for name in TOKENIZER:
        shutil.copy(EXAMPLE / name, folder)
    return folder


def make_prompts(setting: Setting, job: Rewarded, steps: int) -> pathlib.Path:
    """Prompts of words of the example's questions, so that each step has others."""
    words = [word for line in (EXAMPLE / "train.jsonl").read_text().splitlines() for word in json.loads(line)["instruction"].split()]
    path = setting.work / f"{job.model}-prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": " ".join(words[(i * job.prompt_words + j) % len(words)] for j in range(job.prompt_words))}) + "\n"
                            for i in range(job.prompts * steps)))
    return path


def train(setting: Setting, job: Rewarded) -> dict:
    """A step makes the answers, rewards them by their length, and learns from them in one update. The medians of the timed steps."""
    warmup, steps = jobs.REWARDED_WARMUP, jobs.REWARDED_STEPS
    rates = [f"calibration={setting.calibration}"] if setting.calibration.exists() else []
    words = [f"model={model_that_reads(setting, job.model)}", "init=random", f"method={job.method}", "objective=grpo", "rewards=length",
             f"num_generations={job.answers}", f"max_completion_length={job.completion_tokens}", f"per_device_train_batch_size={job.answers}",
             f"gradient_accumulation_steps={job.prompts}", f"batch={job.prompts * job.answers}", f"backend={setting.backend}",
             f"data={make_prompts(setting, job, warmup + steps + 1)}", *rates]
    planned = stages.plan(setting, words)
    if planned is None:
        raise Failure("does not fit")
    stages.require_cudnn(setting, planned["libraries"], "")
    lines, peak, said = stages.run_steps(dataclasses.replace(setting, warmup=warmup), words, warmup + steps)
    stages.require_cudnn(setting, planned["libraries"], said)
    timed = lines[warmup:]
    answers, plan = job.prompts * job.answers, planned["rollouts"]
    seconds, rollout, length = (statistics.median(line[key] for line in timed) for key in ("step_seconds", "rollout_seconds", "completions/mean_length"))
    return {"model": job.model, "method": job.method, "answers": answers, "side_by_side": plan["side_by_side"], "prompt_tokens": plan["prompt_tokens"],
            "completion_tokens": job.completion_tokens, "mean_length": length, "steps": len(timed), "step_seconds": seconds, "rollout_seconds": rollout,
            "tokens_per_second": answers * length / rollout, "planned_step_seconds": plan["step_seconds"], "planned_rollout_seconds": plan["seconds"],
            "planned_step_basis": planned["step_basis"], "planned_peak_bytes": stages.planned_peak(planned), "measured_peak_bytes": peak,
            "libraries": planned["libraries"]}
