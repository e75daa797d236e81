#!/usr/bin/env python3
"""Trains the byte-level BPE of this example, once; its result, tokenizer.json, is committed.

    python3 train_tokenizer.py CORPUS.jsonl tokenizer.json

Needs the Python library `tokenizers` (0.23.3 made the committed file).
"""

import json
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
END = "<|endoftext|>"
PREAMBLE = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{}\n\n### Response:\n",
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{}\n\n### Input:\n{}\n\n### Response:\n",
)


def texts(corpus, instructions):
    """The corpus, and the instructions in the form they will be asked in."""
    for line in open(corpus, encoding="utf-8"):
        yield json.loads(line)["text"]
    for line in open(instructions, encoding="utf-8"):
        record = json.loads(line)
        form = PREAMBLE[1] if record["input"] else PREAMBLE[0]
        yield form.format(record["instruction"], record["input"]) + record["output"]


def main():
    corpus, out = sys.argv[1:]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    instructions = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.jsonl")
    tokenizer.train_from_iterator(texts(corpus, instructions), trainer)
    tokenizer.save(out)


if __name__ == "__main__":
    main()
