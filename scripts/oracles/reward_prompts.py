"""The ids that TRL's GRPOTrainer gives prompts: texts as the tokenizer encodes them, messages by the chat template with the prompt for an
answer at its end; and TRL's soft punishment of long answers."""

import json
import pathlib

from transformers import AutoTokenizer
from trl.rewards import get_soft_overlong_punishment

TOKENIZER = "examples/wordnet"
USER = {"role": "user", "content": "What is a lake?"}
# The prompt is in `prompt`, as TRL wants it; what else is there stands for what rewards look at.
RECORDS = (
    {"prompt": "What is a lake?"},
    {"prompt": "What is a lake?", "solution": "water", "difficulty": 3},
    {"prompt": "Count: ", "answer": 72},
    {"prompt": [USER], "answer": "water"},
    {"prompt": [{"role": "system", "content": "Be short."}, USER], "ground_truth": "water"},
    {"prompt": [USER, {"role": "assistant", "content": "Water."}, {"role": "user", "content": "Wet?"}]},
)
LENGTHS, MOST, CACHE = (0, 1, 80, 81, 90, 100, 101), 100, 20


def make_prompts(root: pathlib.Path) -> str:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    template = json.loads((root / "preference_data" / "golden.json").read_text())["chat_template"]
    tokenizer.chat_template = template
    made = []
    for record in RECORDS:
        prompt = record["prompt"]
        if isinstance(prompt, str):
            ids = tokenizer(prompt)["input_ids"]
        else:
            ids = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=True, return_dict=True)["input_ids"]
        made.append({"record": record, "ids": list(ids)})
    punish = get_soft_overlong_punishment(max_completion_len=MOST, soft_punish_cache=CACHE)
    lengths = [[length, punish([[0] * length])[0]] for length in LENGTHS]
    (root / "reward_prompts.json").write_text(json.dumps(
        {"chat_template": template, "prompts": made, "soft_overlong": {"most": MOST, "cache": CACHE, "rewards": lengths}}, indent=1) + "\n")
    return f"reward_prompts.json: {len(made)} prompts"
