"""The jobs in which scripts/compare_builds compares two builds, and the files that they need; nothing but Python's own library."""

import dataclasses
import itertools
import json
import pathlib
import random
import shlex

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens"
RECOMPUTES = ("none", "gate_up", "attention", "all_but_attention", "layer")
KEEPS_LITTLE = ("all_but_attention", "layer")  # which activation_offloading goes with
# More than any preset takes, so that no other recipe is searched for.
NO_BUDGET = "device_memory=16TiB host_memory=16TiB"

# A shape whose products fill the cpu backend's blocks, with remainders; goldens are too small for that.
WIDE = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 128, "intermediate_size": 352,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 515,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "initializer_range": 0.05,
        "tie_word_embeddings": True, "hidden_act": "silu"}
MIN_VOCABULARY = 47  # of the goldens' models

# Model of tests/goldens, and the recipe.
RECIPES = {
    "full": ("basic", "method=full optim=adamw weight_decay=0.1 eval_steps=2"),
    "full, tied, 8-bit moments": ("grouped_tied", "method=full optim=adamw_8bit gradient_accumulation_steps=2 recompute=attention"),
    "full, bf16, in the backward pass": ("qwen2", "method=full optim=adamw_bf16 optim_in_backward=true max_grad_norm=0"),
    "full, 8 bits, in the backward pass, offloaded": (
        "qwen3", "method=full optim=adamw_8bit optim_in_backward=true max_grad_norm=0 recompute=layer activation_offloading=true"),
    "full, fused projections": ("phi3", "method=full optim=adamw_bf16 recompute=gate_up gradient_accumulation_steps=3"),
    "full, bf16 gradients": ("biases", "method=full optim=adamw gradient_dtype=bf16"),
    "full, wide heads": ("head_dim", "method=full recompute=all_but_attention max_grad_norm=0.1"),
    "lora, window, dropout": ("mistral", "method=lora lora_dropout=0.2 recompute=attention gradient_accumulation_steps=2 eval_steps=2"),
    "lora, biases, offloaded": ("biases", "method=lora recompute=all_but_attention activation_offloading=true"),
    "lora, q and v, unpacked": (
        "rope_llama3", "method=lora target_modules=q_proj,v_proj use_rslora=true packing=false recompute=layer"),
    "lora, long rope, 8-bit moments": ("phi3_long", "method=lora optim=adamw_8bit recompute=gate_up lora_dropout=0.1"),
    "lora, linear rope": ("rope_linear", "method=lora optim=adamw_bf16 train_on_prompt=true shuffle=false"),
    "qlora, 16-bit scales": ("qwen3", "method=qlora double_quant=false recompute=layer eval_steps=2"),
    "qlora, accumulated": ("qwen2", "method=qlora recompute=gate_up lora_dropout=0.1 gradient_accumulation_steps=2"),
    "qlora, fused, offloaded": ("phi3", "method=qlora recompute=all_but_attention activation_offloading=true"),
    "qlora, stored in 4 bits": ("nf4/double", "method=qlora recompute=attention optim=adamw_8bit"),
}
# On the cpu alone; the reference backend takes seconds a step.
WIDE_RECIPES = {
    "wide full": "method=full eval_steps=2",
    "wide full, 8 bits, offloaded": "method=full optim=adamw_8bit recompute=layer activation_offloading=true gradient_accumulation_steps=2",
    "wide full, bf16, in the backward pass": "method=full optim=adamw_bf16 optim_in_backward=true max_grad_norm=0 recompute=gate_up",
    "wide lora, dropout": "method=lora lora_dropout=0.1 gradient_accumulation_steps=2 recompute=attention",
    "wide lora, offloaded": "method=lora recompute=all_but_attention activation_offloading=true",
    "wide qlora": "method=qlora eval_steps=2",
    "wide qlora, 16-bit scales": "method=qlora double_quant=false recompute=layer gradient_accumulation_steps=2",
}
QUICK_PRESETS = ["smollm2-135m"]
QUICK_RECOMPUTES = ("layer",)
QUICK_RECIPES = ("full", "qlora, accumulated")
TRAIN = ("max_length=48 per_device_train_batch_size=2 max_steps=4 warmup_steps=1 learning_rate=0.002 save_steps=2 "
         "logging_steps=100 threads=2")
