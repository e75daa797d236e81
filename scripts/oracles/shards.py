"""One model stored in 16-bit shards with an index: what a reader must get back, and its logits in fp32."""

import pathlib

import torch
from safetensors.torch import load_file

import cases
import golden_io
import tiny_models

MODEL = "rope_linear"
STORED = {"sharded_fp16": torch.float16, "sharded_bf16": torch.bfloat16}
SHARD_SIZE = "8KB"
UNUSED_TOKEN = 88  # its embedding is in no logits, so it can hold the values that conversions get wrong
EDGES = {
    torch.float16: (0.0, -0.0, 65504.0, -65504.0, 2.0**-14, -(2.0**-14), 2.0**-24, -(2.0**-24), 1023 * 2.0**-24, 3e-6),
    torch.bfloat16: (0.0, -0.0, 3.3895313892515355e38, -3.3895313892515355e38, 2.0**-126, -(2.0**-126), 2.0**-133,
                     -(2.0**-133), 127 * 2.0**-133, 1e-30),
}


def make(name: str, root: pathlib.Path) -> str:
    dtype = STORED[name]
    model = tiny_models.build(MODEL).to(dtype)
    ids, _ = cases.batch(MODEL)
    ids = ids.masked_fill(ids == UNUSED_TOKEN, 0)
    edges = torch.tensor(EDGES[dtype], dtype=torch.float64).to(dtype)
    with torch.no_grad():
        model.model.embed_tokens.weight[UNUSED_TOKEN, : len(edges)] = edges
    folder = root / name / "model"
    tiny_models.save(model, folder, max_shard_size=SHARD_SIZE)
    shards = sorted(folder.glob("*.safetensors"))
    assert len(shards) > 2 and all(w.dtype == dtype for shard in shards for w in load_file(shard).values())

    rounded = tiny_models.load(folder, torch.float32)
    assert torch.equal(rounded.model.embed_tokens.weight[UNUSED_TOKEN, : len(edges)], edges.float())
    with torch.no_grad():
        logits = rounded(input_ids=ids).logits
    golden_io.write(root / name / "golden.safetensors", {
        "ids": ids, "logits": logits, "weight.model.embed_tokens.weight": rounded.model.embed_tokens.weight,
    })
    return f"{name}: {len(shards)} shards"
