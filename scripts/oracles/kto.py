"""The loss of answers that are desirable or not, with its gradients and what is measured of them, as TRL's KTOTrainer computes
them; and the tokens and mismatched answers that TRL makes of data with labels."""

import json
import pathlib
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoTokenizer
from trl import KTOConfig, KTOTrainer
from trl.trainer.kto_trainer import DataCollatorForUnpairedPreference

import golden_io
import preference
import tiny_models
from preference import ADAPTER, CHATS, DATA_LENGTH, LENGTH, MODEL, TEMPLATE, TEXTS, TOKENIZER

MEASURES = ("rewards/chosen", "rewards/rejected", "rewards/margins", "logps/chosen", "logps/rejected", "kl")
BETA, DESIRABLE, UNDESIRABLE = 0.25, 0.75, 1.5
# Tokens of the prompt and of the answer, and whether it is desirable; with the answer of the last the first is cut, as is the last.
EXAMPLES = ((5, 7, True), (1, 12, False), (11, 2, False), (8, 20, True))

LABELLED = [
    {"prompt": "What is a dog?", "completion": " A dog is an animal.", "label": True},
    {"prompt": "Name a colour:", "completion": " reddish", "label": False},
    {"prompt": "Is water wet?", "completion": " Yes, and it is cold in the sea. " * 4, "label": True},
    # The prompt alone is longer than the sequences may be.
    {"prompt": "one two three four five six seven eight nine ten eleven twelve " * 4, "completion": "no", "label": False},
    # Where the answer begins, tokens merge with the prompt's end.
    {"prompt": "un", "completion": "der the table", "label": False},
    {"prompt": "The sky is", "completion": " blue", "label": True},
]
LABELLED_CHATS = [
    {"prompt": chat["chosen"][:-1] if "prompt" not in chat else chat["prompt"], "completion": chat[side][-1:], "label": side == "chosen"}
    for chat, side in zip(CHATS, ("chosen", "rejected", "chosen"))]
# Records and the rows of a batch.
DATA = {"texts": (LABELLED, 3), "all at once": (LABELLED, 5), "chats": (LABELLED_CHATS, 3),
        "pairs": ([TEXTS[i] for i in (0, 1, 4)], 3), "pairs without prompts": (TEXTS[2:4], 2), "chat pairs": (CHATS[1:], 4)}


def trainer_of(folder: str, records: list, tokenizer, length: int, batch: int) -> KTOTrainer:
    """A trainer of the tiny model with the adapter of another golden, whose reference is the model without it."""
    model = tiny_models.build(MODEL)
    model.config._name_or_path = model.name_or_path = f"tests/goldens/{MODEL}/model"
    options = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **preference.OPTIONS)
    config = KTOConfig(output_dir=folder, beta=BETA, desirable_weight=DESIRABLE, undesirable_weight=UNDESIRABLE,
                       max_length=length, bf16=False, use_cpu=True, report_to="none", gradient_checkpointing=False,
                       disable_tqdm=True, per_device_train_batch_size=batch)
    trainer = KTOTrainer(model, args=config, train_dataset=Dataset.from_list(records), processing_class=tokenizer,
                         peft_config=options)
    set_peft_model_state_dict(trainer.model, load_file(f"tests/goldens/{ADAPTER}/adapter/adapter_model.safetensors"))
    return trainer


def examples(vocab: int, seed: int) -> list:
    """As KTOTrainer's data are, each with the answer of the one before it."""
    ids = iter(golden_io.random_ids((sum(each[0] + each[1] for each in EXAMPLES),), vocab, seed).tolist())
    made = [{"prompt_ids": [next(ids) for _ in range(prompt)], "completion_ids": [next(ids) for _ in range(answer)], "label": label}
            for prompt, answer, label in EXAMPLES]
    for i, each in enumerate(made):
        each["KL_completion_ids"] = made[i - 1]["completion_ids"]
    return made


def make_loss(name: str, seed: int, root: pathlib.Path) -> str:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(folder, LABELLED[:2], tokenizer, LENGTH, len(EXAMPLES))
        made = examples(trainer.model.config.vocab_size, seed)
        inputs = DataCollatorForUnpairedPreference(pad_token_id=0, max_length=LENGTH)(made)
        trainer.model.train()
        loss = trainer.compute_loss(trainer.model, inputs)
        loss.backward()
        measured = [trainer._metrics["train"][each][0] for each in MEASURES]
        reference = torch.stack(trainer.compute_ref_log_probs(trainer.model, inputs), dim=1)
    rows = preference.packed([{"prompt_ids": each["prompt_ids"], "chosen_ids": each["completion_ids"],
                               "rejected_ids": each["KL_completion_ids"]} for each in made])
    golden_io.write(root / name / "golden.safetensors", {
        **rows, "labels": torch.tensor([1 if each["label"] else -1 for each in made]), "loss": loss.reshape(1),
        "measures": torch.tensor(measured), "reference": reference.flatten(), **golden_io.gradients(trainer.model),
    })
    (root / name / "settings.json").write_text(json.dumps(
        {"model": f"tests/goldens/{MODEL}/model", "adapter": f"tests/goldens/{ADAPTER}/adapter", "beta": BETA,
         "desirable_weight": DESIRABLE, "undesirable_weight": UNDESIRABLE, "max_length": LENGTH, "pairs": len(EXAMPLES)},
        indent=1) + "\n")
    return f"{name}: loss {float(loss.detach()):.6f}, margin {measured[2]:.4f}, kl {measured[5]:.4f}"


def make_data(root: pathlib.Path) -> str:
    """Of each set of records what is kept, in order, before it is cut."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    tokenizer.chat_template = TEMPLATE
    found = {"max_length": DATA_LENGTH, "chat_template": TEMPLATE, "sets": []}
    for name, (records, batch) in DATA.items():
        with tempfile.TemporaryDirectory() as folder:
            rows = trainer_of(folder, records, tokenizer, DATA_LENGTH, batch).train_dataset
            kept = [{key: row[key] for key in ("prompt_ids", "completion_ids", "KL_completion_ids", "label")} for row in rows]
        found["sets"].append({"name": name, "records": records, "batch": batch, "kept": kept})
    folder = root / "label_data"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "golden.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
    return f"label_data: {sum(len(each['kept']) for each in found['sets'])} examples"
