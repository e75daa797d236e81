"""Adapters in the forms that PEFT saves them in, and the log-probabilities that PEFT gives when it loads them again: ranks and
scales by module, the head, tables of embedding and head, rows of single tokens, vocabularies that were resized."""

import json
import pathlib

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

import golden_io
import tiny_models

NAME = "adapter_forms"
LENGTH = 24
UNTIED, TIED = "mistral", "qwen2"
PATTERNS = dict(rank_pattern={"layers.1.self_attn.q_proj": 3, r"^model\.layers\.0\..*": 4, "v_proj|down_proj": 1},
                alpha_pattern={"v_proj": 9, r"layers\.\d+\.mlp\.up_proj": 2.5, "proj": 77})
QV = dict(target_modules=["q_proj", "v_proj"])
BOTH = ["embed_tokens", "lm_head"]

# name: model, rows added to the vocabulary, what LoraConfig is made of, save_embedding_layers
FORMS = {
    "patterns": (UNTIED, 0, dict(target_modules=["q_proj", "v_proj", "up_proj", "down_proj"], **PATTERNS), "auto"),
    "patterns_rslora": (UNTIED, 0, dict(target_modules="all-linear", use_rslora=True, exclude_modules=["k_proj"], **PATTERNS), "auto"),
    "patterns_dora": (UNTIED, 0, dict(QV, use_dora=True, layers_to_transform=[1], **PATTERNS), "auto"),
    "patterns_embedding": (TIED, 0, dict(target_modules=["embed_tokens", "q_proj"], rank_pattern={"embed_tokens": 5},
                                         alpha_pattern={"model.embed_tokens": 3}), False),
    "head": (UNTIED, 0, dict(target_modules=["q_proj", "lm_head"], rank_pattern={"lm_head": 3}), "auto"),
    "head_tied": (TIED, 0, dict(target_modules=["q_proj", "lm_head"]), False),
    "head_and_embedding_tied": (TIED, 0, dict(target_modules=["q_proj", *BOTH]), "auto"),
    "saved": (UNTIED, 0, dict(QV, modules_to_save=BOTH), "auto"),
    "saved_tied": (TIED, 0, dict(QV, modules_to_save=BOTH), "auto"),
    "saved_embedding_tied": (TIED, 0, dict(QV, modules_to_save=["embed_tokens"]), "auto"),
    "saved_head_tied": (TIED, 0, dict(QV, modules_to_save=["lm_head"]), "auto"),
    "saved_ensured_tied": (TIED, 0, dict(QV, modules_to_save=["embed_tokens"], ensure_weight_tying=True), "auto"),
    "tables": (UNTIED, 0, QV, True),
    "tables_tied": (TIED, 0, QV, True),
    "rows": (UNTIED, 0, dict(QV, trainable_token_indices=[7, 3, 4, 5]), "auto"),
    "rows_tied": (TIED, 0, dict(QV, trainable_token_indices=[7, 3, 4, 5]), "auto"),
    "rows_of_both": (UNTIED, 0, dict(QV, trainable_token_indices={"embed_tokens": [3, 4], "lm_head": [9]}), "auto"),
    "rows_of_both_tied": (TIED, 0, dict(QV, trainable_token_indices={"embed_tokens": [3, 4], "lm_head": [3, 4]}), "auto"),
    "rows_apart_tied": (TIED, 0, dict(QV, trainable_token_indices={"embed_tokens": [3, 4], "lm_head": [9, 1]}), "auto"),
    "rows_of_head_tied": (TIED, 0, dict(QV, trainable_token_indices={"lm_head": [9, 1]}), "auto"),
    "resized": (UNTIED, 3, QV, True),
    "resized_tied": (TIED, 2, QV, True),
    "resized_saved": (UNTIED, 1, dict(QV, modules_to_save=BOTH), "auto"),
    "resized_saved_tied": (TIED, 1, dict(QV, modules_to_save=BOTH), "auto"),
    "resized_rows_tied": (TIED, 2, dict(QV, trainable_token_indices=[68, 67]), True),
    "head_table_tied": (TIED, 0, dict(target_modules=["q_proj", "lm_head"]), "auto"),
    "head_bias": ("phi", 0, dict(target_modules=["q_proj", "lm_head"]), "auto"),
    "embedding_ensured_tied": (TIED, 0, dict(target_modules=["q_proj", "embed_tokens"], ensure_weight_tying=True), "auto"),
    "head_ensured_tied": (TIED, 0, dict(target_modules=["q_proj", "lm_head"], ensure_weight_tying=True, use_rslora=True), False),
    "pattern_ensured_tied": (TIED, 0, dict(target_modules=r"model\.layers\.1\..*q_proj|.*embed_tokens", ensure_weight_tying=True), False),
}

