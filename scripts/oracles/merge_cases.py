"""The adapters that check_merge merges: twenty and more of PEFT and of `snug train`, on models of the goldens. Everything is drawn from seeds.

A case's folder has `base`, `adapter`, the same in the folder of a run in fp32 (`run/adapter`), and, where the base is in 4 bits, `base_nf4`. What PyTorch makes of it is in check_merge.
"""

import dataclasses
import json
import pathlib
import shutil
import subprocess

import torch
from peft import LoraConfig, PeftModel, TaskType, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoModelForSeq2SeqLM, Gemma3Config,
                          Gemma3ForConditionalGeneration)

import adapter_forms
import golden_io
import tiny_models

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens"
LENGTH, DOCUMENTS = 24, 12
QV = dict(target_modules=["q_proj", "v_proj"])
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]


@dataclasses.dataclass
class Case:
    name: str
    model: str  # a golden's, "wrapper", or a folder's whole path
    dtype: torch.dtype = torch.bfloat16  # in which the base is stored
    peft: dict = None  # what LoraConfig is made of
    train: list = None  # or settings of snug train
    renamed: object = None  # a function of a tensor's name, for adapters that others have wrapped
    scale: float = 0.1  # of what is added to weights in place of training
    added: int = 0  # rows of the vocabulary
    tables: object = "auto"  # save_embedding_layers
    refused: str = ""  # a word of the refusal where that is what is right
    merge: tuple = ()  # settings of snug merge
    form: str = ""  # a golden of adapter_forms


