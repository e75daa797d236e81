"""Golden of AdamW with 8-bit moments: `python scripts/oracles/adamw_8bit.py`, with bitsandbytes 0.50.2.

The update is bitsandbytes' own in PyTorch, the one whose quantiser is exact. Its compiled CPU library first rounds to
one of 65,536 points of [-1, 1] and so gives other codes than any GPU; see src/base/dynamic_map.h.
"""

import os
import pathlib

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # its implementation in PyTorch runs as it is written

import bitsandbytes.functional as bnb
import numpy
import torch
from bitsandbytes.backends.triton.kernels_optim import optimizer_update_8bit_blockwise_pytorch as update
from safetensors.torch import save_file

STEPS = 20
BLOCK = 256
# Betas as fp32, as bitsandbytes' kernels take them. Sizes: whole blocks, and a shorter last one.
BETA1, BETA2 = float(numpy.float32(0.9)), float(numpy.float32(0.995))
EPSILON = float(numpy.float32(1e-8))
CASES = {"whole": ((16, 256), 0.0), "short": ((70, 80), 0.1), "decayed": ((4112,), 0.01)}


def mixed(x: numpy.ndarray) -> numpy.ndarray:
    """A hash of 32 bits (Mueller's), the same in the test."""
    for _ in range(2):
        x = ((x >> numpy.uint32(16)) ^ x) * numpy.uint32(0x45D9F3B)
    return (x >> numpy.uint32(16)) ^ x


def values(count: int, salt: int) -> numpy.ndarray:
    """fp32 between 2^-10 and 1.001 in magnitude, mostly small: a uniform number's cube, each operation rounded.

    No moment comes so close to zero that its code would be zero's: there the GPU kernel keeps the sign and this form
    does not.
    """
    with numpy.errstate(over="ignore"):
        words = mixed(numpy.arange(count, dtype=numpy.uint32) + numpy.uint32(salt * 0x9E3779B9 & 0xFFFFFFFF))
    uniform = (words >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2**-23) - numpy.float32(1)
    cube = uniform * uniform * uniform
    return cube + numpy.copysign(numpy.float32(2**-10), cube)


def digest(*tensors: torch.Tensor) -> int:
    """FNV-1a of 32 bits over the bytes of all, as int32."""
    state = 0x811C9DC5
    for tensor in tensors:
        for byte in tensor.numpy().tobytes():
            state = (state ^ byte) * 0x01000193 & 0xFFFFFFFF
    return state - (1 << 32) if state >= 1 << 31 else state


def run(shape: tuple, decay: float, salt: int) -> dict:
    count = int(numpy.prod(shape))
    blocks = -(-count // BLOCK)
    weight = torch.from_numpy(values(count, salt)).clone()
    codes = [torch.zeros(count, dtype=torch.uint8) for _ in range(2)]
    scales = [torch.zeros(blocks) for _ in range(2)]
    maps = [bnb.create_dynamic_map(signed=True), bnb.create_dynamic_map(signed=False)]
    digests = []
    for step in range(1, STEPS + 1):
        gradient = torch.from_numpy(values(count, salt + step))
        update(weight, gradient, codes[0], codes[1], BETA1, BETA2, 0.0, 0.0, EPSILON, step, 1e-3, maps[0], maps[1],
               scales[0], scales[1], decay, 1.0, False, optimizer_name="adam")
        digests.append(digest(*codes, *scales))
    return {"codes1": codes[0], "codes2": codes[1], "scales1": scales[0], "scales2": scales[1], "weight": weight,
            "digests": torch.tensor(digests, dtype=torch.int32)}


def main() -> None:
    torch.set_num_threads(1)
    golden = {}
    for salt, (name, (shape, decay)) in enumerate(CASES.items()):
        golden |= {f"{name}.{what}": tensor for what, tensor in run(shape, decay, 100 * (salt + 1)).items()}
    path = pathlib.Path("tests/goldens/adamw_8bit/golden.safetensors")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(golden, path)
    path.chmod(0o644)


if __name__ == "__main__":
    main()
