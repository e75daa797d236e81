#!/usr/bin/env python3
"""What llama.cpp makes of models and adapters, for tests of `snug export gguf`:

- tests/goldens/gguf/mixes.json: the type that llama-quantize gives each tensor, for some models of gguf_models.py and each kind of file;
- tests/goldens/gguf/adapters/CASE.gguf: adapters of tests/goldens by convert_lora_to_gguf.py.

    python scripts/oracles/make_gguf_exports.py LLAMA_CPP

LLAMA_CPP: a source tree of llama.cpp (that of PyPI's llama-cpp-python 0.3.36 was used); llama-quantize is found by PATH.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA_CPP = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import gguf  # noqa: E402
import transformers as hf  # noqa: E402
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402

import gguf_models  # noqa: E402

KINDS = ("f16", "q8_0", "q6_k", "q5_k_m", "q5_k_s", "q5_1", "q4_k_m", "q4_k_s", "q4_0", "q3_k_m")
MODELS = ("llama", "llama_tied", "llama_width_96", "llama_width_40", "mixtral", "qwen3_moe", "phi3", "falcon", "gpt_oss", "t5_gated")
# Two sizes of models with rules of their own, by the number of layers.
SIZE_70B = gguf_models.GROUPED | dict(num_hidden_layers=80, intermediate_size=256)
# Not GPT-2: the converter makes B of A there.
ADAPTERS = ("lora_all_linear", "lora_gpt_neox", "lora_phi3")


def convert(folder: pathlib.Path, name: str, out: pathlib.Path) -> None:
    hparams = ModelBase.load_hparams(folder, False) | gguf_models.CONVERTER_KEYS.get(name, {})
    model_class = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    model_class.set_vocab = lambda self: self.gguf_writer.add_tokenizer_model("none")
    model_class(folder, gguf.LlamaFileType.ALL_F32, out, hparams=hparams).write()


def types_of(name: str, config, work: pathlib.Path) -> dict:
    folder, source, out = work / name, work / f"{name}.gguf", work / "out.gguf"
    gguf_models.write_model(config, folder)
    convert(folder, name, source)
    types = {}
    for kind in KINDS + (("mxfp4",) if name == "gpt_oss" else ()):
        subprocess.run(["llama-quantize", source, out, {"mxfp4": "MXFP4_MOE"}.get(kind, kind.upper()), "2"], check=True, capture_output=True)
        by_type: dict[str, list[str]] = {}
        for tensor in gguf.GGUFReader(out).tensors:
            by_type.setdefault(tensor.tensor_type.name.lower(), []).append(tensor.name)
        # The tensors of the most frequent type are all the others.
        by_type[max(by_type, key=lambda kind: len(by_type[kind]))] = []
        types[kind] = by_type
    return {"config": json.loads((folder / "config.json").read_text()), "types": types}


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        configs = {name: config for name, config in gguf_models.configs().items() if name in MODELS} | {"llama_70b": hf.LlamaConfig(**SIZE_70B)}
        mixes = {name: types_of(name, config, pathlib.Path(work)) for name, config in configs.items()}
    (ROOT / "tests/goldens/gguf/mixes.json").write_text(json.dumps(mixes, indent=0, separators=(",", ":")) + "\n")
    target = ROOT / "tests/goldens/gguf/adapters"
    target.mkdir(exist_ok=True)
    for case in ADAPTERS:
        adapter = ROOT / "tests/goldens" / case / "adapter"
        base = json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"]
        subprocess.run([sys.executable, LLAMA_CPP / "convert_lora_to_gguf.py", "--base", ROOT / base, "--outfile", target / f"{case}.gguf", adapter], check=True)


if __name__ == "__main__":
    main()
