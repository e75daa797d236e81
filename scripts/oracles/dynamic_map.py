"""Golden of the dynamic 8-bit maps: `python scripts/oracles/dynamic_map.py`, with bitsandbytes 0.50.2."""

import os
import pathlib

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # its implementation in PyTorch runs as it is written

import bitsandbytes.functional as bnb
import numpy
import torch
from bitsandbytes.backends.triton.kernels_optim import _quantize_blockwise_pytorch as exact

from golden_io import write


def probes(code: torch.Tensor) -> torch.Tensor:
    """Every midpoint, its fp32 neighbours, every value, and random points of [-1, 1]."""
    middles = ((code[:-1] + code[1:]) * 0.5).numpy()
    below = numpy.nextafter(middles, numpy.float32(-2))
    above = numpy.nextafter(middles, numpy.float32(2))
    uniform = torch.rand(600, generator=torch.Generator().manual_seed(5)) * 2 - 1
    small = uniform[:300] ** 9
    fixed = numpy.concatenate([middles, below, above, code.numpy(), [0.0, -1.0]]).astype(numpy.float32)
    return torch.cat([torch.from_numpy(fixed), uniform, small])


def in_own_blocks(values: torch.Tensor) -> torch.Tensor:
    """(values, 256), each value next to a 1 that makes its block's scale 1."""
    blocks = torch.zeros(len(values), 256)
    blocks[:, 0] = 1
    blocks[:, 1] = values
    return blocks


def main() -> None:
    golden = {}
    for name, is_signed in (("signed", True), ("unsigned", False)):
        code = bnb.create_dynamic_map(signed=is_signed)
        values = probes(code)
        compiled, _ = torch.ops.bitsandbytes.quantize_blockwise(in_own_blocks(values), code.clone(), 256)
        golden |= {f"{name}.map": code, f"{name}.x": values, f"{name}.lattice": compiled[:, 1]}
        golden[f"{name}.nearest"] = exact(in_own_blocks(values), code, 256)[0].view(-1, 256)[:, 1]
    write(pathlib.Path("tests/goldens/dynamic_map/golden.safetensors"), golden)


if __name__ == "__main__":
    main()
