"""Blocks of GGUF files by ggml's own code, called through ctypes (its quantiser without an importance matrix, as llama-quantize runs it,
and its dequantiser), and by PyPI's gguf. And values to try them on."""

import ctypes
import os
import pathlib

import gguf
import numpy as np

# Name: number in files, values per block, bytes per block, ggml's dequantiser.
TYPES = {
    "f16": (1, 1, 2, "ggml_fp16_to_fp32_row"),
    "bf16": (30, 1, 2, "ggml_bf16_to_fp32_row"),
    "q8_0": (8, 32, 34, "dequantize_row_q8_0"),
    "q4_0": (2, 32, 18, "dequantize_row_q4_0"),
    "q4_1": (3, 32, 20, "dequantize_row_q4_1"),
    "q5_0": (6, 32, 22, "dequantize_row_q5_0"),
    "q5_1": (7, 32, 24, "dequantize_row_q5_1"),
    "mxfp4": (39, 32, 17, "dequantize_row_mxfp4"),
    "q2_k": (10, 256, 84, "dequantize_row_q2_K"),
    "q3_k": (11, 256, 110, "dequantize_row_q3_K"),
    "q4_k": (12, 256, 144, "dequantize_row_q4_K"),
    "q5_k": (13, 256, 176, "dequantize_row_q5_K"),
    "q6_k": (14, 256, 210, "dequantize_row_q6_K"),
}
ROW = 256


