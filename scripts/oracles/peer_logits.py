"""Logits of any causal model folder as transformers computes them.

    python scripts/oracles/peer_logits.py MODEL_DIR "1 5 9" [--compare OURS.safetensors] [--out FILE] [--dtype float32]
"""

import torch
from transformers import AutoModelForCausalLM

import peer


def main() -> None:
    parser = peer.parser("logits of a model folder through transformers")
    parser.add_argument("model")
    parser.add_argument("ids")
    arguments = parser.parse_args()
    dtype = getattr(torch, arguments.dtype)
    peer.report(AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype, local_files_only=True), arguments)


if __name__ == "__main__":
    main()
