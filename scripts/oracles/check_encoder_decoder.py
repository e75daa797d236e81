"""Logits of an encoder-decoder's folder through transformers, with an adapter through PEFT if one is given, compared with ours.

    python scripts/oracles/check_encoder_decoder.py MODEL_DIR "5 7 9 1" "6 8 1" --compare OURS.safetensors [--adapter DIR]

OURS is what `snug score ids="5 7 9 1" answer_ids="6 8 1" logits_out=OURS.safetensors` writes. Fails where tensors of the
adapter are missing or unexpected.
"""

import argparse
import pathlib

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForSeq2SeqLM

import check_adapter
import golden_io
import peer


def main() -> None:
    parser = argparse.ArgumentParser(description="logits of an encoder-decoder through transformers and PEFT")
    parser.add_argument("model")
    parser.add_argument("prompt")
    parser.add_argument("answer")
    parser.add_argument("--compare", required=True)
    parser.add_argument("--adapter")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = AutoModelForSeq2SeqLM.from_pretrained(arguments.model, dtype=torch.float32, local_files_only=True)
    check_adapter.decode(model, torch.float32)
    if arguments.adapter:
        model = PeftModel.from_pretrained(model, arguments.adapter, local_files_only=True)
        check_adapter.check_names(model, pathlib.Path(arguments.adapter))
    with torch.no_grad():
        labels = peer.parse_ids(arguments.answer)
        logits = model.eval()(input_ids=peer.parse_ids(arguments.prompt), labels=labels).logits[0]
    error = golden_io.relative_error(load_file(arguments.compare)["logits"], logits)
    print(f"relative error of logits {error:.1e}, {type(model).__name__}")
    if not error <= arguments.tolerance:
        raise SystemExit(f"above {arguments.tolerance}")


if __name__ == "__main__":
    main()