BY_PEFT = [
    Case("peft_rslora_patterns", "mistral", peft=dict(target_modules="all-linear", use_rslora=True, r=4, lora_alpha=6, rank_pattern={"layers.1.self_attn.q_proj": 3, "down_proj": 1},
                                                      alpha_pattern={"v_proj": 9, r"layers\.\d+\.mlp\.up_proj": 2.5})),
    Case("peft_dora_tied", "qwen2", peft=dict(target_modules=ATTENTION + MLP, use_dora=True)),
    Case("peft_dora_gpt2", "gpt2", torch.float32, peft=dict(target_modules=["c_attn", "c_fc"], use_dora=True, fan_in_fan_out=True)),
    Case("peft_gpt2", "gpt2", torch.float16, peft=dict(target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    Case("peft_embedding_untied", "mistral", peft=dict(target_modules=["embed_tokens", "q_proj"]), tables=False),
    Case("peft_embedding_tied", "qwen2", peft=dict(target_modules=["embed_tokens", "q_proj"]), tables=False),
    Case("peft_head_untied", "mistral", torch.float16, peft=dict(target_modules=["lm_head", "q_proj", "embed_tokens"]), tables=False),
    Case("peft_head_tied", "qwen2", peft=dict(target_modules=["lm_head", "q_proj"]), tables=False),
    Case("peft_saved_head_norm", "qwen3", peft=dict(target_modules=["o_proj"], modules_to_save=["lm_head", "norm", "q_norm"])),
    Case("peft_saved_tied", "qwen2", peft=dict(QV, modules_to_save=["embed_tokens"])),
    Case("peft_tokens_tied", "qwen2", peft=dict(QV, trainable_token_indices=[7, 3, 4])),
    Case("peft_tokens_untied", "mistral", peft=dict(QV, trainable_token_indices=[7, 3, 4])),
    Case("peft_resized", "mistral", peft=QV, added=5, tables=True),
    Case("peft_resized_tied_saved", "qwen2", peft=dict(QV, modules_to_save=["embed_tokens", "lm_head"]), added=2),
    Case("peft_ensured_tied", "qwen2", peft=dict(target_modules=["q_proj", "embed_tokens"], ensure_weight_tying=True), tables=False),
    Case("peft_gemma3_wrapper", "wrapper", peft=dict(target_modules=r".*language_model.*\.(q_proj|down_proj)")),
    Case("peft_mixtral_attention", "mixtral", peft=dict(target_modules=ATTENTION)),
    Case("peft_qwen3_moe_attention", "qwen3_moe", peft=dict(target_modules=["q_proj", "o_proj"], use_dora=True)),
    Case("peft_gpt_oss_attention", "gpt_oss", peft=dict(target_modules=ATTENTION)),
    Case("peft_target_parameters", "mixtral", peft=dict(target_modules=["q_proj"], target_parameters=["mlp.experts.down_proj"], r=2, lora_alpha=4, lora_dropout=0.0)),
    Case("peft_phi_head_bias", "phi", peft=dict(target_modules=["q_proj", "dense", "fc1", "lm_head"]), tables=False),
    Case("peft_phi3", "phi3", peft=dict(target_modules=["qkv_proj", "gate_up_proj", "down_proj"])),
    Case("peft_gpt_neox", "gpt_neox", torch.float16, peft=dict(target_modules=["query_key_value", "dense", "dense_h_to_4h"])),
    Case("peft_bloom", "bloom", peft=dict(target_modules=["query_key_value", "dense"], use_dora=True)),
    Case("peft_falcon", "falcon", peft=dict(target_modules=["query_key_value", "dense_4h_to_h"])),
    Case("peft_falcon_grouped", "falcon_grouped", peft=dict(target_modules=["query_key_value"], use_rslora=True)),
    Case("peft_olmo2", "olmo2", peft=dict(target_modules="all-linear")),
    Case("peft_stablelm", "stablelm", peft=dict(target_modules=ATTENTION)),
    Case("peft_apertus", "apertus", peft=dict(target_modules="all-linear")),
    Case("peft_lfm2_dora", "lfm2", peft=dict(target_modules="all-linear", use_dora=True)),
    Case("peft_stablelm_12b", "stablelm_12b", peft=dict(target_modules="all-linear")),
    Case("peft_gemma", "gemma", peft=dict(target_modules="all-linear", modules_to_save=["norm"])),
    Case("peft_gemma2_dora", "gemma2", peft=dict(target_modules=ATTENTION, use_dora=True)),
    Case("peft_t5", "t5", peft=dict(target_modules=["q", "v", "o", "wi"])),
    Case("peft_t5_gated_dora", "t5_gated", peft=dict(target_modules=["q", "wi_0"], use_dora=True)),
    Case("peft_compiled", "qwen3", peft=QV, renamed=lambda name: name.replace("base_model.model.", "base_model.model._orig_mod.")),
    Case("peft_parallel", "mistral", peft=QV, renamed=lambda name: "module." + name.replace(".lora_A.", ".lora_A.default.").replace(".lora_B.", ".lora_B.default.")),
    Case("peft_bias", "biases", peft=dict(target_modules=["q_proj"], bias="all"), refused="bias"),
    Case("peft_bias_of_none", "mistral", peft=dict(target_modules=["q_proj"], bias="all")),
    Case("peft_lora_bias", "mistral", peft=dict(target_modules=["q_proj"], lora_bias=True), refused="lora_bias"),
    Case("peft_sharded", "sharded_bf16", peft=dict(target_modules="all-linear")),
]

STEPS = ["max_steps=3", "learning_rate=0.05", "warmup_steps=0", "backend=cpu", "compute_dtype=fp32"]
BY_SNUG = [
    Case("snug_mistral", "mistral", train=["method=lora"]),
    Case("snug_qwen2_dora", "qwen2", train=["method=lora", "use_dora=true"]),
    Case("snug_gpt2", "gpt2", torch.float16, train=["method=lora", "use_rslora=true"]),
    Case("snug_gpt2_dora", "gpt2", torch.float32, train=["method=lora", "use_dora=true"]),
    Case("snug_gemma3", "gemma3", train=["method=lora", "lora_dropout=0.1"]),
    Case("snug_apertus", "apertus", train=["method=lora"]),
    Case("snug_lfm2", "lfm2", train=["method=lora"]),
    Case("snug_stablelm_12b", "stablelm_12b", train=["method=lora"]),
    Case("snug_gemma3_wrapper", "wrapper", train=["method=lora"]),
    Case("snug_gemma_embedding", "gemma", train=["method=lora", "target_modules=embed_tokens,q_proj"]),
    Case("snug_embedding_untied", "biases", train=["method=lora", "target_modules=embed_tokens,v_proj"]),
    Case("snug_saved", "qwen3", train=["method=lora", "modules_to_save=embed_tokens,lm_head"]),
    Case("snug_saved_norms", "stablelm", train=["method=lora", "modules_to_save=norm"]),
    Case("snug_gpt_neox_head", "gpt_neox", train=["method=lora", "modules_to_save=lm_head"]),
    Case("snug_mixtral", "mixtral", train=["method=lora"]),
    Case("snug_gpt_oss", "gpt_oss", train=["method=lora"]),
    Case("snug_phi3_dora", "phi3", train=["method=lora", "use_dora=true"]),
    Case("snug_t5", "t5", train=["method=lora"]),
    Case("snug_bloom", "bloom", train=["method=lora"]),
    Case("snug_falcon_rw", "falcon_rw", train=["method=lora", "use_rslora=true"]),
    Case("snug_qlora", "rope_llama3", train=["method=qlora"], merge=("merge_into=16bit",)),
    Case("snug_qlora_nf4", "rope_llama3", train=["method=qlora"], merge=("merge_into=nf4",)),
    Case("snug_qdora_nf4", "grouped_tied", train=["method=qlora", "use_dora=true", "double_quant=false"], merge=("merge_into=nf4",)),
    Case("snug_adapter_v2", "mistral", train=["method=adapter_v2"], refused="LLaMA-Adapter"),
]


def of_form(form: str) -> Case:
    model, added, *_ = adapter_forms.FORMS[adapter_forms.RENAMED.get(form, (form,))[0]]
    return Case("form_" + form, model, torch.float32, added=added, form=form)


BY_FORM = [of_form(form) for form in [*adapter_forms.FORMS, *adapter_forms.RENAMED]]


def of_real_model(folder: pathlib.Path) -> list:
    """Adapters of a model in a folder with names as llama has them."""
    return [Case("real_peft_lora", str(folder), peft=dict(target_modules="all-linear", r=16, lora_alpha=32), scale=0.01),
            Case("real_peft_dora", str(folder), peft=dict(target_modules=ATTENTION, use_dora=True), scale=0.01),
            Case("real_snug_lora", str(folder), train=["method=lora", "learning_rate=0.002"]),
            Case("real_snug_qlora_16bit", str(folder), train=["method=qlora", "learning_rate=0.002"], merge=("merge_into=16bit",)),
            Case("real_snug_qlora_nf4", str(folder), train=["method=qlora", "learning_rate=0.002"], merge=("merge_into=nf4",))]


CASES = {case.name: case for case in BY_PEFT + BY_SNUG + BY_FORM}


def auto_class(folder: pathlib.Path):
    config = AutoConfig.from_pretrained(folder)
    if hasattr(config, "vision_config"):
        return AutoModelForImageTextToText
    return AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM


def load(folder: pathlib.Path, dtype=torch.float32, **options):
    chosen = tiny_models.implementation_of(AutoConfig.from_pretrained(folder).get_text_config())
    return auto_class(folder).from_pretrained(folder, dtype=dtype, local_files_only=True, **chosen, **options).eval()


def write_wrapper(folder: pathlib.Path, dtype: torch.dtype) -> None:
    """A small Gemma 3 that reads images."""
    torch.manual_seed(31)
    text = dict(tiny_models.MODELS["gemma3"].fields) | dict(max_position_embeddings=256, bos_token_id=1, eos_token_id=2)
    vision = dict(hidden_size=8, intermediate_size=12, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=40, boi_token_index=38, eoi_token_index=39)
    model = Gemma3ForConditionalGeneration(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape))
    model.to(dtype).save_pretrained(folder)


def write_base(case: Case, folder: pathlib.Path) -> None:
    """The golden's folder with its weights in the case's type."""
    if case.model == "wrapper":
        return write_wrapper(folder, case.dtype)
    if pathlib.Path(case.model).is_absolute():
        return folder.symlink_to(case.model)
    shutil.copytree(GOLDENS / case.model / "model", folder)
    (folder / "config_v4.json").unlink(missing_ok=True)
    for path in folder.glob("*.safetensors"):
        save_file({name: value.to(case.dtype) if value.is_floating_point() else value for name, value in load_file(path).items()}, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["dtype"] = str(case.dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def ids_of(case: Case, vocab: int) -> list:
    return golden_io.random_ids((DOCUMENTS, LENGTH), vocab, 5 + len(case.name)).tolist()


def write_data(case: Case, folder: pathlib.Path) -> None:
    """Documents of ids: what adapters train on, and what a drift is measured on."""
    config = AutoConfig.from_pretrained(folder / "base")
    lines = [{"input_ids": ids} | ({"labels": ids[::-1]} if config.is_encoder_decoder else {}) for ids in ids_of(case, config.get_text_config().vocab_size)]
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def resized(model, added: int):
    if added:
        model.resize_token_embeddings(model.config.get_text_config().vocab_size + added, mean_resizing=False)
    return model


def train_with_peft(case: Case, folder: pathlib.Path) -> None:
    """An adapter whose every trained weight has been moved by about as much as training moves one."""
    torch.manual_seed(len(case.name))
    base = resized(load(folder / "base"), case.added)
    task = TaskType.SEQ_2_SEQ_LM if base.config.is_encoder_decoder else TaskType.CAUSAL_LM
    adapted = get_peft_model(base, LoraConfig(**{"task_type": task, "r": 4, "lora_alpha": 8, **case.peft}))
    tables = [base.get_input_embeddings().weight, base.get_output_embeddings().weight] if case.tables is True else []
    generator = torch.Generator().manual_seed(40 + len(case.name))
    with torch.no_grad():
        for name, weight in sorted(adapted.named_parameters()):
            if weight.requires_grad or any(weight is table for table in tables):
                weight.add_(case.scale * torch.randn(weight.shape, generator=generator))
    adapted.peft_config["default"].base_model_name_or_path = str(folder / "base")
    adapted.save_pretrained(folder / "adapter", save_embedding_layers=case.tables)
    if case.renamed:
        shutil.copytree(folder / "adapter", folder / "adapter_of_peft")
        path = folder / "adapter/adapter_model.safetensors"
        save_file({case.renamed(name): value for name, value in load_file(path).items()}, path)


def write_text_part(folder: pathlib.Path) -> pathlib.Path:
    """The text model of a wrapper in a folder of its own, as docs/multimodal.md takes it out."""
    whole = load(folder / "base")
    text = AutoModelForCausalLM.from_config(whole.config.get_text_config(), dtype=whole.dtype)
    text.base_model.load_state_dict(whole.get_decoder().state_dict())
    text.lm_head.load_state_dict(whole.lm_head.state_dict())
    text.save_pretrained(folder / "text")
    return folder / "text"


def write_for_wrapper(folder: pathlib.Path) -> None:
    """The adapter of a text part as PEFT loads it on the whole model."""
    adapter = folder / "adapter_of_peft"
    adapter.mkdir()
    tensors = load_file(folder / "adapter/adapter_model.safetensors")
    save_file({name.replace("base_model.model.model.", adapter_forms.LANGUAGE_MODEL): value for name, value in tensors.items()}, adapter / "adapter_model.safetensors")
    config = json.loads((folder / "adapter/adapter_config.json").read_text())
    modules = sorted({name.split(".")[-3] for name in tensors if ".lora_A." in name})
    config["target_modules"] = r".*language_model.*\.({})".format("|".join(modules))
    (adapter / "adapter_config.json").write_text(json.dumps(config))


def train_with_snug(case: Case, folder: pathlib.Path, snug: str) -> None:
    model = write_text_part(folder) if case.model == "wrapper" else folder / "base"
    words = [snug, "train", f"model={model}", f"data={folder / 'data.jsonl'}", f"output_dir={folder / 'run'}", f"max_length={LENGTH}", *STEPS, *case.train,
             *([] if case.train == ["method=adapter_v2"] else ["lora_r=4"])]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{case.name}: {' '.join(words)}\n{run.stderr}")
    shutil.copytree(folder / "run/adapter", folder / "adapter")
    if case.model == "wrapper":
        write_for_wrapper(folder)
    if "method=qlora" in case.train:
        nested = [word for word in case.train if word.startswith("double_quant")]
        subprocess.run([snug, "quantize", f"model={folder / 'base'}", f"output_dir={folder / 'base_nf4'}", *nested], check=True, capture_output=True)


def write_run(folder: pathlib.Path) -> None:
    """What tells `snug merge` that the adapter was trained in fp32, so that drifts are compared in it, whatever type is written."""
    shutil.copytree(folder / "adapter", folder / "run/adapter")
    (folder / "run/.snug_run.json").write_text("{}")
    (folder / "run/recipe.yaml").write_text("compute_dtype: fp32\n")


def build(case: Case, folder: pathlib.Path, snug: str) -> None:
    if (folder / "run/adapter").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if case.form:
        shutil.copytree(GOLDENS / adapter_forms.NAME / case.form, folder / "adapter")
    write_base(case, folder / "base")
    write_data(case, folder)
    if case.peft:
        train_with_peft(case, folder)
    if case.train:
        train_with_snug(case, folder, snug)
    else:
        write_run(folder)
