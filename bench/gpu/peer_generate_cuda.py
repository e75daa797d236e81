"""Generation with transformers on a card, in a process of its own: tokens per second after the prompt, drawn as Lit-GPT draws.

Takes the job as JSON, prints JSON. Weights are random, in bf16; stored as nf4, the layers' linears are bitsandbytes', embedding and
head stay in bf16. With compile, a static cache, for which transformers compiles a token's pass. job["device"] is for trying it without a card.
"""

import json
import sys
import time

import torch
import transformers
from peer_train_cuda import quantize_linears


class Clock(transformers.StoppingCriteria):
    """Never stops; keeps when each new token was there."""

    def __init__(self):
        self.times = []

    def __call__(self, input_ids, scores, **_):
        input_ids[0, -1].item()  # until the device has drawn it
        self.times.append(time.perf_counter())
        return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)


def make_model(job: dict, device: str):
    config = transformers.AutoConfig.for_model(**job["config"])
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.bfloat16)
    if job["stored"] == "nf4":
        quantize_linears(model)
    return model.to(device).eval()


def run(job: dict) -> dict:
    device = job.get("device", "cuda")
    model = make_model(job, device)
    ids = torch.tensor([job["ids"]], device=device)
    options = dict(do_sample=True, temperature=0.8, top_k=200, eos_token_id=None, pad_token_id=0)
    if job["compile"]:
        options["cache_implementation"] = "static"

    def generate(new_tokens: int) -> tuple[float, list[float]]:
        clock = Clock()
        start = time.perf_counter()
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=new_tokens, min_new_tokens=new_tokens,
                           stopping_criteria=[clock], **options)
        if len(clock.times) != new_tokens:
            raise RuntimeError(f"{len(clock.times)} new tokens, expected {new_tokens}")
        return start, clock.times

    generate(job["new_tokens"])  # as long as what is measured: a static cache of another length compiles again
    start, times = generate(job["new_tokens"])
    return {"tokens_per_second": (len(times) - 1) / (times[-1] - times[0]), "prefill_seconds": times[0] - start}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
