"""Probabilities of next tokens: transformers' processors, in the order in which generate has them, on made logits."""

import itertools
import json
import math
import pathlib
import random

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList

MINUS_INFINITY = -math.inf
UNIT = 64  # logits are multiples of 1 / UNIT, which floats hold exactly


class AnswerPenalties(LogitsProcessor):
    """OpenAI's presence and frequency penalties of the answer's tokens, which transformers lacks, by their definition."""

    def __init__(self, answer: list, presence: float, frequency: float):
        self.answer, self.presence, self.frequency = answer, presence, frequency

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        counts = torch.bincount(torch.tensor(self.answer, dtype=torch.long), minlength=scores.shape[-1]).to(scores.dtype)
        return scores - self.frequency * counts - self.presence * (counts > 0)


@torch.no_grad()
def probabilities(model: LlamaForCausalLM, logits: torch.Tensor, case: dict) -> torch.Tensor:
    """(vocabulary) in the precision of the logits."""
    config = GenerationConfig(
        do_sample=True, temperature=float(case.get("temperature", 1)), top_k=case.get("top_k", 0), top_p=case.get("top_p", 1.0),
        min_p=case.get("min_p"), repetition_penalty=case.get("repetition_penalty", 1.0),
    )
    answer = case.get("answer", [])
    own = AnswerPenalties(answer, case.get("presence_penalty", 0.0), case.get("frequency_penalty", 0.0))
    processors = model._get_logits_processor(
        generation_config=config, input_ids_seq_length=1, logits_processor=LogitsProcessorList([own]), device="cpu", model_kwargs={}
    )
    ids = torch.tensor([case.get("read", []) + answer], dtype=torch.long)
    return torch.softmax(processors(ids, logits[None].clone()), dim=-1)[0]


def rows(generator: random.Random) -> list:
    """Logits of small vocabularies, as multiples of 1 / UNIT or None for minus infinity."""
    found = []
    for size, spread in itertools.product((2, 5, 13, 40, 53), (0.5, 2, 6)):
        row = [round(generator.gauss(0, spread) * UNIT) for _ in range(size)]
        found.append(row)
        found.append([None if generator.random() < 0.3 and i > 0 else value for i, value in enumerate(row)])
        found.append([round(value / (UNIT * spread)) * UNIT for value in row])  # many equal ones
    found.append([0] * 8)  # probabilities of 1/8, which sums of fp32 hold exactly
    found.append([0] * 64)
    found.append([None] * 6 + [0, 0, 0, 0])
    return found


def option_sets(generator: random.Random, size: int) -> list:
    """Of each option alone, and of mixtures."""
    found = [{"temperature": value} for value in (1, 0.3, 2.5, 1e-3)]
    found += [{"top_k": value} for value in (2, 3, size, size + 5)]
    found += [{"top_p": value} for value in (0.125, 0.25, 0.5, 0.75, 0.9, 0.999, 1e-6)]
    found += [{"min_p": value} for value in (0.0, 0.05, 0.3, 1.0)]
    found += [{"top_k": 4, "min_p": 1.0}, {"top_p": 0.9, "min_p": 1.0}]
    for _ in range(8):
        case = {}
        for name, values in (
            ("temperature", (0.5, 0.8, 1.7)), ("top_k", (2, 4, 9, 30)), ("top_p", (0.3, 0.6, 0.95)), ("min_p", (0.01, 0.1, 0.4)),
            ("repetition_penalty", (0.8, 1.3)), ("presence_penalty", (0.5, -1.0)), ("frequency_penalty", (0.25, -0.5, 1.5)),
        ):
            if generator.random() < 0.6:
                case[name] = generator.choice(values)
        case["read"] = [generator.randrange(size) for _ in range(generator.randrange(4))]
        case["answer"] = [generator.randrange(min(size, 7)) for _ in range(generator.randrange(9))]
        found.append(case)
    return found


def exact(row: list) -> torch.Tensor:
    return torch.tensor([MINUS_INFINITY if value is None else value / UNIT for value in row], dtype=torch.float32)


def small_cases(model: LlamaForCausalLM) -> tuple:
    generator = random.Random(19)
    all_rows, cases, left_out = rows(generator), [], 0
    for number, row in enumerate(all_rows):
        sets = option_sets(generator, len(row))
        for case in generator.sample(sets, 9) if len(set(row)) > 2 else sets:
            found = probabilities(model, exact(row), case)
            if not torch.equal(found > 0, probabilities(model, exact(row).double(), case) > 0):
                left_out += 1  # which tokens come hangs on how fp32 rounds
                continue
            kept = [[i, float(f"{p:.7g}")] for i, p in enumerate(found.tolist()) if p > 0]
            cases.append({"row": number} | case | {"kept": kept})
    return all_rows, cases, left_out


def large_row(size: int, step: int) -> torch.Tensor:
    """Logits from 0 to 8 in an order without pattern; in steps of step / 8192."""
    values = [i * 7919 % 65536 // step * step for i in range(size)]
    return torch.tensor(values, dtype=torch.float32) / 8192


def large_cases(model: LlamaForCausalLM) -> tuple:
    """Of lists of thousands of tokens, their number, the sum of their logits, and the largest and the smallest probability."""
    cases, left_out = [], 0
    options = [
        {"top_k": 1025}, {"top_k": 5000}, {"top_p": 0.3}, {"top_p": 0.9}, {"top_p": 0.99, "temperature": 3}, {"min_p": 0.02},
        {"top_k": 3000, "top_p": 0.7}, {"top_p": 0.8, "min_p": 0.2}, {"top_k": 1500, "top_p": 0.9, "min_p": 0.6}, {"temperature": 1.5},
        {"top_k": 7000, "temperature": 0.05}, {"top_p": 0.95, "temperature": 100}, {"top_k": 2000, "top_p": 0.5, "temperature": 1e6},
        {"top_k": 3000, "min_p": 1.0},
    ]
    rows = list(itertools.product(((9001, 1), (9001, 512), (30000, 1), (30000, 4096)), options))
    rows += [((4096, 65536), {"top_p": value}) for value in (0.125, 0.5, 0.75)]  # all equal, whose sums fp32 holds exactly
    for (size, step), case in rows:
        row = large_row(size, step)
        found = probabilities(model, row, case)
        if not torch.equal((found > 0).sum(), (probabilities(model, row.double(), case) > 0).sum()):
            left_out += 1
            continue
        kept = found > 0
        cases.append({"size": size, "step": step} | case | {
            "count": int(kept.sum()), "logits": float(row[kept].double().sum()),
            "most": float(f"{found.max():.7g}"), "least": float(f"{found[kept].min():.7g}"),
        })
    return cases, left_out


def make(root: pathlib.Path) -> str:
    tiny = LlamaConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, vocab_size=8)
    model = LlamaForCausalLM(tiny)
    all_rows, small, rounded = small_cases(model)
    large, more = large_cases(model)

    def lines(values: list) -> str:
        return ",\n".join(json.dumps(value, separators=(",", ":")) for value in values)

    (root / "sampling.json").write_text(
        f'{{"unit": {UNIT}, "rows": [\n{lines(all_rows)}\n], "small": [\n{lines(small)}\n], "large": [\n{lines(large)}\n]}}\n'
    )
    return f"sampling: {len(small)} small cases and {len(large)} large ones; {rounded} and {more} left out, which hang on rounding"
