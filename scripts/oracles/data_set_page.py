#!/usr/bin/env python3
"""Writes docs/data_sets.md: a line for each data set that check_learned compared, from bench/results/learned_tokens.json.

    data_set_page.py [DATA]     DATA: default ../shared/data, next to the repository
"""

import json
import pathlib
import sys

import data_sets_third  # noqa: F401  Registers its sets, and those of data_sets_second.
import learned_cases
from data_sets_first import SETS

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = {"json": "JSON", "jsonl": "JSON Lines", "csv": "CSV", "csv-excel": "CSV of Excel", "csv-utf16": "CSV in UTF-16", "tsv": "TSV",
         "jsonl-notepad": "JSON Lines with a byte order mark", "parquet-large": "Parquet of polars", "txt": "text", "json-object": "a JSON object", "parquet-datasets": "Parquet of datasets",
         "parquet-pandas": "Parquet of pandas", "parquet-pandas-index": "Parquet of pandas, with an index", "parquet-zstd": "Parquet, zstd"}
HEAD = """# Public data sets, and the key that each needs

Small files in the forms of {made} public data sets (their names of columns, nesting, roles, file format; texts of our own, with answers that are
empty, null or very long), and the {published} published files that the tests have. Most need no key, the others one, next to `objective`. What Snug makes of them was compared,
document by document, with the ids and targets that transformers and TRL make: of {documents} documents, with {models} combinations of tokenizer, template and
length, {equal} are equal ([learned_tokens.json](../bench/results/learned_tokens.json)).

`scripts/oracles/make_data_sets.py FOLDER` makes the files, `scripts/oracles/check_learned` compares, `scripts/oracles/data_set_page.py` writes this page. What a
key means is in [data.md](data.md). "Text" is a prompt and an answer in a row, "Alpaca" the form of Stanford Alpaca, and "conversation" what a chat template writes.

"""
TABLE = "| set | file | key | read as | records left out, and why |\n| --- | --- | --- | --- | --- |\n"

def file_of(name):
    entry = SETS.get(name)
    if entry is None:
        return "JSON Lines" if name.endswith("jsonl") else "JSON"
    ending = {".gz": ", gzip", ".zst": ", zstd"}.get(pathlib.Path(entry["file"]).suffix, "")
    return FILES[entry["form"]] + ending


def read_as(case):
    meaning = next(meaning for meaning in case["meanings"] if "out" not in meaning)
    if "answer" in meaning:
        return {"alpaca": "Alpaca", "chat": "conversation", "text": "text"}[case["form"]]
    if "chosen" in meaning or "label" in meaning:
        answers = "pairs" if "chosen" in meaning else "labelled answers"
        return f"{answers}, {'text' if isinstance(meaning['prompt'], str) and not meaning.get('is_chat') else 'conversation'}"
    return "text, all of it" if "text" in meaning else "conversation"


def table_line(case, result):
    name = case["name"]
    keys = " ".join(f"`{word}`" for word in case["words"]) or "none"
    found = result["sets"].get(name)
    if found is None:
        return f"| {name} | {file_of(name)} | | refused | all: {learned_cases.REFUSED[name]} |\n"
    out = "; ".join(f"{number} of {found['records']}: {why}" for why, number in found["left out"].items()) or "none"
    return f"| {name} | {file_of(name)} | {keys} | {read_as(case)} | {out} |\n"


def main():
    result = json.loads((ROOT / "bench/results/learned_tokens.json").read_text())
    made = [learned_cases.made_case(name, pathlib.Path()) for name in SETS]
    data = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / "shared/data")
    published = [learned_cases.published_case(name, data / "instruct") for name in learned_cases.PUBLISHED]
    total = {key: sum(model[key] for model in result["models"].values()) for key in ("documents", "equal")}
    page = HEAD.format(made=len(made), published=len(published), models=len(result["models"]), **total) + TABLE
    page += "".join(table_line(case, result) for case in [*made, *published])
    (ROOT / "docs/data_sets.md").write_text(page)


if __name__ == "__main__":
    main()
