"""Which key each data set needs, and what the published files of the data folder mean (data_sets_first.py has the form).

`words` are what a user adds to `snug train data=FILE`; `form` says how a pair of texts is read: "alpaca", "chat" for a
user's message and an answer, or "text" for two texts in a row.
"""

import json

from data_sets_first import SETS, pair, turn

ROLES = {"human": "user", "gpt": "assistant", "observation": "tool", "system": "system", "user": "user", "assistant": "assistant"}
QUESTIONS = {
    "magicoder-oss-instruct": "problem solution", "xlam-function-calling-60k": "query answers", "openmathreasoning": "problem generated_solution",
    "aya-dataset": "inputs targets", "samsum": "dialogue summary", "cnn-dailymail": "article highlights", "xsum": "document summary",
}
TEXT_PAIRS = {"wmt14-de-en": "translation.de translation.en", "flan-v2": "inputs targets", "p3": "inputs_pretokenized targets_pretokenized",
              "natural-instructions": "input output.0", "oasst2-trees": "prompt.text prompt.replies.0.text"}
WORDS = {name: ["fields={{question: {}, answer: {}}}".format(*fields.split())] for name, fields in QUESTIONS.items()}
WORDS |= {name: ["fields={{prompt: {}, completion: {}}}".format(*fields.split())] for name, fields in TEXT_PAIRS.items()}
WORDS |= {
    "squad-v2": ['fields={prompt: "{context}\\n\\n{question}", completion: answers.text.0}'],
    "s1k": ['fields={question: question, answer: "<think>{thinking_trajectories.0}</think>\\n{attempt}"}'],
    "boolq": ['fields={prompt: "{passage}\\n{question}?", completion: " {answer}"}'],
    "the-stack-dedup": ["fields.text=content"],
    "ultrachat": ["fields.messages=data"],
    "daily-dialog": ["fields.messages=dialog"],
    "vertex-gemini": ["fields={messages: contents, messages.content: parts, system: systemInstruction.parts.0.text}"],
    "nectar": ["fields={chosen: answers.0.answer, rejected: answers.2.answer}"],
}
# Sets that Snug does not train, and why.
REFUSED = {
    "oasst1": "each row is one message of a tree: choose the ways through it first",
    "pku-saferlhf": "a number says which of two answers is better",
    "helpsteer3": "a number says which of two answers is better",
    "piqa": "a number says which of two answers is right",
    "excel-csv": "semicolons in place of commas",
    "utf16-csv": "UTF-16",
}
ALPACA_FORMS = ["dolly-15k", "mathinstruct", "codealpaca", "longalpaca", "open-platypus", "lines-called-json", "list-called-jsonl"]
CHAT_FORMS = ["openorca", "metamathqa", "gsm8k-csv", "s1k", *QUESTIONS]
# Where a key reads something else of a record than its card would have it.
MAPPED = {
    "oasst2-trees": lambda r: pair(r["prompt"]["text"], r["prompt"]["replies"][0]["text"]),
    "s1k": lambda r: pair(r["question"], f"<think>{r['thinking_trajectories'][0]}</think>\n{r['attempt']}"),
    "boolq": lambda r: pair(f"{r['passage']}\n{r['question']}?", " " + json.dumps(r["answer"])),
    "squad-v2": lambda r: pair(f"{r['context']}\n\n{r['question']}", (r["answers"]["text"] or [""])[0]),
    "xlam-function-calling-60k": lambda r: {"messages": [turn("user", r["query"]), turn("assistant", r["answers"])], "tools": json.loads(r["tools"])},
    "natural-instructions": lambda r: [pair(one["input"], one["output"][0]) for one in r["Instances"]],
    "nectar": lambda r: {"prompt": r["prompt"], "chosen": r["answers"][0]["answer"], "rejected": r["answers"][2]["answer"]},
}


