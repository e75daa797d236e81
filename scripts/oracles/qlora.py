"""QLoRA: PEFT on a base that bitsandbytes quantised (NF4, double quantised or not), computed in fp32."""

import dataclasses
import json
import pathlib

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

import cases
import curves
import golden_io

MODEL = "grouped_tied"
ADAPTER = "lora_all_linear/adapter"  # lora_B is random there: every gradient flows
STORED = {"qlora_nf4": False, "qlora_nf4_dq": True, "qdora_nf4": False, "qdora_nf4_dq": True}
ADAPTERS = {"qdora_nf4": "dora_q_down/adapter", "qdora_nf4_dq": "dora_q_down/adapter"}
CURVE = dataclasses.replace(curves.CURVES["curve_lora"], seed=4005)


def quantised(root: pathlib.Path, double_quant: bool):
    """The golden model with its linears as NF4, all arithmetic in fp32."""
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=double_quant,
                                bnb_4bit_compute_dtype=torch.float32)
    return AutoModelForCausalLM.from_pretrained(root / MODEL / "model", quantization_config=config, device_map="cpu",
                                                dtype=torch.float32, attn_implementation="eager").eval()


def adapted(model, adapter: pathlib.Path) -> PeftModel:
    """In training mode (there is no dropout): in evaluation bitsandbytes repacks weights for the CPU."""
    return PeftModel.from_pretrained(model, adapter, is_trainable=True).train()


def make(name: str, root: pathlib.Path) -> str:
    """Logits, loss and every adapter gradient, with the quantised tensors they were made with."""
    base = quantised(root, STORED[name])
    ids, labels = cases.batch(MODEL)
    targets = golden_io.shifted(labels)
    stored = {key: value for key, value in base.state_dict().items() if "layers.0." in key and "proj" in key}
    model = adapted(base, root / ADAPTERS.get(name, ADAPTER))
    logits, loss = cases.mean_loss(model, ids, targets)
    loss.backward()
    golden_io.write(root / name / "golden.safetensors", {
        "ids": ids, "labels": labels, "targets": targets, "loss": loss.reshape(1),
        **({} if name in ADAPTERS else {"logits": logits}), **golden_io.gradients(model),
    })
    return f"{name}: loss {float(loss.detach()):.6f}, {len(stored)} stored tensors in layer 0"


def make_curve(root: pathlib.Path) -> str:
    """Twenty steps from curve_adapter, as curve_lora, on the double quantised base."""
    model = adapted(quantised(root, True), root / "curve_adapter")
    ids, labels = curves.batches(CURVE)
    targets = golden_io.shifted(labels.flatten(0, 2)).reshape(labels.shape)
    found = curves.train(model, CURVE, ids, targets)
    golden_io.write(root / "curve_qlora" / "golden.safetensors", {
        "ids": ids, "labels": labels, "targets": targets,
        "trained_tokens": torch.tensor([golden_io.trained_tokens(step) for step in targets]), **found,
    })
    settings = {**curves.settings(CURVE), "method": "qlora"}
    (root / "curve_qlora" / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")
    return f"curve_qlora: loss {found['loss'][0]:.4f} to {found['loss'][-1]:.4f}"
