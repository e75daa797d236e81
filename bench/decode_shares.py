#!/usr/bin/env python3
"""What share of this machine's limits generation reaches: tokens per second for 1, 2, 4, 8 and 16 sequences side by side, and the prompt's pass.

    bench/decode_shares.py SNUG [--rounds N] [--models NAME ...] [--batches N ...] [--result bench/results/decode_shares.json]

A token of every sequence reads all weights of the linears and the head once, and the keys and values of each sequence, so it takes at least their
bytes over the rate at which this machine reads memory (`snug bench memory`); and it multiplies each of them with every sequence, so it takes at least those FLOPs over the rate
that oneDNN alone reaches on products of the model's widths (`snug bench products`). The limit is the longer of the two, and the
table says which. The prompt's pass has 2 FLOPs for each weight of the linears and each token, and attention; its limit is oneDNN's rate.
Both rates are measured before and after each model's rounds, and the table has how far they moved. Weights are random, bf16 or NF4 (double quantised, the
head in bf16). Run it on a machine that does nothing else. Exit code 0, whatever was measured: speed fails nothing.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "bench" / "peer"))

import processes  # noqa: E402
from materials import SHAPES  # noqa: E402
from model_flops import attention_flops, cached_bytes, decoded_bytes, head_weights, linear_weights  # noqa: E402
from provenance import commit  # noqa: E402
from results_file import machine  # noqa: E402

LIMIT_SECONDS = 900.0
MODELS = ("llama-3.2-1b", "qwen3-0.6b")
FORMATS = ("bf16", "nf4")
BATCHES = (1, 2, 4, 8, 16)
PROMPT_TOKENS = 512
CONTEXT_TOKENS = 128  # of the prompt that decoding continues
NEW_TOKENS = 48
TARGETS = {"decoding": 0.85, "prompt": 0.75}


class Bench:
    """`snug bench`, each measurement in a process of its own."""

    def __init__(self, snug: str):
        self.snug = pathlib.Path(snug).resolve()

    def measure(self, verb: str, words: list[str]) -> dict:
        return processes.run_json([self.snug, "bench", verb, *words, "--json"], LIMIT_SECONDS, os.cpu_count())

    def limits(self, model: str) -> dict:
        """Bytes per second that are read, and FLOPs per second of oneDNN alone on wide products."""
        words = [f"model={model}", "method=lora", f"max_length={PROMPT_TOKENS}", "max_segments=1", "per_device_train_batch_size=1",
                 "recompute=none", "compute_dtype=bf16"]
        return {"bytes_per_second": self.measure("memory", [])["bytes_per_second"],
                "flops_per_second": self.measure("products", words)["wide"]["flops_per_second"]}

    def generate(self, model: str, weights: str, sequences: int, prompt_tokens: int) -> dict:
        ids = " ".join(str(100 + 7 * token) for token in range(prompt_tokens))
        return self.measure("decode", [f"model={model}", "init=random", f"ids={ids}", f"batch={sequences}", f"max_new_tokens={NEW_TOKENS}",
                                       "temperature=0", "compute_dtype=bf16", f"load_in_4bit={'true' if weights == 'nf4' else 'false'}"])


def prompt_flops(model: str, tokens: int) -> float:
    """The head multiplies the last token alone; attention's forward pass is two of its seven products."""
    shape = SHAPES[model]
    return 2 * linear_weights(shape) * tokens + 2 * head_weights(shape) + attention_flops(shape, tokens) * tokens * 2 / 7


def token_seconds(model: str, weights: str, sequences: int, limits: dict) -> dict:
    """Seconds that a token of every sequence takes at least, in the mean of those generated: to read the weights and what was cached, and to
    multiply the weights."""
    shape = SHAPES[model]
    read = decoded_bytes(shape, weights) + sequences * cached_bytes(shape, CONTEXT_TOKENS + NEW_TOKENS / 2)
    return {"memory": read / limits["bytes_per_second"],
            "products": 2 * (linear_weights(shape) + head_weights(shape)) * sequences / limits["flops_per_second"]}


def mean_of(before: dict, after: dict) -> dict:
    return {name: (before[name] + after[name]) / 2 for name in before}


def rows_of(bench: Bench, model: str, batches: list[int], rounds: int) -> list[dict]:
    before = bench.limits(model)
    measured = {(weights, sequences): [bench.generate(model, weights, sequences, CONTEXT_TOKENS) for _ in range(rounds)]
                for weights in FORMATS for sequences in batches}
    prompts = {weights: [bench.generate(model, weights, 1, PROMPT_TOKENS)["prefill_seconds"] for _ in range(rounds)] for weights in FORMATS}
    after = bench.limits(model)
    limits = mean_of(before, after)
    movement = {name: max(before[name], after[name]) / min(before[name], after[name]) - 1 for name in before}
    rows = []
    for (weights, sequences), runs in measured.items():
        rate = statistics.median(run["tokens_per_second"] for run in runs)
        least = token_seconds(model, weights, sequences, limits)
        by = max(least, key=least.get)
        rows.append({"model": model, "weights": weights, "what": "decoding", "sequences": sequences, "tokens_per_second": rate,
                     "rounds": [run["tokens_per_second"] for run in runs], "limit": by, "share": least[by] * rate / sequences,
                     "share_of_memory": least["memory"] * rate / sequences, "target": TARGETS["decoding"]})
    for weights, seconds in prompts.items():
        median = statistics.median(seconds)
        rows.append({"model": model, "weights": weights, "what": "prompt", "sequences": 1, "tokens_per_second": PROMPT_TOKENS / median,
                     "rounds": [PROMPT_TOKENS / each for each in seconds], "limit": "products",
                     "share": prompt_flops(model, PROMPT_TOKENS) / median / limits["flops_per_second"], "target": TARGETS["prompt"]})
    return [row | {"limits": limits, "movement": movement} for row in rows]


def line(row: dict) -> str:
    what = f"{row['sequences']} sequences" if row["what"] == "decoding" else f"prompt of {PROMPT_TOKENS}"
    return (f"| {row['model']} | {row['weights']} | {what} | {row['tokens_per_second']:.1f} | {row['share']:.0%} | {row['limit']} | "
            f"{row['target']:.0%} | {max(row['movement'].values()):.0%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snug")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--batches", nargs="*", type=int, default=list(BATCHES))
    parser.add_argument("--result", type=pathlib.Path)
    wanted = parser.parse_args()
    bench, rows = Bench(wanted.snug), []
    print("| model | weights | what | tokens/s | share | limit | target | limits moved by |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in wanted.models:
        made = rows_of(bench, model, wanted.batches, wanted.rounds)
        print("\n".join(map(line, made)), flush=True)
        rows += made
    if wanted.result:
        wanted.result.write_text(json.dumps({
            "what": "tokens per second of generation over what reading the weights, or oneDNN alone on the products, allows",
            "command": "bench/decode_shares.py build/release/snug", "machine": machine(), "commit": commit(),
            "date": datetime.date.today().isoformat(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