def made_case(name, folder):
    entry = SETS[name]
    form = "alpaca" if name in ALPACA_FORMS else "chat" if name in CHAT_FORMS else "text"
    objective = entry.get("objective", "")
    words = WORDS.get(name, []) + ([f"objective={objective}"] if objective in ("dpo", "kto", "orpo") else [])
    meanings = [MAPPED[name](record) if name in MAPPED else meaning for record, meaning in entry["records"]()]
    meanings = meanings[0] if isinstance(meanings[0], list) else meanings
    mark = {"hh-rlhf": "prompt_inside", "orca-dpo-pairs": "is_chat", "orpo-dpo-mix-40k": "learns_prompt"}.get(name)
    if mark:
        meanings = [meaning | {mark: True} for meaning in meanings]
    if name == "tinystories":  # One text, unless what separates stories is the tokenizer's EOS.
        meanings = [{"text": "<|endoftext|>\n".join(meaning["text"] + "\n" for meaning in meanings)}]
    return dict(name=name, file=folder / name / entry["file"], form=form, words=words, meanings=meanings)


def spoken(message):
    role, text = message["from"], message["value"]
    if role != "function_call":
        return turn(ROLES[role], text)
    call = json.loads(text)
    return turn("assistant", "", tool_calls=[{"type": "function", "function": call}])


def alpaca(r):
    return pair(r["instruction"], r.get("output", r.get("response")), r.get("input", r.get("context", "")))


def preferred(r):
    return {"prompt": [spoken(m) for m in r["conversations"]], "chosen": r["chosen"]["value"], "rejected": r["rejected"]["value"]}


def parts_joined(r):
    return {"messages": [turn(m["role"], "\n".join(part["value"] for part in m["content"])) for m in r["messages"]]}


PUBLISHED = {
    "alpaca_5000.json": ("alpaca", [], alpaca),
    "alpaca_seed_tasks.jsonl": ("alpaca", ["fields={input: instances.0.input, output: instances.0.output}"],
                                lambda r: pair(r["instruction"], r["instances"][0]["output"], r["instances"][0]["input"])),
    "dolly_hhrlhf_train_small.jsonl": ("text", [], lambda r: pair(r["prompt"], r["response"])),
    "gsm8k/train.jsonl": ("chat", [], lambda r: pair(r["question"], r["answer"])),
    "litgpt/alpaca.json": ("alpaca", [], alpaca),
    "litgpt/dolly.json": ("alpaca", [], alpaca),
    "litgpt/longform_train.json": ("text", [], lambda r: pair(r["input"], r["output"])),
    "litgpt/longform_val.json": ("text", [], lambda r: pair(r["input"], r["output"])),
    "llamafactory/alpaca_en_demo.json": ("alpaca", [], alpaca),
    "llamafactory/dpo_en_demo.json": ("", ["objective=dpo"], preferred),
    "llamafactory/glaive_toolcall_en_demo.json": ("", [], lambda r: {"messages": [spoken(m) for m in r["conversations"]],
                                                                     "tools": json.loads(r["tools"])}),
    "llamafactory/identity.json": ("alpaca", [], alpaca),
    "llamafactory/kto_en_demo.json": ("", ["objective=kto"], lambda r: {"prompt": r["messages"][:-1], "completion": r["messages"][-1]["content"],
                                                                        "label": r["label"]}),
    "llamafactory/v1_sft_demo.jsonl": ("", [], parts_joined),
    "openai_toy_chat_first4.jsonl": ("", [], lambda r: r),
    "torchtune/alpaca_tiny.json": ("alpaca", [], alpaca),
    "torchtune/chat_tiny.json": ("", [], lambda r: {"messages": [spoken(m) for m in r["conversations"]]}),
    "torchtune/hh_rlhf_tiny.json": ("", ["objective=dpo"], lambda r: {"prompt": r["chosen"][:-1], "chosen": r["chosen"][-1]["content"],
                                                                      "rejected": r["rejected"][-1]["content"]}),
    "torchtune/instruct_tiny.json": ("alpaca", [], alpaca),
    "torchtune/stack_exchange_paired_tiny.json": ("", ["objective=dpo", "fields={chosen: response_j, rejected: response_k}"],
                                                  lambda r: {"prompt": r["question"], "chosen": r["response_j"], "rejected": r["response_k"],
                                                             "is_chat": True}),
}


def published_case(name, folder):
    form, words, meaning = PUBLISHED[name]
    text = (folder / name).read_text()
    records = json.loads(text) if name.endswith(".json") else [json.loads(line) for line in text.splitlines() if line.strip()]
    return dict(name=name, file=folder / name, form=form, words=words, meanings=[meaning(record) for record in records])
