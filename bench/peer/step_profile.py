"""Where the time of Snug's step goes, by kinds of operation, next to the time that oneDNN alone takes for the products."""

import re

import processes
from contestants import Setting, snug_words
from materials import LORA_RANK

GROUPS = ("products of linear layers", "head and loss", "products of adapters", "dequantising", "attention", "update",
          "everything else")


def group_of(name: str) -> str:
    """Of an operation's name as `snug bench step` prints it."""
    if name.startswith("linear_cross_entropy"):
        return "head and loss"
    if name.startswith("dequantize"):
        return "dequantising"
    if name.startswith("attention"):
        return "attention"
    if name.split()[0] in ("adamw", "adamw_8bit", "adamw_bf16", "global_norm", "clip_factor", "cast"):
        return "update"
    if name.startswith("matmul"):
        sides = [int(side) for side in re.search(r"\(([\d, ]+)\)$", name).group(1).split(",")]
        return "products of adapters" if min(sides) <= LORA_RANK else "products of linear layers"
    return "everything else"


def profile(setting: Setting, method: str) -> dict:
    """Seconds of a step by group, each operation timed where it stands, and of the largest operations. Raises
    Failure."""
    words = [*snug_words(setting, method), "--json"]
    answer = processes.run_json([setting.snug, "bench", "step", *words], setting.limit_seconds, setting.threads)
    seconds = dict.fromkeys(GROUPS, 0.0)
    for operation in answer["operations"]:
        seconds[group_of(operation["name"])] += operation["seconds"]
    return {"step_seconds": answer["step_seconds"], "groups": seconds, "largest": answer["operations"][:12]}
