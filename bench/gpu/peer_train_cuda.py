"""One training job with transformers and PEFT on a card, in a process of its own. Takes the job as JSON, prints JSON.

A plain loop: forward, backward, clip, fused AdamW. Weights are random, in bf16; the adapter's are fp32 under autocast.
Full fine-tuning keeps weights, gradients and moments in bf16, or 8-bit moments where bitsandbytes is installed.
Compiled: each layer by itself, as accelerate's compile_regions does it, and the loss; the whole model takes minutes to
compile and runs no other kernels. job["device"] is for trying it without a card.
"""

import importlib.metadata
import json
import sys
import time

import torch
import transformers


def make_model(job: dict):
    config = transformers.AutoConfig.for_model(**job["config"])
    options = dict(attn_implementation=job["attention"], dtype=torch.bfloat16)
    with torch.device(job.get("device", "cuda")):
        model = transformers.AutoModelForCausalLM.from_config(config, **options)
    model.config.use_cache = False
    if job["method"] == "qlora":
        quantize_linears(model)
    if job["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if job["method"] != "full":
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=32, lora_dropout=0.0,
                                                           target_modules="all-linear", task_type="CAUSAL_LM"))
    return model.to(job.get("device", "cuda")).train()


def quantize_linears(model) -> None:
    """bitsandbytes' 4-bit linears in place of those of the layers, as load_in_4bit makes them."""
    import bitsandbytes
    for name, linear in list(model.named_modules()):
        if not isinstance(linear, torch.nn.Linear) or name == "lm_head":
            continue
        stored = bitsandbytes.nn.Linear4bit(linear.in_features, linear.out_features, bias=False,
                                            compute_dtype=torch.bfloat16, compress_statistics=True, quant_type="nf4")
        stored.weight = bitsandbytes.nn.Params4bit(linear.weight.data.cpu(), requires_grad=False,
                                                   compress_statistics=True, quant_type="nf4")
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, stored)
    model.is_loaded_in_4bit = True


def make_optimizer(trained: list, method: str):
    if method == "full":
        try:
            import bitsandbytes
            return bitsandbytes.optim.AdamW8bit(trained, lr=1e-5)
        except ImportError:
            pass
    return torch.optim.AdamW(trained, lr=1e-4, fused=True)


def compile_parts(model) -> None:
    """One compilation serves all layers, which differ in weights alone."""
    from transformers.modeling_layers import GradientCheckpointingLayer
    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer):
            module.compile()
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    causal.loss_function = torch.compile(causal.loss_function)


def versions() -> dict[str, str]:
    found = {}
    for name in ("torch", "transformers", "peft", "bitsandbytes"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def run(job: dict) -> dict:
    with open(job["data"]) as file:
        rows = [json.loads(line)["input_ids"] for line in file]
    device = job.get("device", "cuda")
    model = make_model(job)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(trained, job["method"])
    if job["compile"]:
        compile_parts(model)
    losses, seconds = [], []
    for step in range(job["warmup"] + job["steps"]):
        begin = step * job["rows"]
        ids = torch.tensor([rows[row % len(rows)] for row in range(begin, begin + job["rows"])], device=device)
        wait(device)
        start = time.perf_counter()
        with torch.autocast(device, torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
        wait(device)
        seconds.append(time.perf_counter() - start)
    return {"losses": losses, "step_seconds": seconds, "optimizer": type(optimizer).__name__, "versions": versions()}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
