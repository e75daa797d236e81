"""Floating-point operations that a model's training asks for, and the bytes that a token's generation reads.

A token passes the N weights of the linears and the head with 2 N operations forward, 2 N for the gradients of their
inputs and, where they train, 2 N for their own: 6 N for full, 4 N for LoRA, whose A weights of adapters take 6 A. Causal
attention reads (T + 1) / 2 keys in the mean: two products forward and five backward (the scores are made again), of
2 x heads x head_dim operations a key each, so 7 L heads head_dim (T + 1). Norms, rope, softmax, optimizer and what is
recomputed count nothing. For SmolLM2-135M, r 16 and rows of 1024: N = 134.5 M, A = 4.9 M, 931 M operations a token for
full and 691 M for LoRA; at 0.6 x 1.05 TFLOP/s that is 677 and 911 tokens per second.
"""

from materials import LORA_RANK, linears


def linear_weights(shape: dict) -> int:
    return shape["num_hidden_layers"] * sum(rows * columns for rows, columns in linears(shape).values())


def head_weights(shape: dict) -> int:
    return shape["vocab_size"] * shape["hidden_size"]


def adapter_weights(shape: dict) -> int:
    return shape["num_hidden_layers"] * LORA_RANK * sum(rows + columns for rows, columns in linears(shape).values())


def attention_flops(shape: dict, row_tokens: int) -> int:
    """A token's, forward and backward."""
    width = shape["num_attention_heads"] * shape["head_dim"]
    return 7 * shape["num_hidden_layers"] * width * (row_tokens + 1)


def training_flops(shape: dict, method: str, row_tokens: int) -> int:
    """A token's, of method full, lora or qlora."""
    weights = linear_weights(shape) + head_weights(shape)
    if method == "full":
        return 6 * weights + attention_flops(shape, row_tokens)
    return 4 * weights + 6 * adapter_weights(shape) + attention_flops(shape, row_tokens)


def decoded_bytes(shape: dict, linear_format: str) -> float:
    """Weights that one generated token reads: the linears in bf16 or nf4, the head in bf16. NF4 with double
    quantisation takes half a byte a weight, a byte for the scale of 64, and 4 bytes for the scale of 256 such."""
    bytes_a_weight = {"bf16": 2.0, "nf4": 0.5 + 1 / 64 + 4 / (64 * 256)}[linear_format]
    return linear_weights(shape) * bytes_a_weight + 2.0 * head_weights(shape)


def cached_bytes(shape: dict, tokens: float) -> float:
    """Keys and values in bf16 of so many tokens before it, which one generated token reads."""
    return 2 * 2.0 * shape["num_hidden_layers"] * shape["num_key_value_heads"] * shape["head_dim"] * tokens