class Ggml:
    """The library libggml-base.so of llama.cpp, built without native instructions; by default that of llama-cpp-python."""

    def __init__(self, path=None):
        self.path = pathlib.Path(path) if path else self._of_python()
        self.library = ctypes.CDLL(str(self.path))
        self.library.ggml_quantize_chunk.restype = ctypes.c_size_t

    @staticmethod
    def _of_python():
        if folder := os.environ.get("LLAMA_CPP_LIB_PATH"):
            return pathlib.Path(folder) / "libggml-base.so"
        import llama_cpp
        return pathlib.Path(llama_cpp.__file__).parent / "lib/libggml-base.so"

    def quantise(self, name, values):
        """The blocks (bytes) of float32 values, in rows of 256."""
        number, per_block, block_bytes, _ = TYPES[name]
        blocks = np.empty(values.size // per_block * block_bytes, np.uint8)
        self.library.ggml_quantize_chunk(
            ctypes.c_int(number), values.ctypes.data_as(ctypes.c_void_p), blocks.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0),
            ctypes.c_int64(values.size // ROW), ctypes.c_int64(ROW), None)
        return blocks

    def dequantise(self, name, blocks):
        _, per_block, block_bytes, function = TYPES[name]
        values = np.empty(blocks.size // block_bytes * per_block, np.float32)
        getattr(self.library, function)(
            blocks.ctypes.data_as(ctypes.c_void_p), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(values.size))
        return values


def quantise_by_gguf(name, values):
    """The blocks that PyPI's gguf makes of the same rows, or nothing where it only reads the type."""
    try:
        with np.errstate(all="ignore"):
            return gguf.quants.quantize(values, gguf.GGMLQuantizationType[name.upper()]).view(np.uint8).reshape(-1)
    except NotImplementedError:
        return None


def dequantise_by_gguf(name, blocks):
    stored = blocks.view(np.float16) if name == "f16" else blocks
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(stored, gguf.GGMLQuantizationType[name.upper()]).reshape(-1)


def edges():
    """(rows, 256) float32: what is easily forgotten, one thing per row."""
    random = np.random.default_rng(7)
    noise = random.standard_normal((64, ROW)).astype(np.float32)
    ramp = np.linspace(-1, 1, ROW, dtype=np.float32)
    only = lambda place, value: np.where(np.arange(ROW) == place, np.float32(value), np.float32(0))
    # One sub-block is so small next to the others that its own scale becomes 0.
    uneven = noise[0] * np.repeat(np.float32([1, 1e-6, 1e-3, 1, 1e-9, 2, 1e-16, 1e-2]), 32)
    rows = [np.zeros(ROW), -np.zeros(ROW), np.full(ROW, 0.5), np.full(ROW, -0.75), ramp, -ramp, np.abs(noise[1]), -np.abs(noise[2])]
    rows += [only(place, value) for place, value in ((0, 1), (255, -1), (100, 3e38), (31, 1e-40), (17, -65504.0))]
    rows += [uneven, -uneven, noise[3] + 100, np.round(noise[4] * 4) / 8, np.round(ramp * 16) / 2, np.sign(noise[5])]
    # The whole range of exponents: halves become subnormal, 0 and infinite, and sums of squares 0 and infinite.
    with np.errstate(over="ignore", under="ignore"):
        rows += [noise[6 + i] * np.float32(10.0) ** exponent for i, exponent in enumerate(range(-44, 38, 3))]
        rows += [np.clip(noise[40] * np.float32(1e38), -3.4e38, 3.4e38), noise[41] * np.float32(1e-45), noise[42] ** 9]
    # The largest is just below a power of two, where a logarithm is rounded up.
    rows += [np.clip(noise[43 + i], -1, 1) * np.float32(2.0**power * (1 - 2.0**-24)) for i, power in enumerate((-60, -3, 0, 1, 5, 40, 128))]
    # Scales around what counts as zero, and MXFP4's least exponents.
    rows += [noise[50] * np.repeat(np.logspace(-16, -14, 16), 16), noise[51] * 1e-13, np.clip(noise[52], -1, 1) * 2.0**-123.5, noise[53] * 2.0**-126]
    rows += [np.tile(halves(highest), ROW // 32) for highest in (127, -8, -16)]
    return np.ascontiguousarray(np.stack(rows).astype(np.float32))


def halves(highest):
    """32 float32 whose steps are 1 in a type with this highest code: half-way cases and the numbers next to them."""
    middles = (np.arange(10, dtype=np.float32) - np.float32(4.5))
    around = [middles, np.nextafter(middles, np.float32(-100)), np.nextafter(middles, np.float32(100))]
    return np.concatenate(around + [np.float32([highest, 0])])


def random_rows(rows, seed):
    """(rows, 256) float32 of many shapes: normal, heavy-tailed, uniform, on a grid, sparse, one-sided, of all magnitudes."""
    random = np.random.default_rng(seed)
    made = random.standard_normal((rows, ROW)).astype(np.float32)
    shape = random.integers(0, 8, rows)
    made[shape == 1] **= 3
    made[shape == 2] = random.random((np.count_nonzero(shape == 2), ROW), np.float32) * 2 - 1
    made[shape == 3] = np.round(made[shape == 3] * 8) / 8
    made[shape == 4] *= random.random((np.count_nonzero(shape == 4), ROW)) < 0.1
    made[shape == 5] = np.abs(made[shape == 5])
    made[shape == 6] = -np.abs(made[shape == 6])
    scale = np.where(random.random(rows) < 0.7, 0.02, 10.0 ** random.uniform(-42, 37, rows))
    with np.errstate(over="ignore", under="ignore"):
        made = np.clip(made * scale.astype(np.float32)[:, None], -3.4e38, 3.4e38)
    return np.ascontiguousarray(made, np.float32)


def philox_words(count, key):
    """(count, 4) uint32: philox({i, 0, 0, 0}, {key, 0}) of base/random.h for i below count."""
    words = np.zeros((4, count), np.uint64)
    words[0] = np.arange(count)
    low, high, mask = key, 0, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = np.stack([(second >> np.uint64(32)) ^ words[1] ^ np.uint64(low), second & mask,
                          (first >> np.uint64(32)) ^ words[3] ^ np.uint64(high), first & mask])
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return words.T.astype(np.uint32)


def drawn_rows(rows):
    """(rows, 256) float32, nearly normal, that a test draws again exactly."""
    uniform = (philox_words(rows * ROW, 45) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return (((uniform[:, 0] + uniform[:, 1]) - (uniform[:, 2] + uniform[:, 3])) * np.float32(0.02)).reshape(rows, ROW)
