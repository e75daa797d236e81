"""Losses of pairs of answers, with their gradients and what is measured of them, as TRL's trainers compute them; and the
tokens that TRL makes of preference data."""

import json
import pathlib
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoTokenizer
from trl import DPOConfig, DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

import golden_io
import lora
import tiny_models

ADAPTER = "lora_gpt2"
MODEL, OPTIONS = lora.ADAPTERS[ADAPTER]
TOKENIZER = "examples/wordnet"
MEASURES = ("rewards/chosen", "rewards/rejected", "rewards/accuracies", "rewards/margins", "logps/chosen", "logps/rejected")
BETA, LENGTH, DATA_LENGTH = 0.25, 23, 40
# Tokens of the prompt, of what was chosen and of what was rejected; the last pair is cut.
PAIRS = ((5, 7, 9), (1, 3, 12), (11, 2, 1), (8, 12, 20))

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>: {{ m['content'] }}{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}<assistant>: {% endif %}")

TEXTS = [
    {"prompt": "What is a dog?", "chosen": " A dog is an animal.", "rejected": " A dog is a plant, they say."},
    {"prompt": "Name a colour:", "chosen": " red", "rejected": " reddish"},
    # Without a prompt it is what both begin with; the space before the difference is the answers'.
    {"chosen": "The sky is blue today", "rejected": "The sky is green"},
    {"chosen": "Water is wet", "rejected": "Water is wet and cold"},
    # Where the answers begin, tokens merge with the prompt's end.
    {"prompt": "un", "chosen": "der the table", "rejected": "likely"},
    # The prompt alone is longer than the sequences may be.
    {"prompt": "one two three four five six seven eight nine ten eleven twelve " * 4, "chosen": "yes", "rejected": "no"},
]

CHATS = [
    {"prompt": [{"role": "user", "content": "What is a dog?"}],
     "chosen": [{"role": "assistant", "content": "An animal."}],
     "rejected": [{"role": "assistant", "content": "A plant, they say."}]},
    {"chosen": [{"role": "user", "content": "Is water wet?"}, {"role": "assistant", "content": "Yes."}],
     "rejected": [{"role": "user", "content": "Is water wet?"}, {"role": "assistant", "content": "No, never."}]},
    {"chosen": [{"role": "user", "content": "A colour?"}, {"role": "assistant", "content": "Red."},
                {"role": "user", "content": "And another?"}, {"role": "assistant", "content": "Blue."}],
     "rejected": [{"role": "user", "content": "A colour?"}, {"role": "assistant", "content": "Red."},
                  {"role": "user", "content": "And another?"}, {"role": "assistant", "content": "Red."}]},
]


def write_settings(folder: pathlib.Path, full_model: str = "") -> None:
    """What a golden of pairs was made of; without an adapter where all weights of full_model train."""
    (folder / "settings.json").write_text(json.dumps(
        {"model": f"tests/goldens/{full_model or MODEL}/model", "adapter": "" if full_model else f"tests/goldens/{ADAPTER}/adapter",
         "beta": BETA, "max_length": LENGTH, "pairs": len(PAIRS)}, indent=1) + "\n")


def other_weights(name: str):
    """The tiny model with other weights, which one that trains whole is compared with."""
    model = tiny_models.build(name)
    generator = torch.Generator().manual_seed(5002)
    with torch.no_grad():
        for _, weight in sorted(model.named_parameters()):
            weight.add_(0.05 * torch.randn(weight.shape, generator=generator))
    return model


def trainer_of(folder: str, records: list, tokenizer, length: int, full_model: str = "", **loss) -> DPOTrainer:
    """A trainer of the tiny model with the adapter of another golden, whose reference is the model without it, or of all
    weights of full_model, whose reference has other weights."""
    model = tiny_models.build(full_model or MODEL)
    model.config._name_or_path = model.name_or_path = f"tests/goldens/{full_model or MODEL}/model"
    options = None if full_model else LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **OPTIONS)
    config = DPOConfig(output_dir=folder, beta=BETA, max_length=length, bf16=False, use_cpu=True, report_to="none",
                       gradient_checkpointing=False, disable_tqdm=True, **loss)
    trainer = DPOTrainer(model, ref_model=other_weights(full_model) if full_model else None, args=config,
                         train_dataset=Dataset.from_list(records), processing_class=tokenizer, peft_config=options)
    if not full_model:
        set_peft_model_state_dict(trainer.model, load_file(f"tests/goldens/{ADAPTER}/adapter/adapter_model.safetensors"))
    return trainer


def pairs(vocab: int) -> list:
    ids = iter(golden_io.random_ids((sum(sum(pair) for pair in PAIRS),), vocab, 5001).tolist())
    return [{key: [next(ids) for _ in range(count)] for key, count in zip(("prompt_ids", "chosen_ids", "rejected_ids"), pair)}
            for pair in PAIRS]


