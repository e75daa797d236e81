"""What both sides of the race start from: a model folder, an adapter folder and rows of tokens, all random.

No weight is zero, those of the adapter's B neither, so that gradients flow everywhere. A value's bits are drawn as they
lie in the file: an even choice of sign and mantissa, and of four octaves, the larger ones less often. That makes a
standard deviation of 0.04 (0.01 for B) without a library, at the speed of the disk, and the same bytes for a seed.
"""

import json
import pathlib
import random
import struct

SHAPES = {
    # SmolLM2-135M.
    "smollm2-135m": dict(hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
                         num_key_value_heads=3, head_dim=64, vocab_size=49152, max_position_embeddings=8192,
                         rms_norm_eps=1e-5, rope_theta=100000.0, tie_word_embeddings=True),
    # Llama 3.2 1B, except for the scaling of its rope, which 384 tokens do not need.
    "llama-3.2-1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                         num_key_value_heads=8, head_dim=64, vocab_size=128256, max_position_embeddings=8192,
                         rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=True),
    # Qwen3 0.6B, Qwen2.5 0.5B and TinyLlama 1.1B as Llama-shaped folders: without the norms of queries and keys, and without biases.
    "qwen3-0.6b": dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
                       num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=8192,
                       rms_norm_eps=1e-6, rope_theta=1000000.0, tie_word_embeddings=True),
    "qwen2.5-0.5b": dict(hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
                         num_key_value_heads=2, head_dim=64, vocab_size=151936, max_position_embeddings=8192,
                         rms_norm_eps=1e-6, rope_theta=1000000.0, tie_word_embeddings=True),
    "tinyllama-1.1b": dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
                           num_key_value_heads=4, head_dim=64, vocab_size=32000, max_position_embeddings=2048,
                           rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True),
    # Two layers that run in a moment, to try the scripts.
    "quick": dict(hidden_size=192, intermediate_size=512, num_hidden_layers=2, num_attention_heads=3,
                  num_key_value_heads=1, head_dim=64, vocab_size=2048, max_position_embeddings=2048,
                  rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True),
}

LORA_RANK = 16
LORA_ALPHA = 32

# The upper seven bits of bf16's exponent: 60 is [2^-7, 2^-5), 61 the two octaves above.
USUAL_EXPONENT = 60
B_EXPONENT = 59
CHUNK_BYTES = 1 << 24


def linears(shape: dict) -> dict[str, tuple[int, int]]:
    """The linears of a layer, as (out, in)."""
    hidden, inner = shape["hidden_size"], shape["intermediate_size"]
    queries = shape["num_attention_heads"] * shape["head_dim"]
    keys = shape["num_key_value_heads"] * shape["head_dim"]
    return {"self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden), "self_attn.o_proj": (hidden, queries),
            "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}


def high_bytes(exponent: int) -> bytes:
    """A table from a random byte to bf16's upper byte: a sign, then `exponent` or, in one case of four, one more."""
    table = bytearray()
    for byte in range(256):
        sign = 0x80 if byte & 1 else 0
        table.append(sign | (exponent + (1 if byte % 8 in (6, 7) else 0)))
    return bytes(table)


def random_values(rng: random.Random, count: int, dtype: str, exponent: int = USUAL_EXPONENT):
    """Yields the bytes of `count` values, BF16 or F32."""
    size = {"BF16": 2, "F32": 4}[dtype]
    table = high_bytes(exponent)
    for begin in range(0, count, CHUNK_BYTES):
        values = bytearray(rng.randbytes(size * min(CHUNK_BYTES, count - begin)))
        values[size - 1::size] = values[size - 1::size].translate(table)
        yield bytes(values)


def write_safetensors(path: pathlib.Path, dtype: str, tensors: list[tuple[str, tuple, object]]) -> None:
    """Writes tensors of one type; each is a name, a shape and an iterable of bytes, made while writing."""
    size = {"BF16": 2, "F32": 4}[dtype]
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _ in tensors:
        count = 1
        for length in shape:
            count *= length
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size * count]}
        offset += size * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, chunks in tensors:
            for chunk in chunks:
                file.write(chunk)
        if file.tell() != 8 + len(text) + offset:
            raise RuntimeError(f"{path}: {file.tell() - 8 - len(text)} bytes of data, expected {offset}")


def make_model(folder: pathlib.Path, shape: dict, seed: int) -> None:
    """A Hugging Face folder in bf16, norms 1, the head tied; no tokenizer, no token that ends a text."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    hidden = shape["hidden_size"]
    ones = struct.pack("<H", 0x3F80) * hidden
    tensors = [("model.embed_tokens.weight", (shape["vocab_size"], hidden),
                random_values(rng, shape["vocab_size"] * hidden, "BF16"))]
    for layer in range(shape["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors.append((f"{prefix}{name}.weight", (hidden,), [ones]))
        for name, (rows, columns) in linears(shape).items():
            tensors.append((f"{prefix}{name}.weight", (rows, columns), random_values(rng, rows * columns, "BF16")))
    tensors.append(("model.norm.weight", (hidden,), [ones]))
    write_safetensors(folder / "model.safetensors", "BF16", tensors)
    config = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", attention_bias=False,
                  mlp_bias=False, attention_dropout=0.0, torch_dtype="bfloat16", bos_token_id=None, eos_token_id=None,
                  pad_token_id=None, **shape)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def make_adapter(folder: pathlib.Path, shape: dict, model: pathlib.Path, seed: int) -> None:
    """A PEFT adapter on all linears in fp32, r 16, alpha 32, no dropout, with an A and a B that are not zero."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    tensors = []
    for layer in range(shape["num_hidden_layers"]):
        for name, (rows, columns) in linears(shape).items():
            prefix = f"base_model.model.model.layers.{layer}.{name}.lora_"
            tensors.append((f"{prefix}A.weight", (LORA_RANK, columns), random_values(rng, LORA_RANK * columns, "F32")))
            tensors.append((f"{prefix}B.weight", (rows, LORA_RANK),
                            random_values(rng, rows * LORA_RANK, "F32", B_EXPONENT)))
    write_safetensors(folder / "adapter_model.safetensors", "F32", tensors)
    modules = sorted({name.split(".")[1] for name in linears(shape)})
    config = dict(peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path=str(model), r=LORA_RANK,
                  lora_alpha=LORA_ALPHA, lora_dropout=0.0, bias="none", target_modules=modules, inference_mode=False)
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def make_rows(path: pathlib.Path, shape: dict, rows: int, length: int, seed: int) -> None:
    """Rows of `length` random tokens, one JSON line each: a document that fills its row, all of it learned."""
    rng = random.Random(seed)
    with open(path, "w") as file:
        for _ in range(rows):
            file.write(json.dumps({"input_ids": [rng.randrange(shape["vocab_size"]) for _ in range(length)]}) + "\n")
