"""Logits of a model folder with an adapter folder, loaded by PEFT: what a user of our adapters will see.

    python scripts/oracles/check_adapter.py ADAPTER_DIR MODEL_DIR "1 5 9" [--compare OURS.safetensors] [--out FILE]

Fails where PEFT finds adapter tensors missing or unexpected.
"""

import pathlib

import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import peer


def check_names(adapted: PeftModel, folder: pathlib.Path) -> None:
    """PEFT ignores surplus tensors and only warns of missing ones; here both end the check."""
    stored = set(load_file(folder / "adapter_model.safetensors"))
    expected = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
    if stored != expected:
        raise SystemExit(f"missing: {sorted(expected - stored)}; surplus: {sorted(stored - expected)}")


def main() -> None:
    parser = peer.parser("logits of a model with an adapter through PEFT")
    parser.add_argument("adapter")
    parser.add_argument("model")
    parser.add_argument("ids")
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype, local_files_only=True)
    adapted = PeftModel.from_pretrained(model, arguments.adapter, local_files_only=True)
    check_names(adapted, pathlib.Path(arguments.adapter))
    peer.report(adapted, arguments)


if __name__ == "__main__":
    main()
