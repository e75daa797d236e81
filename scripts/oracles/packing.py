"""Rows that hold several documents: each document's logits as if it were alone, one loss over all of them."""

import pathlib

import torch

import golden_io
import tiny_models

MODEL = "rope_llama3"
LENGTH = 33
ROWS = ((11, 17, 5), (20, 1, 8))  # document lengths; row 1 leaves a tail of 4 that belongs to no document
KEPT_GRADIENTS = ("embed_tokens", "layers.0.self_attn", "layers.1.input_layernorm", "model.norm")


def documents() -> list:
    """(row, start, length) of each document."""
    found = []
    for row, lengths in enumerate(ROWS):
        start = 0
        for length in lengths:
            found.append((row, start, length))
            start += length
    return found


def check_against_mask(model, golden: dict) -> None:
    """The whole rows under a block-diagonal causal mask give the same logits where a document is."""
    segments = golden["segments"]
    same = (segments[:, :, None] == segments[:, None, :]) & torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool))
    mask = torch.zeros(same.shape).masked_fill(~same, torch.finfo(torch.float32).min)[:, None]
    whole = model(input_ids=golden["ids"], position_ids=golden["positions"], attention_mask=mask, use_cache=False)
    inside = segments >= 0
    assert golden_io.relative_error(whole.logits[inside], golden["logits"][inside]) < 1e-6


def make(root: pathlib.Path) -> str:
    model = tiny_models.build(MODEL)
    vocab = model.config.vocab_size
    ids = golden_io.random_ids((len(ROWS), LENGTH), vocab, 2001)
    segments = torch.full((len(ROWS), LENGTH), -1)
    positions = torch.zeros((len(ROWS), LENGTH), dtype=torch.int64)
    targets = torch.full((len(ROWS), LENGTH), golden_io.IGNORED)
    logits = torch.zeros((len(ROWS), LENGTH, vocab))
    for row, start, length in documents():
        span = slice(start, start + length)
        segments[row, span] = segments[row].max() + 1
        positions[row, span] = torch.arange(length)
        targets[row, span] = golden_io.shifted(ids[row : row + 1, span])[0]

    total = golden_io.trained_tokens(targets)
    loss = torch.zeros(1)
    for row, start, length in documents():
        span = slice(start, start + length)
        alone = model(input_ids=ids[row : row + 1, span], use_cache=False).logits
        logits[row, span] = alone[0].detach()
        part = golden_io.summed_loss(alone, targets[row : row + 1, span]) / total
        part.backward()
        loss += part.detach()

    golden = {"ids": ids, "segments": segments, "positions": positions, "targets": targets, "logits": logits,
              "documents": torch.tensor(documents()), "loss": loss}
    with torch.no_grad():
        check_against_mask(model, golden)
    grads = golden_io.gradients(model)
    golden.update({key: value for key, value in grads.items() if any(part in key for part in KEPT_GRADIENTS)})
    golden_io.write(root / "packing" / "golden.safetensors", golden)
    return f"packing: {len(documents())} documents, {total} trained tokens, loss {float(loss):.6f}"
