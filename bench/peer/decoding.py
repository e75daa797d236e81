"""Generation's race: batch 1, tokens per second after the prompt, next to what the memory's bandwidth allows."""

import json
import pathlib
import random
import shutil
import statistics

import processes
from contestants import HERE, Setting, memory_bandwidth
from materials import make_model
from model_flops import decoded_bytes
from processes import Failure


def snug_rate(setting: Setting, model: pathlib.Path, ids: list[int], new_tokens: int) -> dict:
    words = [f"model={model}", "ids=" + " ".join(map(str, ids)), f"max_new_tokens={new_tokens}", "temperature=0",
             f"threads={setting.threads}", "--json"]
    answer = processes.run_json([setting.snug, "generate", *words], setting.limit_seconds, setting.threads)
    if answer["new_tokens"] != new_tokens:
        raise Failure(f"{answer['new_tokens']} new tokens, expected {new_tokens}")
    # The first new token comes out of the prompt's pass.
    return {"tokens_per_second": (new_tokens - 1) / answer["decode_seconds"], "peak_bytes": answer["peak_bytes"],
            "prefill_seconds": answer["prefill_seconds"], "ids": answer["ids"]}


def quantize(setting: Setting, model: pathlib.Path) -> pathlib.Path:
    folder = model.with_name(model.name + "-nf4")
    if not folder.exists():
        processes.run([setting.snug, "quantize", f"model={model}", f"output_dir={folder}"], setting.limit_seconds,
                      setting.threads)
    return folder


def peer_rate(setting: Setting, model: pathlib.Path, ids: list[int], new_tokens: int, attention: str) -> dict:
    job = dict(model=str(model), ids=ids, new_tokens=new_tokens, threads=setting.threads, attention=attention)
    return processes.run_json([setting.python, HERE / "peer_generate.py", json.dumps(job)], setting.limit_seconds,
                              setting.threads)


def llama_cpp_rate(setting: Setting, llama_python: str, model: pathlib.Path, shape: dict, kind: str, ids: list[int],
                   new_tokens: int) -> dict:
    file = model.with_name(f"{model.name}-{kind}.gguf")
    job = dict(model=str(model), file=str(file), kind=kind, ids=ids, new_tokens=new_tokens, threads=setting.threads,
               shape=shape, repack=True)

    def run(job: dict) -> dict:
        return processes.run_json([llama_python, HERE / "llama_cpp_generate.py", json.dumps(job)],
                                  setting.limit_seconds, setting.threads)

    try:
        return run(job)
    except Failure:
        # Its buffers of reordered weights crash on some machines (AMX without the system's leave).
        return run(job | {"repack": False})


def contestants_of(setting: Setting, llama_python: str, model: pathlib.Path, shape: dict, ids: list[int],
                   new_tokens: int) -> dict:
    """By name: what to run."""
    runs = {"snug bf16": lambda: snug_rate(setting, model, ids, new_tokens),
            "snug nf4": lambda: snug_rate(setting, quantize(setting, model), ids, new_tokens)}
    if setting.python:
        for attention in ("sdpa", "eager"):
            runs[f"transformers bf16 {attention}"] = \
                lambda attention=attention: peer_rate(setting, model, ids, new_tokens, attention)
        runs["transformers + bitsandbytes nf4 sdpa"] = \
            lambda: peer_rate(setting, quantize(setting, model), ids, new_tokens, "sdpa")
    if llama_python:
        for kind in ("bf16", "q4_0"):
            runs[f"llama.cpp {kind}"] = \
                lambda kind=kind: llama_cpp_rate(setting, llama_python, model, shape, kind, ids, new_tokens)
    return runs


def race(setting: Setting, shape: dict, llama_python: str, rounds: int, prompt: int, new_tokens: int, say,
         budget: str = "") -> dict:
    """Medians over the rounds; a contestant that failed once keeps its reason and runs no more."""
    model = setting.work / "decode-model"
    if not (model / "config.json").exists():
        shutil.rmtree(model, ignore_errors=True)
        make_model(model, shape, seed=5)
    rng = random.Random(6)
    ids = [rng.randrange(shape["vocab_size"]) for _ in range(prompt)]
    runs = contestants_of(setting, llama_python, model, shape, ids, new_tokens)
    measured, failures, bandwidths = {name: [] for name in runs}, {}, []
    for _ in range(rounds):
        bandwidths.append(memory_bandwidth(setting, budget)["bytes_per_second"])
        for name, run in runs.items():
            if name in failures:
                continue
            try:
                measured[name].append(run())
                say(f"  decode {name}: {measured[name][-1]['tokens_per_second']:.2f} tokens/s")
            except Failure as failure:
                failures[name] = str(failure)
                say(f"  decode {name}: {failure}")
    bandwidth = max(bandwidths)
    result = {"prompt_tokens": prompt, "new_tokens": new_tokens, "read_bytes_per_second": bandwidth,
              "read_bytes_per_second_rounds": bandwidths, "contestants": {}, "failures": failures}
    for name, of_name in measured.items():
        if name in failures:
            continue
        rate = statistics.median(run["tokens_per_second"] for run in of_name)
        entry = {"tokens_per_second": rate, "rounds": [run["tokens_per_second"] for run in of_name],
                 "peak_bytes": statistics.median(run["peak_bytes"] for run in of_name)}
        linear_format = next((word for word in ("bf16", "nf4") if word in name), None)
        if linear_format:
            entry["bytes_per_token"] = decoded_bytes(shape, linear_format)
            entry["bound_tokens_per_second"] = bandwidth / entry["bytes_per_token"]
            entry["share_of_bound"] = rate / entry["bound_tokens_per_second"]
        result["contestants"][name] = entry
    return result
