"""The loss of SimPO, with its gradients and what is measured of it, as TRL's CPOTrainer computes them of the pairs of preference.py; and
twenty steps on those pairs."""

import json
import pathlib
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoTokenizer
from trl.experimental.cpo import CPOConfig, CPOTrainer

import golden_io
import orpo
import preference
import tiny_models
from preference import ADAPTER, LENGTH, MODEL, PAIRS, TOKENIZER

# Means are two hundred times smaller than the sums that dpo compares, so that beta is larger, as the paper has it.
BETA, GAMMA, SMOOTHING = 2.5, 0.75, 0.05
STEPS, LEARNING_RATE, MAX_GRAD_NORM = 20, 5e-3, 1.0


def trainer_of(folder: str) -> CPOTrainer:
    """A trainer of the tiny model with the adapter of another golden."""
    model = tiny_models.build(MODEL)
    config = CPOConfig(output_dir=folder, loss_type="simpo", beta=BETA, simpo_gamma=GAMMA, cpo_alpha=0.0, label_smoothing=SMOOTHING,
                       max_length=LENGTH, bf16=False, use_cpu=True, report_to="none", gradient_checkpointing=False, disable_tqdm=True)
    options = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **preference.OPTIONS)
    trainer = CPOTrainer(model, args=config, train_dataset=Dataset.from_list(preference.TEXTS[:2]),
                         processing_class=AutoTokenizer.from_pretrained(TOKENIZER), peft_config=options)
    set_peft_model_state_dict(trainer.model, load_file(f"tests/goldens/{ADAPTER}/adapter/adapter_model.safetensors"))
    return trainer


def steps(trainer: CPOTrainer, batch: dict) -> dict:
    """Loss and gradient norm, before clipping, of each step of AdamW on the same pairs."""
    trained = [weight for weight in trainer.model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
    found = {"curve.loss": [], "curve.grad_norm": []}
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss, _ = trainer.get_batch_loss_metrics(trainer.model, batch)
        loss.backward()
        found["curve.loss"].append(float(loss.detach()))
        found["curve.grad_norm"].append(float(torch.nn.utils.clip_grad_norm_(trained, MAX_GRAD_NORM)))
        optimizer.step()
    return {name: torch.tensor(values) for name, values in found.items()}


def make_loss(root: pathlib.Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_of(folder)
        examples = preference.pairs(trainer.model.config.vocab_size)
        batch = orpo.padded(examples)
        trainer.model.train()
        loss, metrics = trainer.get_batch_loss_metrics(trainer.model, batch)
        loss.backward()
        gradients = {name: value.clone() for name, value in golden_io.gradients(trainer.model).items()}
        curve = steps(trainer, batch)
    golden_io.write(root / "simpo" / "golden.safetensors", {
        **preference.packed(examples), "loss": loss.reshape(1),
        "measures": torch.tensor([metrics[each] for each in preference.MEASURES]), **gradients, **curve,
    })
    (root / "simpo" / "settings.json").write_text(json.dumps(
        {"model": f"tests/goldens/{MODEL}/model", "adapter": f"tests/goldens/{ADAPTER}/adapter", "beta": BETA, "simpo_gamma": GAMMA,
         "label_smoothing": SMOOTHING, "max_length": LENGTH, "pairs": len(PAIRS), "learning_rate": LEARNING_RATE,
         "max_grad_norm": MAX_GRAD_NORM}, indent=1) + "\n")
    return (f"simpo: loss {float(loss.detach()):.6f}, margin {metrics['rewards/margins']:.4f}, after {STEPS} steps "
            f"{float(curve['curve.loss'][-1]):.6f}")