GENERATED = "ids=1,5,9,12,40,3,7 max_new_tokens=16 threads=2"
SCORED = "ids=1,5,9,12,40,3,7,7,30,2,11,46,0,21,6 threads=2"

METHODS = {"full": "method=full", "lora": "method=lora", "qlora": "method=qlora double_quant=false", "qlora dq": "method=qlora double_quant=true"}
# No preset has fewer than 2048 positions.
SHAPES = {
    "cpu 1 x 1024": "backend=cpu max_length=1024",
    "cpu 4 x 512, 8-bit moments, accumulated, dropout":
        "backend=cpu compute_dtype=fp32 per_device_train_batch_size=4 max_length=512 gradient_accumulation_steps=2 optim=adamw_8bit",
    "h200 1 x 2048, in the backward pass": "device=h200 max_length=2048 optim=adamw_bf16 optim_in_backward=true max_grad_norm=0",
    "b200 8 x 2048, offloaded": "device=b200 per_device_train_batch_size=8 max_length=2048",
}
PLANNED = {"llama-3.1-8b": "method=lora", "llama-3.1-70b": "method=lora recompute=layer"}


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a build: its name here, and its command line as a shell would read it, {out} standing for a folder of its own."""

    name: str
    line: str

    def words(self, out: str = "") -> list[str]:
        return [word.replace("{out}", out) for word in shlex.split(self.line)]


def word_of(key: str, path: pathlib.Path) -> str:
    return shlex.quote(f"{key}={path}")


def make_materials(folder: pathlib.Path) -> None:
    """The wide shape, and documents of token ids, some with a prompt that is not trained."""
    (folder / "wide").mkdir()
    (folder / "wide" / "config.json").write_text(json.dumps(WIDE) + "\n")
    rng = random.Random(20)
    for name, documents in (("train", 30), ("eval", 7)):
        with open(folder / f"{name}.jsonl", "w") as file:
            for index in range(documents):
                ids = [rng.randrange(MIN_VOCABULARY) for _ in range(rng.randrange(4, 40))]
                labels = [-100] * (len(ids) // 3) + ids[len(ids) // 3:] if index % 3 == 0 else ids
                file.write(json.dumps({"input_ids": ids, "labels": labels}) + "\n")


def model_folder(golden: str) -> pathlib.Path:
    folder = GOLDENS / golden
    return folder / "model" if (folder / "model").exists() else folder


def training_jobs(materials: pathlib.Path, cpu_dtypes: list[str], quick: bool) -> list[Job]:
    """Every recipe on the cpu in the element types that it multiplies, and on the reference backend in both."""
    data = f"{word_of('data', materials / 'train.jsonl')} output_dir={{out}}/run {TRAIN}"
    cpu = [("cpu", dtype) for dtype in cpu_dtypes]
    reference = [] if quick else [("reference", dtype) for dtype in ("fp32", "bf16")]
    asked = [(name, word_of("model", model_folder(model)), recipe, cpu + reference) for name, (model, recipe) in RECIPES.items()
             if not quick or name in QUICK_RECIPES]
    if not quick:
        asked += [(name, f"{word_of('model', materials / 'wide')} init=random", recipe, cpu) for name, recipe in WIDE_RECIPES.items()]
    jobs = []
    for name, model, recipe, places in asked:
        more = "packing=true max_segments=8" if "packing=false" not in recipe else ""
        if "eval_steps" in recipe:
            more += " " + word_of("eval_data", materials / "eval.jsonl")
        # Weights and gradients in bf16 need products in bf16.
        jobs += [Job(f"{name}; {backend} {dtype}", f"train {model} {data} {recipe} {more} backend={backend} compute_dtype={dtype}")
                 for backend, dtype in places if dtype == "bf16" or "bf16" not in recipe]
    return jobs


def inference_jobs(materials: pathlib.Path, quick: bool) -> list[Job]:
    bases = {"fp32": "compute_dtype=fp32", "16 bits or fp32": "compute_dtype=auto", "nf4": "load_in_4bit=true double_quant=false",
             "nf4 dq": "load_in_4bit=true"}
    models = {name: word_of("model", model_folder(name)) for name in ("qwen3", "phi3", "mistral", "grouped_tied")}
    models["wide"] = f"{word_of('model', materials / 'wide')} init=random"
    jobs = []
    for (model, words), (base, of_base) in itertools.product(models.items(), bases.items()):
        if quick and (model, base) != ("qwen3", "nf4"):
            continue
        for backend in ("cpu",) if quick else ("cpu", "reference"):
            job = f"{words} {of_base} backend={backend} --json"
            ending = f"{model}; {base}; backend={backend}"
            jobs += [Job(f"generate {ending}", f"generate {job} {GENERATED} temperature=0"),
                     Job(f"generate sampled {ending}", f"generate {job} {GENERATED} top_k=20 top_p=0.95"),
                     Job(f"score {ending}", f"score {job} {SCORED} logits_out={{out}}/logits.safetensors")]
    return jobs


def plan_jobs(presets: list[str], recomputes: tuple[str, ...], everything: bool) -> list[Job]:
    """Every preset x method x recompute in every shape; or every other one in one shape, so that each preset meets each method
    and shape, and each pair of method and recompute meets each shape."""
    jobs = []
    for (p, preset), (m, method), (r, recompute) in itertools.product(enumerate(presets), enumerate(METHODS), enumerate(recomputes)):
        for s, (shape, words) in enumerate(SHAPES.items()):
            if not everything and (p + m + r) % (2 * len(SHAPES)) != 2 * s:
                continue
            if "dropout" in shape and method != "full":
                words += " lora_dropout=0.05"
            if "offloaded" in shape and recompute in KEEPS_LITTLE:
                words += " activation_offloading=true"
            jobs.append(Job(f"{preset} {method} recompute={recompute}, {shape}",
                            f"plan model={preset} {METHODS[method]} recompute={recompute} {words} {NO_BUDGET} threads=2 --json"))
    return jobs


def planning_jobs(quick: bool) -> list[Job]:
    recipes = {"smollm2-135m": "method=lora"} if quick else PLANNED
    return [Job(f"{model} {recipe}", f"plan model={model} {recipe} backend=cpu {NO_BUDGET} --json") for model, recipe in recipes.items()]


def step_jobs(quick: bool) -> list[Job]:
    """A small job of each method, then shapes that wide products, long inner dimensions and large vocabularies decide."""
    def job(method: str, name: str, rows: int, length: int, model: str = "") -> Job:
        return Job(f"{method} step of {name}, {rows} x {length}",
                   f"bench step {model or f'model={name}'} init=random max_length={length} per_device_train_batch_size={rows} "
                   f"method={method} backend=cpu --json")

    if quick:
        return [job("lora", "basic", 1, 64, word_of("model", model_folder("basic")))]
    return [*(job(method, "smollm2-135m", 1, 256) for method in ("lora", "qlora", "full")),
            job("lora", "smollm2-135m", 2, 1024), job("lora", "qwen3-0.6b", 1, 1024), job("qlora", "qwen3-0.6b", 1, 1024),
            job("lora", "llama-3.2-1b", 1, 512), job("lora", "llama-3.2-1b", 4, 512), job("lora", "tinyllama-1.1b", 1, 2048),
            job("full", "qwen2.5-0.5b", 2, 512)]
