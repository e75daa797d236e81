"""What each row is held against: what others published, the bar that was set, and what a card can do in practice."""

import dataclasses

from report import GIB

PEAK_FLOPS = 989e12  # bf16, dense: the data sheet of H100 and H200 SXM
BANDWIDTH = {"H100": 3.35e12, "H200": 4.8e12}  # bytes per second, likewise
QLORA_FACTOR = 1.05  # of LoRA's step

TRAINERS = "the repository gpu-test, transformers 4.49 and torch 2.5 on an H100, 2 x 8192 tokens"
LIT_GPT = "Lit-GPT, a 7B on an A100"
NEMO = "NeMo AutoModel, Llama 3 8B on an H100, rows of 4096"
LLMQ = "IST-DASLab/llmq, Qwen2.5 7B on an H100, rows of 1024"
UNSLOTH = "Unsloth's documentation, QLoRA of Llama 3.1 8B on a card of 80 GB"


@dataclasses.dataclass(frozen=True)
class Reference:
    """Of one row. Bars were set for an H200; a time among them for nothing recomputed, unless the row is lean. Practical
    seconds, by card: products at 730 TFLOP/s, attention at what cuDNN was measured with, bytes at 80 % of the bandwidth."""

    published: str = ""
    source: str = ""
    seconds: float | None = None
    gib: float | None = None
    tokens_per_second: float | None = None
    tokens: int | None = None  # in a row
    may_recompute: bool = False  # the seconds are meant for whatever is recomputed
    compared_to: str = ""  # the LoRA row of the same run: at most 5 % slower, and never heavier
    practical: tuple[float, float] | None = None  # on an H100, on an H200


REFERENCES = {
    "llama-3.1-8b full": Reference("4.7 s, 78 GiB", TRAINERS, seconds=1.6, practical=(1.35, 1.31)),
    "llama-3.1-8b full checkpoints": Reference("4.7 s, 78 GiB", TRAINERS, seconds=1.85, gib=56, practical=(1.67, 1.62)),
    "llama-3.1-8b lora": Reference("6.4 s, 36 GiB", TRAINERS, seconds=1.15, practical=(1.04, 1.00)),
    "llama-3.1-8b lora checkpoints": Reference("6.4 s, 36 GiB", TRAINERS, seconds=1.5, gib=25, practical=(1.36, 1.31)),
    "llama-3.1-8b qlora": Reference("26.1 s, 48 GiB", TRAINERS, compared_to="llama-3.1-8b lora", practical=(1.06, 1.01)),
    "llama-3.1-8b qlora checkpoints": Reference("26.1 s, 48 GiB", TRAINERS, gib=15, compared_to="llama-3.1-8b lora checkpoints", practical=(1.38, 1.32)),
    "phi-3-mini-128k full": Reference("4.0 s, 40 GiB", TRAINERS, seconds=0.9, practical=(0.78, 0.76)),
    "phi-3-mini-128k full checkpoints": Reference("4.0 s, 40 GiB", TRAINERS, gib=30),
    "phi-3-mini-128k lora": Reference("5.0 s, 17 GiB", TRAINERS, seconds=0.75, practical=(0.64, 0.61)),
    "phi-3-mini-128k lora checkpoints": Reference("5.0 s, 17 GiB", TRAINERS, gib=15),
    "phi-3-mini-128k qlora": Reference("17.6 s, 21 GiB", TRAINERS, seconds=0.75, practical=(0.65, 0.61)),
    "phi-3-mini-128k qlora checkpoints": Reference("17.6 s, 21 GiB", TRAINERS, gib=9.3),
    "llama-2-13b lora": Reference("9.8 s, 43 GiB", TRAINERS, seconds=1.9, practical=(1.71, 1.65)),
    "llama-2-13b lora checkpoints": Reference("9.8 s, 43 GiB", TRAINERS, gib=39, practical=(2.29, 2.21)),
    "gemma-7b lora": Reference("9.5 s, 51 GiB", TRAINERS, seconds=1.7, may_recompute=True),
    "gemma-2-9b lora": Reference("12.9 s, 60 GiB", TRAINERS, seconds=2.1, may_recompute=True),
    "llama-3.1-8b lora rows of 4096": Reference("12473 tokens/s", NEMO),
    "qwen2.5-7b full rows of 1024": Reference("13850 tokens/s", LLMQ),
    "llama-3.1-8b qlora longest row": Reference("342733 tokens", UNSLOTH, tokens=342733),
    "llama-3.1-8b decoding bf16": Reference("31 tokens/s", LIT_GPT, tokens_per_second=270),
    "llama-3.1-8b decoding nf4": Reference("20 tokens/s", LIT_GPT, tokens_per_second=650),
    "llama-3.1-8b decoding bf16 of 64": Reference(tokens_per_second=8500),
    "llama-3.1-8b decoding nf4 of 64": Reference(tokens_per_second=10000),
}
NONE = Reference()
HELD, MISSED, UNMEASURED = "held", "missed", "not measured"


def of(name: str) -> Reference:
    return REFERENCES.get(name, NONE)


def card_of(device: str) -> str:
    """"H100" or "H200"; empty for another device."""
    return next((card for card in BANDWIDTH if card in device), "")


def practical_seconds(name: str, device: str) -> float | None:
    practical, card = of(name).practical, card_of(device)
    return practical[list(BANDWIDTH).index(card)] if practical and card else None


def held(measured: float | None, limit: float | None, at_most: bool = True) -> str:
    if not measured or not limit:
        return UNMEASURED
    return HELD if (measured <= limit if at_most else measured >= limit) else MISSED


def verdicts(name: str, row: dict | None, lora: dict | None) -> list[tuple[str, str]]:
    """Each bar of a row with its verdict. `row`: what was measured of it; `lora`: of the row it stands next to, on the same card
    and commit. Neither may be there."""
    bar, row, lora = of(name), row or {}, lora or {}
    found = []
    if bar.seconds:
        recomputed = not bar.may_recompute and "checkpoints" not in name and row.get("recompute", "none") != "none"
        found.append((f"{bar.seconds} s", UNMEASURED + " (recomputes)" if recomputed else held(row.get("step_seconds"), bar.seconds)))
    if bar.gib:
        found.append((f"{bar.gib} GiB", held(row.get("measured_peak_bytes"), bar.gib * GIB)))
    if bar.tokens_per_second:
        found.append((f"{bar.tokens_per_second} tokens/s", held(row.get("tokens_per_second"), bar.tokens_per_second, at_most=False)))
    if bar.tokens:
        found.append((f"{bar.tokens} tokens on 80 GB", held(row.get("tokens"), bar.tokens, at_most=False)))
    if bar.compared_to:
        same = row.get("recompute") == lora.get("recompute")
        seconds = lora.get("step_seconds", 0) * QLORA_FACTOR if same else None
        found.append(("LoRA's s + 5 %", held(row.get("step_seconds"), seconds)))
        found.append(("LoRA's GiB", held(row.get("measured_peak_bytes"), lora.get("measured_peak_bytes") if same else None)))
    return found
