"""A tiny gpt-oss folder with experts in MXFP4: what `snug dequantize` makes of it next to what transformers loads of it.

    python scripts/oracles/check_mxfp4.py [SNUG]      default: build/release/snug

Every weight must be equal, and the logits within fp32's rounding.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, GptOssConfig, Mxfp4Config

HIDDEN, INNER, EXPERTS, LAYERS, BLOCK = 64, 32, 3, 2, 32


def write_folder(folder: pathlib.Path) -> None:
    config = GptOssConfig(vocab_size=64, hidden_size=HIDDEN, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=2,
                          num_key_value_heads=1, head_dim=32, num_local_experts=EXPERTS, num_experts_per_tok=2)
    weights = AutoModelForCausalLM.from_config(config).to(torch.bfloat16).state_dict()
    for layer in range(LAYERS):
        for name, rows, columns in (("gate_up_proj", 2 * INNER, HIDDEN), ("down_proj", HIDDEN, INNER)):
            stack = f"model.layers.{layer}.mlp.experts.{name}"
            del weights[stack]
            weights[stack + "_blocks"] = torch.randint(0, 256, (EXPERTS, rows, columns // BLOCK, BLOCK // 2), dtype=torch.uint8)
            weights[stack + "_scales"] = torch.randint(118, 124, (EXPERTS, rows, columns // BLOCK), dtype=torch.uint8)
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    described = config.to_dict() | {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}
    (folder / "config.json").write_text(json.dumps(described, default=str))


def main() -> None:
    snug = sys.argv[1] if len(sys.argv) > 1 else "build/release/snug"
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as work:
        source, made = pathlib.Path(work) / "source", pathlib.Path(work) / "made"
        source.mkdir()
        write_folder(source)
        subprocess.run([snug, "dequantize", f"model={source}", f"output_dir={made}"], check=True)
        ours = AutoModelForCausalLM.from_pretrained(made, dtype=torch.float32)
        theirs = AutoModelForCausalLM.from_pretrained(source, quantization_config=Mxfp4Config(dequantize=True), dtype=torch.bfloat16).float()
    expected = dict(theirs.named_parameters())
    differing = [name for name, tensor in ours.named_parameters() if not torch.equal(tensor, expected.pop(name))]
    if differing or expected:
        sys.exit(f"differing: {differing}; missing: {sorted(expected)}")
    ids = torch.tensor([[1, 5, 9, 7, 3]])
    print("weights equal; logits differ by", float((ours(ids).logits - theirs(ids).logits).abs().max()))


if __name__ == "__main__":
    main()
