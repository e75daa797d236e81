"""NEFTune's noise as transformers adds it, with snug's random numbers: the scheme of src/backends/formulas/random_bits.h."""

import contextlib
from unittest import mock

import numpy
import torch
from transformers.integrations.neftune import neftune_post_forward_hook

PURPOSE = 3  # of noise, among the uses of random bits


def philox(counter: numpy.ndarray, key: tuple) -> numpy.ndarray:
    """Philox4x32-10 (Salmon et al. 2011) of counters (..., 4)."""
    words = [counter[..., i].astype(numpy.uint64) for i in range(4)]
    low = numpy.uint64(0xFFFFFFFF)
    first, second = (int(part) for part in key)
    for _ in range(10):
        product0 = words[0] * numpy.uint64(0xD2511F53)
        product2 = words[2] * numpy.uint64(0xCD9E8D57)
        words = [(product2 >> numpy.uint64(32)) ^ words[1] ^ numpy.uint64(first), product2 & low,
                 (product0 >> numpy.uint64(32)) ^ words[3] ^ numpy.uint64(second), product0 & low]
        first, second = (first + 0x9E3779B9) & 0xFFFFFFFF, (second + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(words, axis=-1).astype(numpy.uint32)


def units(shape: tuple, step: int, first_row: int, seed: int) -> torch.Tensor:
    """Numbers from [-1, 1) for the elements (rows, length, columns) of a micro-batch."""
    rows, length, columns = shape
    key = philox(numpy.array([step, 0, 0, PURPOSE]), (seed & 0xFFFFFFFF, seed >> 32))[:2]
    column = numpy.arange(columns)
    row, position, call = numpy.meshgrid(first_row + numpy.arange(rows), numpy.arange(length), column // 64 * 16 + column % 16,
                                         indexing="ij")
    words = philox(numpy.stack([call, position, row, numpy.zeros_like(row)], axis=-1), key)
    chosen = numpy.take_along_axis(words, numpy.broadcast_to((column % 64 // 16)[None, None, :, None], (*shape, 1)), axis=-1)[..., 0]
    return torch.from_numpy((numpy.uint32(0x40000000) | (chosen >> numpy.uint32(9))).view(numpy.float32) - numpy.float32(3))


@contextlib.contextmanager
def added(model, alpha: float, step: int, first_row: int, seed: int = 0):
    """Within it transformers' hook adds noise to the model's embeddings, and draws snug's numbers."""
    embedding = model.get_input_embeddings().train()  # the hook does nothing in an evaluation
    embedding.neftune_noise_alpha = alpha
    handle = embedding.register_forward_hook(neftune_post_forward_hook)

    def draw(tensor, least, most):
        drawn = units(tuple(tensor.shape), step, first_row, seed).to(tensor.dtype)
        return tensor.copy_((most - least) / 2 * drawn + (most + least) / 2)

    try:
        with mock.patch.object(torch.Tensor, "uniform_", draw):
            yield
    finally:
        handle.remove()
