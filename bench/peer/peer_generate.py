"""Greedy generation with transformers in a process of its own: tokens per second after the prompt."""

import json
import sys
import time

import torch
import transformers
from processes import high_water_mark


class Clock(transformers.StoppingCriteria):
    """Never stops; keeps when each new token was there."""

    def __init__(self):
        self.times = []

    def __call__(self, input_ids, scores, **_):
        self.times.append(time.perf_counter())
        return torch.zeros(input_ids.shape[0], dtype=torch.bool)


def run(job: dict) -> dict:
    torch.set_num_threads(job["threads"])
    model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.bfloat16,
                                                              attn_implementation=job["attention"]).eval()
    ids = torch.tensor([job["ids"]])

    def generate(new_tokens: int) -> tuple[float, list[float]]:
        clock = Clock()
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens,
                           min_new_tokens=new_tokens, do_sample=False, stopping_criteria=[clock])
        if len(clock.times) != new_tokens:
            raise RuntimeError(f"{len(clock.times)} new tokens, expected {new_tokens}")
        return start, clock.times

    generate(2)
    start, times = generate(job["new_tokens"])
    return {"tokens_per_second": (len(times) - 1) / (times[-1] - times[0]), "prefill_seconds": times[0] - start,
            "peak_bytes": high_water_mark()}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
