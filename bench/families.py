#!/usr/bin/env python3
"""How long a training step of each family takes against llama's, on shapes of equal FLOPs, in turn on one machine.

    bench/families.py SNUG [--pairs N] [--tokens N] [--families NAME ...] [--result bench/results/families.json]

Every model has the same width, heads, layers and vocabulary, and as many multiplications in its linears as llama: a plain mlp is 1.5
times as wide as a gated one, and the experts that a token has are together as wide as llama's mlp. A pair is a step of the family and one
of llama, each by `snug bench step` in a process of its own; their ratio counts, by the median of all pairs. Bars: 1.15, and 1.3 for
experts. Full training updates all experts, of which a token has a part; LoRA of attention shows them without that.
Exit code 0, whatever was measured: speed fails nothing.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "bench" / "peer"))

from provenance import commit  # noqa: E402

WIDTH, HEADS, LAYERS, GATED, PLAIN, VOCAB = 768, 12, 3, 2048, 3072, 4096  # 2 x 3072 = 3 x 2048, and bloom's are 4 x 768
BAR, BAR_OF_EXPERTS = 1.15, 1.3

COMMON = {
    "vocab_size": VOCAB, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "max_position_embeddings": 4096, "tie_word_embeddings": True, "initializer_range": 0.02, "torch_dtype": "bfloat16",
}
LLAMA_LIKE = {"num_key_value_heads": HEADS, "head_dim": WIDTH // HEADS, "intermediate_size": GATED, "rms_norm_eps": 1e-6,
              "rope_theta": 10000.0, "hidden_act": "silu"}
GEMMA_LIKE = LLAMA_LIKE | {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"}
FAMILIES = {
    "llama": LLAMA_LIKE,
    "gemma": GEMMA_LIKE,
    "gemma2": GEMMA_LIKE | {"query_pre_attn_scalar": 64, "sliding_window": 256},
    "gemma3_text": GEMMA_LIKE | {"query_pre_attn_scalar": 64, "sliding_window": 256, "sliding_window_pattern": 3},
    "stablelm": LLAMA_LIKE | {"partial_rotary_factor": 0.25, "layer_norm_eps": 1e-5},
    "phi": {"intermediate_size": PLAIN, "hidden_act": "gelu_new", "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5},
    "gpt_neox": {"intermediate_size": PLAIN, "hidden_act": "gelu", "rotary_pct": 0.25, "layer_norm_eps": 1e-5},
    "falcon": {"ffn_hidden_size": PLAIN, "num_kv_heads": HEADS, "new_decoder_architecture": True, "activation": "gelu"},
    "gpt2": {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 4096, "n_inner": PLAIN,
             "activation_function": "gelu_new"},
    "bloom": {"n_layer": LAYERS, "n_head": HEADS},
    "mixtral": LLAMA_LIKE | {"intermediate_size": GATED // 2, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_moe": LLAMA_LIKE | {"moe_intermediate_size": GATED // 4, "num_experts": 16, "num_experts_per_tok": 4,
                               "norm_topk_prob": True},
}
# The same shape with what else is asked of it.
VARIANTS = {"mixtral, balanced": ("mixtral", {"output_router_logits": True}),
            "qwen3_moe, balanced": ("qwen3_moe", {"output_router_logits": True}),
            "mixtral, LoRA": ("mixtral", {}), "qwen3_moe, LoRA": ("qwen3_moe", {})}
FULL = ["method=full"]
LORA = ["method=lora", "target_modules=q_proj,k_proj,v_proj,o_proj"]


def forms() -> dict:
    """Name to config.json."""
    found = {name: COMMON | {"model_type": name} | fields for name, fields in FAMILIES.items()}
    return found | {name: found[family] | more for name, (family, more) in VARIANTS.items()}


def step_seconds(snug: str, model: pathlib.Path, method: list[str], tokens: int) -> float:
    words = [snug, "bench", "step", f"model={model}", "init=random", *method, f"max_length={tokens}",
             "per_device_train_batch_size=2", "compute_dtype=bf16", "--json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["step_seconds"]


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snug")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=512, help="of a row, of which a step has two")
    parser.add_argument("--families", nargs="*", default=[], help="all but llama where none is named")
    parser.add_argument("--result", type=pathlib.Path)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = {}
        for number, (name, config) in enumerate(forms().items()):
            models[name] = pathlib.Path(folder) / str(number)
            models[name].mkdir()
            (models[name] / "config.json").write_text(json.dumps(config))
        names = wanted.families or [name for name in models if name != "llama"]
        pairs = {name: [] for name in names}
        for _ in range(wanted.pairs):
            for name in names:
                method = LORA if "LoRA" in name else FULL
                pairs[name].append([step_seconds(wanted.snug, models[which], method, wanted.tokens) for which in (name, "llama")])
    rows = {}
    for name, seconds in pairs.items():
        has_experts = "moe" in name or "mixtral" in name
        ratio = statistics.median(own / llama for own, llama in seconds)
        bar = BAR_OF_EXPERTS if has_experts else BAR
        rows[name] = {"ratio": round(ratio, 3), "bar": bar, "holds": ratio <= bar, "seconds_and_llamas": seconds}
        print(f"{name:22} {ratio:.2f} of llama's (bar {bar}){'' if ratio <= bar else ', missed'}", flush=True)
    if wanted.result:
        wanted.result.write_text(json.dumps({
            "what": "a training step (full, or LoRA of attention where named; bf16, two rows) of each family against llama's, shapes of equal FLOPs, in turn",
            "command": "bench/families.py", "machine": f"{processor()}, {os.cpu_count()} cores",
            "date": datetime.date.today().isoformat(), "commit": commit(), "tokens_of_a_row": wanted.tokens, "rows": rows,
        }, indent=1) + "\n")


if __name__ == "__main__":
    main()
