"""What the two scripts that print a peer's logits share: arguments, printing, comparing."""

import argparse
import json

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig


def parser(purpose: str) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=purpose)
    found.add_argument("--dtype", default="float32", choices=["float32", "float64", "bfloat16", "float16"])
    found.add_argument("--out", help="write the logits, fp32 (tokens, vocab), as tensor `logits` of this file")
    found.add_argument("--compare", help="a safetensors file with `logits` (tokens, vocab) to compare with")
    found.add_argument("--tolerance", type=float, help="of the relative error that --compare finds; fails above it")
    return found


def parse_ids(text: str) -> torch.Tensor:
    """"1 5 9" to (1, tokens)."""
    return torch.tensor([[int(word) for word in text.replace(",", " ").split()]])


def plain_experts(folder) -> dict:
    """Arguments of from_pretrained: experts one by one, where there are any. Grouped products want rows of 16 bytes, which tiny models have not."""
    return {"experts_implementation": "eager"} if hasattr(AutoConfig.from_pretrained(folder), "num_experts_per_tok") else {}


def report(model, arguments: argparse.Namespace) -> None:
    """Prints, as JSON, each token's log-probability given those before it and the most likely next tokens."""
    torch.set_num_threads(1)
    ids = parse_ids(arguments.ids)
    with torch.no_grad():
        logits = model.eval()(input_ids=ids).logits[0].float()
    spread = torch.log_softmax(logits.double(), dim=-1)
    logprobs = spread[:-1].gather(1, ids[0, 1:, None])[:, 0]
    answer = {"logprobs": logprobs.tolist(), "next": spread[-1].topk(min(5, spread.shape[-1])).indices.tolist(),
              "logits_norm": float(logits.double().norm())}
    if arguments.out:
        save_file({"logits": logits.contiguous()}, arguments.out)
    if arguments.compare:
        other = load_file(arguments.compare)["logits"].double()
        if other.shape != logits.shape:
            raise SystemExit(f"{arguments.compare} has shape {tuple(other.shape)}, expected {tuple(logits.shape)}")
        answer["relative_error"] = float((other - logits.double()).norm() / logits.double().norm())
        answer["largest_error"] = float((other - logits.double()).abs().max())
    print(json.dumps(answer, indent=2))
    if arguments.tolerance is not None and not answer.get("relative_error", float("inf")) <= arguments.tolerance:
        raise SystemExit(f"relative error {answer.get('relative_error')} is above {arguments.tolerance}")