# Files of a form with other names for its tensors; and what its config then has.
LANGUAGE_MODEL = "base_model.model.model.language_model."
RENAMED = {
    "wrapped_multimodal": ("patterns", lambda name: name.replace("base_model.model.model.", LANGUAGE_MODEL)),
    "wrapped_older_multimodal": ("saved", lambda name: name.replace("base_model.model.", "base_model.model.language_model.")),
    "wrapped_parallel": ("tables", lambda name: "module." + name.replace(".lora_A.", ".lora_A.default.").replace(".lora_B.", ".lora_B.default.")),
    "wrapped_compiled": ("rows", lambda name: name.replace("base_model.model.", "base_model.model._orig_mod.")),
}


def base_of(model_name: str, added: int):
    model = tiny_models.load(pathlib.Path("tests/goldens") / model_name / "model", torch.float32)
    if added:
        model.resize_token_embeddings(model.config.vocab_size + added, mean_resizing=False)
    return model


def trained(form: str) -> PeftModel:
    model_name, added, options, with_tables = FORMS[form]
    generator = torch.Generator().manual_seed(9000 + list(FORMS).index(form))
    torch.manual_seed(list(FORMS).index(form))
    base = base_of(model_name, added)
    adapted = get_peft_model(base, LoraConfig(**{"task_type": "CAUSAL_LM", "r": 2, "lora_alpha": 4, **options}))
    adapted.peft_config["default"].base_model_name_or_path = f"tests/goldens/{model_name}/model"
    tables = [base.get_input_embeddings().weight, base.get_output_embeddings().weight] if with_tables is True else []
    with torch.no_grad():
        for name, weight in sorted(adapted.named_parameters(remove_duplicate=True)):
            is_table = any(weight is table for table in tables) or name.endswith("token_adapter.base_layer.weight")
            if weight.requires_grad or is_table:
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return adapted


def logprobs(model_name: str, added: int, folder: pathlib.Path) -> list:
    """What PEFT gives for the adapter on the model of its vocabulary."""
    base = base_of(model_name, added)
    ids = golden_io.random_ids((1, LENGTH), base.config.vocab_size, 77)
    ids[0, :8] = torch.tensor([3, 9, 4, 1, 7, 5, base.config.vocab_size - 1, 3])
    adapted = PeftModel.from_pretrained(base, str(folder)).eval()
    with torch.no_grad():
        rows = torch.log_softmax(adapted(input_ids=ids, use_cache=False).logits[0].double(), -1)
    return [ids[0].tolist(), [float(rows[i, token]) for i, token in enumerate(ids[0, 1:])]]


def make(root: pathlib.Path) -> str:
    expected = {}
    for form, (model_name, added, _, with_tables) in FORMS.items():
        folder = root / NAME / form
        trained(form).save_pretrained(folder, save_embedding_layers=with_tables)
        (folder / "README.md").unlink()
        ids, values = logprobs(model_name, added, folder)
        expected[form] = {"model": model_name, "ids": ids, "logprobs": values}
    for name, (form, renamed) in RENAMED.items():
        folder = root / NAME / name
        folder.mkdir()
        tensors = load_file(root / NAME / form / "adapter_model.safetensors")
        save_file({renamed(key): value for key, value in tensors.items()}, folder / "adapter_model.safetensors")
        config = (root / NAME / form / "adapter_config.json").read_text()
        (folder / "adapter_config.json").write_text(config.replace("^model", r"^model\\.language_model") if name == "wrapped_multimodal" else config)
        expected[name] = expected[form]
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in expected.items()]
    (root / NAME / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return f"{NAME}: {len(expected)} adapters"
