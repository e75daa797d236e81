"""One training job with transformers and PEFT, in a process of its own. Takes the job as JSON, prints JSON.

A plain loop, quicker than the Trainer: forward, backward, clip, fused AdamW. The element types are Snug's: the frozen base
in bf16 (or 4 bits), adapters, master weights, gradients and moments in fp32, products in bf16 by autocast; with dtype
fp32 everything is fp32. Compiling and the first steps count as warm-up.
"""

import contextlib
import json
import sys
import time

import torch
import transformers
from processes import high_water_mark


def load_model(job: dict):
    """The base, with its adapter unless everything trains."""
    dtype = torch.bfloat16 if job["dtype"] == "bf16" else torch.float32
    options = dict(attn_implementation=job["attention"], dtype=dtype)
    if job["method"] == "full":
        options["dtype"] = torch.float32
    if job["method"] == "qlora":
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype)
    model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], **options)
    model.config.use_cache = False
    if job["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if job["method"] != "full":
        import peft
        model = peft.PeftModel.from_pretrained(model, job["adapter"], is_trainable=True)
    return model.train()


def run(job: dict) -> dict:
    torch.set_num_threads(job["threads"])
    if job["method"] != "full":
        import peft  # what it takes itself counts as Python's
    import_bytes = high_water_mark()
    with open(job["data"]) as file:
        rows = [json.loads(line)["input_ids"] for line in file]
    model = load_model(job)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=job["learning_rate"], betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
                                  fused=True)
    forward = torch.compile(model) if job["compile"] else model
    bf16 = torch.autocast("cpu", torch.bfloat16) if job["dtype"] == "bf16" else contextlib.nullcontext()
    losses, norms, seconds = [], [], []
    for step in range(job["warmup"] + job["steps"]):
        start = time.perf_counter()
        begin = step * job["batch"]
        ids = torch.tensor([rows[row % len(rows)] for row in range(begin, begin + job["batch"])])
        with bf16:
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        norms.append(float(norm))
        seconds.append(time.perf_counter() - start)
    return {"losses": losses, "grad_norms": norms, "step_seconds": seconds, "peak_bytes": high_water_mark(), "import_bytes": import_bytes,
            "trained_weights": sum(parameter.numel() for parameter in trained),
            "trained_dtypes": sorted({str(parameter.dtype) for parameter in trained})}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
