"""The jobs whose programs and plans scripts/freeze_programs keeps, and the files that they need; nothing but Python's own library."""

import itertools
import json
import pathlib
import random

from compare_jobs import MIN_VOCABULARY, NO_BUDGET, Job, model_folder

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Rates that were measured on a card once. On the cpu they are nobody's, and make plans that go by samples all the same.
CALIBRATION = ROOT / "bench" / "results" / "calibration-NVIDIA-H200.json"

# Models of tests/goldens, one or more of each family. Two layers each, so that a job takes a twentieth of a second.
MODELS = ("basic", "grouped_tied", "biases", "head_dim", "rope_llama3", "rope_linear", "rope_yarn", "mistral", "qwen2", "qwen3", "qwen3_moe",
          "mixtral", "gpt_oss", "phi", "phi3", "phi3_long", "gemma", "gemma2", "gemma3", "gpt2", "gpt_neox", "gpt_neox_in_turn", "stablelm",
          "falcon", "falcon_grouped", "falcon_rw", "bloom", "olmo2", "t5", "t5_gated", "mt5", "codet5p")
METHODS = {
    "full": "method=full gradient_accumulation_steps=2",
    "full-in-backward": "method=full optim=adamw_8bit optim_in_backward=true max_grad_norm=0 recompute=layer",
    "lora": "method=lora lora_dropout=0.1 gradient_accumulation_steps=3",
    "dora": "method=lora use_dora=true use_rslora=true",
    "qlora": "method=qlora recompute=gate_up lora_dropout=0.05",
    "qdora": "method=qlora use_dora=true double_quant=false recompute=attention",
    "adapter": "method=adapter adapter_layers=1",
    "adapter_v2": "method=adapter_v2 adapter_layers=1",
    "dpo": "method=lora objective=dpo",
    "orpo": "method=full objective=orpo",
    "kto": "method=qlora objective=kto",
    "simpo": "method=lora objective=simpo",
    "regularised": "method=full label_smoothing_factor=0.1 neftune_noise_alpha=5 gradient_accumulation_steps=2",
}
# These each with one model alone: what they change does not depend on the family.
MORE_METHODS = {
    "full-bf16-moments": "method=full optim=adamw_bf16 gradient_dtype=auto",
    "full-lion": "method=full optim=lion",
    "full-muon": "method=full optim=muon gradient_accumulation_steps=2",
    "full-adafactor": "method=full optim=adafactor",
    "full-frozen": "method=full freeze_modules=layers.0,lm_head recompute=none",
    "full-evaluated": "method=full recompute=all_but_attention data=train.jsonl eval_data=eval.jsonl packing=false",
    "lora-saved": "method=lora modules_to_save=lm_head,embed_tokens recompute=keep_all",
    "lora-8-bit-moments": "method=lora optim=adamw_8bit target_modules=q_proj,v_proj recompute=none",
    "lora-muon": "method=lora optim=muon",
    "lora-packed": "method=lora data=train.jsonl per_device_train_batch_size=3 max_segments=5",
    "qlora-head": "method=qlora load_head_in_4bit=true",
    "dpo-full": "method=full objective=dpo precompute_ref_log_probs=true",
    "kto-full": "method=full objective=kto precompute_ref_log_probs=true",
    "dpo-adapter": "method=adapter objective=dpo adapter_layers=1",
}
# Rates are those of data sheets, or assumed, except where a calibration is named. Tensors of these models are small, so thresholds are too.
RANKS = "devices=8 shard_threshold=64"
HOST = "offload_threshold=256 offload_window=64KiB"
TARGETS = {
    "cpu": "backend=cpu compute_dtype=fp32",
    "cpu-fp16-by-samples": "backend=cpu compute_dtype=fp16 calibration=cpu.json",
    "reference": "backend=reference compute_dtype=bf16",
    "h200-by-samples": "device=h200 calibration=h200.json",
    "b200": "device=b200 per_device_train_batch_size=4",
    "rtx-4090-fp16": "device=rtx-4090 compute_dtype=fp16",
    "h100-ddp": f"device=h100 strategy=ddp {RANKS} reduce_dtype=bf16",
    "h100-full-shard": f"device=h100 strategy=full_shard {RANKS}",
}
MORE_TARGETS = {
    "cpu-ranks": f"backend=cpu compute_dtype=fp32 strategy=full_shard {RANKS}",
    "reference-ranks": f"backend=reference compute_dtype=fp32 strategy=zero2 {RANKS}",
    "a100-fp32": "device=a100 compute_dtype=fp32 deterministic=true",
    "l4-offloaded-params": f"device=l4 offload_params=true {HOST}",
    "h100-zero1": f"device=h100 strategy=zero1 {RANKS}",
    "h100-zero2": f"device=h100 strategy=zero2 {RANKS} prefetch=post",
    "h100-shard-grad-op": f"device=h100 strategy=shard_grad_op {RANKS} prefetch=none",
    "h100-hybrid": f"device=h100 strategy=hybrid_full_shard nodes=2 {RANKS}",
    "h100-hybrid-by-samples": f"device=h100 strategy=hybrid_shard_grad_op shard_devices=4 calibration=h200.json {RANKS}",
    "h100-full-shard-offloaded-params": f"device=h100 strategy=full_shard offload_params=true {HOST} {RANKS}",
}
# With other methods a recipe may not ask for these.
OPTIMIZER_TARGETS = {
    "rtx-4090-streamed-optimizer": f"device=rtx-4090 offload_optimizer=stream {HOST}",
    "rtx-4090-optimizer-on-host": f"device=rtx-4090 offload_optimizer=host offload_params=true {HOST}",
    "h100-full-shard-optimizer-on-host": f"device=h100 strategy=full_shard offload_optimizer=host {HOST} {RANKS}",
    "a100-offloaded-activations": "device=a100 recompute=layer activation_offloading=true",
}
# Of presets: what depends on sizes, such as the choice of what is computed again, on cards that hold them easily, just, and not.
PRESETS = {
    "smollm2-135m": "max_length=2048",
    "llama-3.2-1b": "max_length=4096",
    "qwen3-0.6b": "max_length=1024 per_device_train_batch_size=8",
    "gemma-3-1b-pt": "max_length=2048",
    "gpt2": "max_length=1024 per_device_train_batch_size=4",
    "t5-base": "max_length=512 per_device_train_batch_size=4",
    "llama-3.1-8b": "max_length=2048",
    "gpt-oss-20b": "max_length=1024",
}
PRESET_METHODS = {
    "full": "method=full", "lora": "method=lora", "qlora": "method=qlora", "qdora": "method=qlora use_dora=true",
    "dpo": "method=lora objective=dpo",
}
PRESET_TARGETS = {
    "cpu": "backend=cpu compute_dtype=fp32",
    "h200-by-samples": "device=h200 calibration=h200.json",
    "rtx-4090": "device=rtx-4090",
    "rtx-3090-offloaded-params": "device=rtx-3090 offload_params=true offload_window=512MiB",
    "8-a100-full-shard": "device=a100 devices=8 strategy=full_shard",
}