def packed(examples: list, learns_prompts: bool = False) -> dict:
    """Rows of two sequences side by side, as snug lays them out, with the bounds of each in the flattened rows.
    learns_prompts: what was chosen is learned with its prompt."""
    ids, targets, positions, bounds = [], [], [], []
    for row, example in enumerate(examples):
        begin = row * 2 * LENGTH
        for key in ("chosen_ids", "rejected_ids"):
            sequence = (example["prompt_ids"] + example[key])[:LENGTH]
            labels = ([golden_io.IGNORED] * len(example["prompt_ids"]) + example[key])[:LENGTH]
            if learns_prompts and key == "chosen_ids":
                labels = sequence
            ids += sequence
            targets += labels[1:] + [golden_io.IGNORED]
            positions += range(len(sequence))
            bounds.append([begin, begin + len(sequence)])
            begin += len(sequence)
        rest = (row + 1) * 2 * LENGTH - begin
        ids += [0] * rest
        targets += [golden_io.IGNORED] * rest
        positions += [0] * rest
    return {name: torch.tensor(values) for name, values in
            (("ids", ids), ("targets", targets), ("positions", positions), ("bounds", bounds))}


def make_loss(root: pathlib.Path, name: str = "dpo", full_model: str = "") -> str:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(folder, TEXTS[:2], tokenizer, LENGTH, full_model)
        examples = pairs(trainer.model.config.vocab_size)
        inputs = DataCollatorForPreference(pad_token_id=0, max_length=LENGTH)(examples)
        trainer.model.train()
        loss = trainer.compute_loss(trainer.model, inputs)
        loss.backward()
        measured = [trainer._metrics["train"][each][0] for each in MEASURES]
        reference = torch.stack(trainer.compute_ref_log_probs(trainer.model if not full_model else trainer.ref_model, inputs), dim=1)
    golden_io.write(root / name / "golden.safetensors", {
        **packed(examples), "loss": loss.reshape(1), "measures": torch.tensor(measured),
        "reference": reference.flatten(), **golden_io.gradients(trainer.model),
    })
    write_settings(root / name, full_model)
    return f"{name}: loss {float(loss.detach()):.6f}, accuracy {measured[2]:.2f}, margin {measured[3]:.4f}"


LOSSES = (("sigmoid", 0.0), ("hinge", 0.0), ("ipo", 0.0), ("exo_pair", 0.01), ("nca_pair", 0.0), ("robust", 0.0), ("robust", 0.2),
          ("bco_pair", 0.0), ("sppo_hard", 0.0), ("apo_zero", 0.0), ("apo_down", 0.0), ("sigmoid_norm", 0.0))


def make_losses(root: pathlib.Path) -> str:
    """The loss of each loss_type on the pairs of the golden `dpo`, and the norm of all gradients."""
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    found = []
    for loss_type, smoothing in LOSSES:
        with tempfile.TemporaryDirectory() as folder:
            trainer = trainer_of(folder, TEXTS[:2], tokenizer, LENGTH, loss_type=[loss_type], label_smoothing=smoothing)
            inputs = DataCollatorForPreference(pad_token_id=0, max_length=LENGTH)(pairs(trainer.model.config.vocab_size))
            trainer.model.train()
            loss = trainer.compute_loss(trainer.model, inputs)
            loss.backward()
        norms = [weight.grad.double().norm() for weight in trainer.model.parameters() if weight.grad is not None]
        found.append({"loss_type": loss_type, "label_smoothing": smoothing, "loss": float(loss.detach().double()),
                      "grad_norm": float(torch.stack(norms).norm())})
    (root / "dpo_losses.json").write_text("[\n" + ",\n".join(json.dumps(each) for each in found) + "\n]\n")
    return f"dpo_losses: {len(found)} losses"


def make_data(root: pathlib.Path) -> str:
    """prompt_ids, chosen_ids and rejected_ids of each record that is kept, before they are cut."""
    found = {"max_length": DATA_LENGTH, "chat_template": TEMPLATE, "texts": [], "chats": []}
    for name, records in (("texts", TEXTS), ("chats", CHATS)):
        tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
        tokenizer.chat_template = TEMPLATE
        for record in records:
            with tempfile.TemporaryDirectory() as folder:
                kept = []
                try:
                    trainer = trainer_of(folder, [record], tokenizer, DATA_LENGTH)
                    kept = [{key: row[key] for key in ("prompt_ids", "chosen_ids", "rejected_ids")}
                            for row in trainer.train_dataset]
                except (ValueError, StopIteration, IndexError):
                    pass
            found[name].append({"record": record, "kept": kept})
    folder = root / "preference_data"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "golden.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
    return f"preference_data: {sum(len(each['kept']) for name in ('texts', 'chats') for each in found[name])} pairs"
