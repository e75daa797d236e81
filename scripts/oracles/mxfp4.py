"""A matrix in MXFP4 and its values, by transformers' own conversion of gpt-oss folders."""

import pathlib

import torch
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

MATRICES, OUT, IN = 1, 66, 64
BLOCK = 32


def make(root: pathlib.Path) -> str:
    generator = torch.Generator().manual_seed(11)
    blocks = torch.randint(0, 256, (MATRICES, OUT, IN // BLOCK, BLOCK // 2), generator=generator, dtype=torch.uint8)
    scales = torch.randint(100, 140, (MATRICES, OUT, IN // BLOCK), generator=generator, dtype=torch.uint8)
    values = convert_moe_packed_tensors(blocks, scales)
    folder = root / "mxfp4"
    folder.mkdir()
    save_file({"w_blocks": blocks, "w_scales": scales, "w": values.contiguous()}, folder / "model.safetensors")
    return f"mxfp4: {tuple(values.shape)}"
