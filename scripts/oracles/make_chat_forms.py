#!/usr/bin/env python3
"""Goldens of the built-in chat templates (src/text/chat/forms): what the published template of each one's models writes of conversations,
as transformers renders it, whole and as a prompt for generation. Writes tests/text/goldens/chat_forms.json.

    PYTHON scripts/oracles/make_chat_forms.py FOLDER

PYTHON: one with transformers and tokenizers; FOLDER: the published templates as NAME.jinja, with the names of SOURCES. A conversation that a
template refuses, or writes in a way that docs/chat_templates.md says the form does not follow, has no golden.
"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, __version__

import chat_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "tests/text/goldens/chat_forms.json"
# What forms write otherwise, by the names of conversations: null as the content (which Snug refuses with advice), lists of parts (whose texts it
# joins by line breaks), roles that a form refuses, and a system message, which Mistral's template drops once an answer follows.
NULL = ["user without content", "user and system without content"]
PARTS = ["parts"]
TOOLS = ["call with an object", "call with a text", "two calls", "calls without tools", "system, tools and calls", "call of tools without lists"]
SYSTEM = ["system and one turn", "system and several turns", "empty system", "system, tools and calls", "tools without lists"]
# By form: the file, BOS and EOS, and the conversations that it writes otherwise.
SOURCES = {
    "chatml": ("chatml", None, "<|im_end|>", []),
    "qwen-2.5": ("qwen2_5", None, "<|im_end|>", []),
    "qwen-3": ("qwen3", None, "<|im_end|>", []),
    "phi-4": ("phi_4", None, "<|im_end|>", TOOLS),
    "llama-2": ("llama_2", "<s>", "</s>", []),
    "llama-3": ("llama3", "<|begin_of_text|>", "<|eot_id|>", []),
    "llama-3.1": ("llama3_1", "<|begin_of_text|>", "<|eot_id|>", ["variables of one template"]),  # of built-in tools
    "mistral-v1": ("mistral_v1", "<s>", "</s>", NULL),
    "mistral-v3": ("mistral_v2v3", "<s>", "</s>", NULL + SYSTEM),
    "mistral-v3-tekken": ("mistral_v3_tekken", "<s>", "</s>", NULL + SYSTEM),
    "mistral-v7-tekken": ("mistral_v7_tekken", "<s>", "</s>", NULL),
    "gemma": ("gemma3", "<bos>", "<eos>", TOOLS),
    "command-r": ("cohere", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", TOOLS),
    "deepseek-v3": ("deepseek_v3", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", []),
    "zephyr": ("zephyr", None, "</s>", TOOLS),
    "phi-3": ("phi3", "<s>", "<|endoftext|>", TOOLS),
}
# Whose published template has a system message of its own, which names a model, its maker and a date: the form has none.
NEEDS_SYSTEM = ["mistral-v7-tekken"]
# Whose published template writes arguments as the text that they are; the others write objects, and Snug gives them such.
TAKES_TEXTS = ["deepseek-v3"]


def with_objects(record: dict) -> dict:
    def parsed(call: dict) -> dict:
        given = call["function"]["arguments"]
        return call | {"function": call["function"] | {"arguments": json.loads(given) if isinstance(given, str) else given}}

    messages = [one | {"tool_calls": [parsed(call) for call in one["tool_calls"]]} if "tool_calls" in one else one for one in record["messages"]]
    return record | {"messages": messages}


def render(source: str, bos: str | None, eos: str, record: dict, for_generation: bool) -> str | None:
    special = {"eos_token": eos} | ({"bos_token": bos} if bos else {})
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"x": 0}, "x")), **special)
    options = {"tools": record.get("tools"), **record.get("chat_template_kwargs", {})}
    try:
        return tokenizer.apply_chat_template(
            record["messages"], chat_template=source, tokenize=False, add_generation_prompt=for_generation, **options
        )
    except Exception:  # whatever jinja2 or the template raises is a refusal
        return None


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    conversations = dict(chat_cases.conversations())
    forms = {}
    for form, (file, bos, eos, otherwise) in SOURCES.items():
        source = (folder / f"{file}.jinja").read_text()
        found = {}
        for case, record in conversations.items():
            lacks_system = form in NEEDS_SYSTEM and record["messages"][0]["role"] != "system"
            if lacks_system or case in PARTS + otherwise:
                continue
            given = record if form in TAKES_TEXTS else with_objects(record)
            for part, for_generation in (("whole", False), ("prompt", True)):
                text = render(source, bos, eos, given, for_generation)
                if text is not None:
                    found.setdefault(case, {})[part] = text
        forms[form] = {"bos": bos, "eos": eos, "texts": found}
    document = {"transformers": __version__, "conversations": conversations, "forms": forms}
    RESULT.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    for form, entry in forms.items():
        print(form, sum(len(parts) for parts in entry["texts"].values()))


if __name__ == "__main__":
    main()
