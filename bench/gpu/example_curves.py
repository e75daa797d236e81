#!/usr/bin/env python3
"""Fifty steps of the shipped example with LoRA, QLoRA and full: the card's losses next to the processor's.

What bf16's rounding may do to a curve is measured, not assumed: it is what it does on the processor, bf16 next to fp32.
The card passes when it is no further from the processor's bf16 curve than three times that, in the mean and at worst.
The processor's losses may have been made before (--write-processor-losses), so that a rented card does not wait for them.
--dry-run puts the processor's kernels without tiles in the card's place, where it multiplies bf16 at all.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
METHODS = {"lora": ["examples/wordnet/lora.yaml"], "qlora": ["examples/wordnet/qlora.yaml"],
           "full": ["examples/wordnet/lora.yaml", "method=full", "learning_rate=2e-4"]}
FACTOR = 3.0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--snug", required=True, help="the binary")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--methods", default=",".join(METHODS), help="by commas")
    parser.add_argument("--factor", type=float, default=FACTOR, help="times bf16's noise that is allowed; a few steps tell little of it")
    parser.add_argument("--words", default="", help="of the recipe, by commas: a shorter example")
    parser.add_argument("--processor-losses", default="", help="a file of them; what it lacks is computed here")
    parser.add_argument("--write-processor-losses", default="", help="makes that file, and no more")
    parser.add_argument("--dry-run", action="store_true", help="no card: the processor with SNUG_ISA=v4_bf16 instead")
    return parser.parse_args()


def losses(arguments: argparse.Namespace, method: str, *words: str, isa: str = "") -> list[float]:
    """Of each step, from metrics.jsonl. Raises CalledProcessError where the run fails."""
    environment = os.environ | ({"SNUG_ISA": isa} if isa else {})
    with tempfile.TemporaryDirectory(prefix="snug-curve-") as folder:
        subprocess.run([pathlib.Path(arguments.snug).resolve(), "train", *METHODS[method], f"max_steps={arguments.steps}", "save_steps=0",
                        f"output_dir={folder}/run", *filter(None, arguments.words.split(",")), *words], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        lines = pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines()
    found = [record["loss"] for record in map(json.loads, lines) if "step_seconds" in record]
    if len(found) != arguments.steps:
        raise RuntimeError(f"{method} {' '.join(words)}: {len(found)} losses instead of {arguments.steps}")
    return found


def distances(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """Mean and largest relative difference."""
    each = [abs(one - other) / abs(other) for one, other in zip(ours, theirs)]
    return statistics.mean(each), max(each)


def key_of(arguments: argparse.Namespace, method: str, dtype: str) -> str:
    return f"{method} {dtype} {arguments.steps} steps {arguments.words}".strip()


def processor_losses(arguments: argparse.Namespace, method: str, dtype: str) -> list[float]:
    if arguments.processor_losses:
        kept = json.loads(pathlib.Path(arguments.processor_losses).read_text())
        if found := kept.get(key_of(arguments, method, dtype)):
            return found
    return losses(arguments, method, "backend=cpu", f"compute_dtype={dtype}")


def write_processor_losses(arguments: argparse.Namespace) -> None:
    made = {key_of(arguments, method, dtype): processor_losses(arguments, method, dtype)
            for method in arguments.methods.split(",") for dtype in ("fp32", "bf16")}
    pathlib.Path(arguments.write_processor_losses).write_text(json.dumps(made, indent=1) + "\n")


def compare(arguments: argparse.Namespace, method: str) -> bool:
    exact = processor_losses(arguments, method, "fp32")
    processor = processor_losses(arguments, method, "bf16")
    card = (losses(arguments, method, "backend=cpu", "compute_dtype=bf16", isa="v4_bf16") if arguments.dry_run else
            losses(arguments, method, "backend=cuda", "compute_dtype=bf16"))
    noise, difference = distances(processor, exact), distances(card, processor)
    good = all(one <= arguments.factor * other for one, other in zip(difference, noise))
    print(f"{method}: loss {exact[0]:.3f} to {exact[-1]:.3f}; from the processor {difference[0]:.2e} in the mean, {difference[1]:.2e} at worst; "
          f"bf16's noise {noise[0]:.2e}, {noise[1]:.2e}: {'ok' if good else 'TOO FAR'}", flush=True)
    return good


def main() -> int:
    arguments = parse_arguments()
    if arguments.write_processor_losses:
        write_processor_losses(arguments)
        return 0
    known = json.loads(pathlib.Path(arguments.processor_losses).read_text()) if arguments.processor_losses and not arguments.dry_run else {}
    is_known = all(key_of(arguments, method, "bf16") in known for method in arguments.methods.split(","))
    if not is_known and "avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text():
        print("skipped: this processor does not multiply bf16, and its losses are not known")
        return 0
    return 0 if all([compare(arguments, method) for method in arguments.methods.split(",")]) else 1


if __name__ == "__main__":
    sys.exit(main())