# Programs of inference; they are explained and not planned by `snug plan`.
INFERENCE = {
    "inference": "job=inference per_device_train_batch_size=3",
    "inference-nf4": "job=inference load_in_4bit=true double_quant=false",
    "inference-nf4-dq": "job=inference load_in_4bit=true load_head_in_4bit=true",
}
INFERENCE_TARGETS = ("cpu", "reference", "h200-by-samples", "rtx-4090-fp16")


def make_materials(folder: pathlib.Path) -> None:
    """The configs of the models without their weights, calibrations, and documents of token ids."""
    for name in MODELS:
        (folder / name).mkdir()
        (folder / name / "config.json").write_bytes((model_folder(name) / "config.json").read_bytes())
    measured = json.loads(CALIBRATION.read_text())
    (folder / "h200.json").write_text(json.dumps(measured))
    measured["machine"]["target"] = "cpu"
    (folder / "cpu.json").write_text(json.dumps(measured))
    rng = random.Random(31)
    for name, documents in (("train", 40), ("eval", 9)):
        rows = [{"input_ids": [rng.randrange(MIN_VOCABULARY) for _ in range(rng.randrange(4, 60))]} for _ in range(documents)]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def job(model: str, method: tuple[str, str], target: tuple[str, str], more: str) -> Job:
    """Named by the folder that is its own in what is kept. Budgets are given wherever the machine's would count."""
    (method_name, method_words), (target_name, target_words) = method, target
    budget = NO_BUDGET if "backend=" in target_words else "host_memory=16TiB"
    # With weight decay, so that programs show which tensors have none.
    return Job(f"{pathlib.PurePath(model)}/{method_name}/{target_name}",
               f"model={model} weight_decay=0.1 {method_words} {target_words} {more} {budget} threads=2")


def tiny_job(model: str, method: tuple[str, str], target: tuple[str, str]) -> Job:
    """Of a folder of make_materials: some are called as presets are."""
    return job(f"./{model}", method, target, "init=random max_length=64")


def family_jobs() -> list[Job]:
    """Every model with every method, each on one target, so that each pair of a method and a target meets several models."""
    pairs = itertools.product(enumerate(MODELS), enumerate(METHODS.items()))
    targets = list(TARGETS.items())
    return [tiny_job(model, method, targets[(m + n) % len(targets)]) for (m, model), (n, method) in pairs]


def method_jobs() -> list[Job]:
    """Every method on every target, of one model."""
    methods = METHODS | MORE_METHODS
    pairs = list(itertools.product(methods.items(), (TARGETS | MORE_TARGETS).items()))
    pairs += itertools.product([(name, words) for name, words in methods.items() if name.startswith("full")], OPTIMIZER_TARGETS.items())
    return [tiny_job("basic", method, target) for method, target in pairs]


def preset_jobs() -> list[Job]:
    """Every preset with every method, on two targets."""
    targets = list(PRESET_TARGETS.items())
    return [job(preset, (f"preset-{method[0]}", method[1]), targets[(p + m + more) % len(targets)], words)
            for (p, (preset, words)), (m, method) in itertools.product(enumerate(PRESETS.items()), enumerate(PRESET_METHODS.items()))
            for more in (0, 2)]


def inference_jobs() -> list[Job]:
    """Every model in two forms, each on one target, and one model in all of them on all targets."""
    def inference(model: str, form: str, target: str) -> Job:
        return tiny_job(model, (form, INFERENCE[form]), (target, TARGETS[target]))

    jobs = [inference(model, form, INFERENCE_TARGETS[(m + f) % len(INFERENCE_TARGETS)])
            for (m, model), (f, form) in itertools.product(enumerate(MODELS), enumerate(list(INFERENCE)[:2]))]
    return jobs + [inference("basic", form, target) for form, target in itertools.product(INFERENCE, INFERENCE_TARGETS)]


def frozen_jobs() -> list[Job]:
    """Each name once."""
    return list({each.name: each for each in [*family_jobs(), *method_jobs(), *preset_jobs(), *inference_jobs()]}.values())
