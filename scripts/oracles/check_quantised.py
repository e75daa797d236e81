"""Loads a folder that `snug quantize` wrote into transformers, and compares it with bitsandbytes' own work.

    python scripts/oracles/check_quantised.py QUANTISED_DIR SOURCE_DIR ["1 5 9"]

Each linear: the values that transformers computes with equal, bit for bit, those that docs/nf4.md's formula gives for
the stored bytes; the stored bytes are compared with what bitsandbytes makes of the source's weight. Bytes of double
quantisation may differ where torch sums the mean with several threads (32,768 blocks and more); their number is
printed. Everything else must be equal, and the model must run.
"""

import argparse
import pathlib

import bitsandbytes as bnb
import bitsandbytes.functional
import numpy
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import peer

PARTS = (".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", ".quant_state.bitsandbytes__nf4")


def tensors_of(folder: pathlib.Path) -> dict:
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= load_file(path)
    return found


def by_formula(stored: dict, name: str, state) -> torch.Tensor:
    """The weight's values in its element type, from the stored bytes alone, in numpy's fp32."""
    codes = stored[name].view(torch.uint8).flatten().numpy()
    absmax = stored[name + ".absmax"].numpy()
    if name + ".nested_absmax" in stored:
        scales = numpy.repeat(stored[name + ".nested_absmax"].numpy(), 256)[: len(absmax)]
        absmax = stored[name + ".nested_quant_map"].numpy()[absmax] * scales + numpy.float32(state.offset.item())
    halves = numpy.stack([codes >> 4, codes & 15], axis=1).flatten()[: state.shape.numel()]
    values = stored[name + ".quant_map"].numpy()[halves] * numpy.repeat(absmax, 64)[: len(halves)]
    return torch.from_numpy(values).to(state.dtype).reshape(state.shape)


def differing_bytes(stored: dict, name: str, source: torch.Tensor, nested: bool) -> int:
    codes, state = bnb.functional.quantize_4bit(source, blocksize=64, quant_type="nf4", compress_statistics=nested)
    expected = {name: codes} | {f"{name}.{part}": value for part, value in state.as_dict(packed=True).items()}
    count = 0
    for key, value in expected.items():
        ours, theirs = stored[key].view(torch.uint8).flatten(), value.contiguous().view(torch.uint8).flatten()
        count += int((ours != theirs).sum()) if len(ours) == len(theirs) else max(len(ours), len(theirs))
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quantised", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("ids", nargs="?", default="1 5 9")
    arguments = parser.parse_args()
    stored, source = tensors_of(arguments.quantised), tensors_of(arguments.source)
    model = AutoModelForCausalLM.from_pretrained(arguments.quantised, device_map="cpu", local_files_only=True, **peer.plain_experts(arguments.quantised))
    linears = {name + ".weight": module for name, module in model.named_modules() if isinstance(module, bnb.nn.Linear4bit)}
    assert linears
    differing = 0
    for name, module in linears.items():
        state = module.weight.quant_state
        values = bnb.functional.dequantize_4bit(module.weight.data, state)
        assert torch.equal(values, by_formula(stored, name, state)), name
        differing += differing_bytes(stored, name, source[name].to(state.dtype), state.nested)
    for name, tensor in stored.items():
        if name in linears or name.endswith(PARTS):
            continue
        assert torch.equal(tensor, source[name].to(tensor.dtype)), name
    ids = torch.tensor([[int(word) for word in arguments.ids.split()]])
    with torch.no_grad():  # in training mode: in evaluation bitsandbytes repacks weights, which needs sizes of 32
        logits = model.train()(input_ids=ids).logits
    assert torch.isfinite(logits).all()
    many_blocks = any(module.weight.quant_state.shape.numel() >= 64 * 32768 for module in linears.values())
    assert differing == 0 or many_blocks, f"{differing} bytes differ from bitsandbytes' own"
    print(f"{len(linears)} linears: values equal; {differing} bytes differ from bitsandbytes' own")


if __name__ == "__main__":
    main()
