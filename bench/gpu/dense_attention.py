"""What the card's cuDNN makes of attention whose rows are not ragged, through PyTorch: TFLOP/s forward and of the gradient, counted as Snug counts.

    dense_attention.py [--tiny]      prints JSON as its last line; ends with 77 where there is no torch or no card (--tiny: on the processor, by whatever
                                     torch has there)
"""

import json
import statistics
import sys
import time

# Rows, query heads, heads of keys, tokens, width: attention of Llama 3.1 8B in 2 rows of 8192.
SHAPE = (2, 32, 8, 8192, 128)
TINY_SHAPE = (1, 2, 1, 64, 16)
WARMUP = 5
REPEATS = 20


def left_out(reason: str) -> int:
    print(reason)
    return 77


def timed(work, synchronize) -> float:
    """The median of seconds."""
    seconds = []
    for i in range(WARMUP + REPEATS):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[WARMUP:])


def flops(shape: tuple[int, ...], products: int) -> float:
    """The causal half of so many products."""
    rows, heads, _, tokens, width = shape
    return products * rows * heads * width * float(tokens) * (tokens + 1)


def main() -> int:
    tiny = "--tiny" in sys.argv[1:]
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError as error:
        return left_out(f"no torch here: {error}")
    if not tiny and not torch.cuda.is_available():
        return left_out("torch sees no card")
    shape, device = (TINY_SHAPE, "cpu") if tiny else (SHAPE, "cuda")
    rows, heads, key_heads, tokens, width = shape
    q, k, v = (torch.randn(rows, count, tokens, width, dtype=torch.bfloat16, device=device, requires_grad=True) for count in (heads, key_heads, key_heads))
    d_out = torch.randn_like(q)

    def attention():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    synchronize = (lambda: None) if tiny else torch.cuda.synchronize
    with sdpa_kernel([SDPBackend.MATH] if tiny else [SDPBackend.CUDNN_ATTENTION]):
        forward = timed(attention, synchronize)
        out = attention()
        gradient = timed(lambda: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True), synchronize)
    print(json.dumps({"forward_tflops": flops(shape, 2) / forward * 1e-12, "gradient_tflops": flops(shape, 5) / gradient * 1e-12, "cudnn": torch.backends.cudnn.version(),
                      "torch": torch.__version__}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
