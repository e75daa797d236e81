"""Logits of a model folder with an adapter folder, loaded by PEFT: what a user of our adapters will see.

    python scripts/oracles/check_adapter.py ADAPTER_DIR MODEL_DIR "1 5 9" [--compare OURS.safetensors] [--out FILE]

Fails where PEFT finds adapter tensors missing or unexpected. What bitsandbytes stored in 4 bits is
decoded first, so that with float32 nothing is rounded to the type that the folder was computed in.
"""

import pathlib

import bitsandbytes.functional
import bitsandbytes.nn
import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import peer


# Names that modules have in transformers 4, under which our adapters hold them too.
EARLIER_NAMES = {"base_model.model.lm_head.weight": "base_model.model.embed_out.weight"}


def check_names(adapted: PeftModel, folder: pathlib.Path) -> None:
    """PEFT ignores surplus tensors and only warns of missing ones; here both end the check, except copies under earlier names."""
    tensors = load_file(folder / "adapter_model.safetensors")
    copies = {old for new, old in EARLIER_NAMES.items() if new in tensors and old in tensors and torch.equal(tensors[new], tensors[old])}
    stored = set(tensors) - copies
    expected = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
    if stored != expected:
        raise SystemExit(f"missing: {sorted(expected - stored)}; surplus: {sorted(stored - expected)}")


def decode(model, dtype: torch.dtype) -> None:
    """Linears in 4 bits become plain ones, each value code x scale in fp32, rounded to dtype."""
    for name, module in list(model.named_modules()):
        if not isinstance(module, bitsandbytes.nn.Linear4bit):
            continue
        state = module.weight.quant_state
        state.dtype = torch.float32
        plain = torch.nn.Linear(module.in_features, module.out_features, module.bias is not None, dtype=dtype)
        plain.weight.data = bitsandbytes.functional.dequantize_4bit(module.weight.data, state).to(dtype)
        if module.bias is not None:
            plain.bias.data = module.bias.data.to(dtype)
        model.set_submodule(name, plain)
    torch.nn.Module.to(model, dtype)


def main() -> None:
    parser = peer.parser("logits of a model with an adapter through PEFT")
    parser.add_argument("adapter")
    parser.add_argument("model")
    parser.add_argument("ids")
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype, local_files_only=True, **peer.plain_experts(arguments.model))
    decode(model, dtype)
    adapted = PeftModel.from_pretrained(model, arguments.adapter, local_files_only=True)
    check_names(adapted, pathlib.Path(arguments.adapter))
    peer.report(adapted, arguments)


if __name__ == "__main__":
    main()
