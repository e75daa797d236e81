#!/usr/bin/env python3
"""Converts models of tests/goldens to GGUF with llama.cpp's own converter, as tests/goldens/gguf/converted/CASE.gguf. The tests import them,
and hold the weights against those of the folder.

    python scripts/oracles/make_gguf_models.py LLAMA_CPP

LLAMA_CPP: a source tree of llama.cpp (that of PyPI's llama-cpp-python 0.3.36 was used, vendor/llama.cpp in its source distribution).
The models have no tokenizer, so the converter's step for it is left out.
"""

import json
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA_CPP = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import conversion  # noqa: E402
import gguf  # noqa: E402
import torch  # noqa: E402

F32 = gguf.LlamaFileType.ALL_F32
CASES = {
    "biases": F32,
    "rope_llama3": F32,
    "rope_yarn": F32,
    "mixtral": F32,
    "qwen2": gguf.LlamaFileType.MOSTLY_F16,
    "qwen3": gguf.LlamaFileType.MOSTLY_BF16,
    "gemma2": F32,
    "gemma3": F32,
    "phi": F32,
    "phi3_long": F32,
    "gpt2": F32,
    "gpt_neox": F32,
    "bloom": F32,
    "falcon_grouped": F32,
    "olmo2": F32,
    "stablelm": F32,
    "gpt_oss": F32,
    "mt5": F32,
}


def folder_for(case, folder):
    """The model as the converter expects it: older keys, and the number of tokens."""
    source = ROOT / "tests/goldens" / case / "model"
    for file in source.iterdir():
        shutil.copy(file, folder)
    older = source / "config_v4.json"
    config = json.loads((older if older.exists() else source / "config.json").read_text())
    if config["model_type"] == "gpt2":
        config["n_ctx"] = config["n_positions"]
    if config["model_type"] == "gemma3_text":
        vocabulary = {str(token): token for token in range(config["vocab_size"])}
        (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}))
    (folder / "config.json").write_text(json.dumps(config))
    return config


def convert(case, file_type, path):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config = folder_for(case, folder)
        model = conversion.get_model_class(config["architectures"][0], mmproj=False)
        model.set_vocab = lambda self: self.gguf_writer.add_tokenizer_model("none")
        with torch.inference_mode():
            conversion_of = model(folder, file_type, path)
            if config["model_type"] == "gpt_neox":
                conversion_of.hparams["rotary_pct"] = config["rotary_pct"]
            conversion_of.write()


TARGET = ROOT / "tests/goldens/gguf/converted"
TARGET.mkdir(parents=True, exist_ok=True)
for case, file_type in CASES.items():
    convert(case, file_type, TARGET / f"{case}.gguf")
    print(case, (TARGET / f"{case}.gguf").stat().st_size)
