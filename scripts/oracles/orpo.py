"""The loss of the odds of pairs of answers, with its gradients and what is measured of them, as TRL's ORPOTrainer computes
them of the pairs of preference.py."""

import pathlib
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoTokenizer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

import golden_io
import preference
import tiny_models
from preference import ADAPTER, BETA, LENGTH, MODEL, PAIRS, TOKENIZER

MEASURES = (*preference.MEASURES, "nll_loss", "log_odds_ratio", "log_odds_chosen")


def trainer_of(folder: str, tokenizer, full_model: str = "") -> ORPOTrainer:
    """A trainer of the tiny model with the adapter of another golden, or of all weights of full_model."""
    model = tiny_models.build(full_model or MODEL)
    config = ORPOConfig(output_dir=folder, beta=BETA, max_length=LENGTH, bf16=False, use_cpu=True, report_to="none",
                        gradient_checkpointing=False, disable_tqdm=True)
    options = None if full_model else LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **preference.OPTIONS)
    trainer = ORPOTrainer(model, args=config, train_dataset=Dataset.from_list(preference.TEXTS[:2]),
                          processing_class=tokenizer, peft_config=options)
    if not full_model:
        set_peft_model_state_dict(trainer.model, load_file(f"tests/goldens/{ADAPTER}/adapter/adapter_model.safetensors"))
    return trainer


def padded(examples: list) -> dict:
    """Sequences of a side as ORPOTrainer takes them, the answers alone with labels; padded to LENGTH."""
    batch = {}
    for side in ("chosen", "rejected"):
        ids = torch.zeros(len(examples), LENGTH, dtype=torch.long)
        mask = torch.zeros_like(ids)
        labels = torch.full_like(ids, golden_io.IGNORED)
        for row, example in enumerate(examples):
            sequence = (example["prompt_ids"] + example[side + "_ids"])[:LENGTH]
            begin = len(example["prompt_ids"])
            ids[row, :len(sequence)] = torch.tensor(sequence)
            mask[row, :len(sequence)] = 1
            labels[row, begin:len(sequence)] = ids[row, begin:len(sequence)]
        batch |= {f"{side}_input_ids": ids, f"{side}_attention_mask": mask, f"{side}_labels": labels}
    return batch


def make_loss(root: pathlib.Path, name: str = "orpo", full_model: str = "") -> str:
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(folder, AutoTokenizer.from_pretrained(TOKENIZER), full_model)
        examples = preference.pairs(trainer.model.config.vocab_size)
        trainer.model.train()
        loss, metrics = trainer.get_batch_loss_metrics(trainer.model, padded(examples))
        loss.backward()
    rows = preference.packed(examples, learns_prompts=True)
    answers = rows["bounds"].reshape(len(examples), 2, 2).clone()
    answers[:, :, 0] += torch.tensor([max(0, len(example["prompt_ids"]) - 1) for example in examples])[:, None]
    golden_io.write(root / name / "golden.safetensors", {
        **rows, "answers": answers.flatten(0, 1), "loss": loss.reshape(1),
        "measures": torch.tensor([metrics[each] for each in MEASURES]), **golden_io.gradients(trainer.model),
    })
    preference.write_settings(root / name, full_model)
    return f"{name}: loss {float(loss.detach()):.6f}, nll {metrics['nll_loss']:.4f}, log odds {metrics['log_odds_chosen']:.4f}"
