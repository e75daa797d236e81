#!/usr/bin/env python3
"""Folders of data as the `datasets` library takes them: which files belong to which configuration and split.

    PYTHON scripts/oracles/data_layouts.py

PYTHON: one with datasets. Writes tests/goldens/data_layouts.json: for each folder its files, the configuration that is taken where
none is named, and the files of each split, by the library's own rules; or the error that it ends with. Where Snug answers otherwise on purpose,
`here` says what it answers, and why (docs/data.md).
"""

import json
import logging
import os
import pathlib
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"

import datasets  # noqa: E402
from datasets.download import DownloadConfig  # noqa: E402
from datasets.load import LocalDatasetModuleFactory  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/goldens/data_layouts.json"


def card(yaml):
    return f"---\n{yaml.strip()}\n---\n# A data set\n"


def configs(*entries):
    return card("license: mit\nconfigs:\n" + "\n".join(entries))


MAIN_AND_SOCRATIC = configs(
    "- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n  - split: test\n    path: main/test-*",
    "- config_name: socratic\n  data_files:\n  - split: train\n    path: socratic/train-*\n  - split: test\n    path: socratic/test-*",
)
PARTS = [f"{folder}/{split}-00000-of-00001.parquet" for folder in ("main", "socratic") for split in ("train", "test")]

# Name: files (a list of names, or names with their texts), and what Snug answers otherwise, with the reason.
LAYOUTS = {
    "one file": ["data.jsonl"],
    "one file of a name that says nothing, with a readme and a licence": ["README.md", "LICENSE", "dolly-15k.jsonl"],
    "several files without a split's word": ["b.jsonl", "a.jsonl", "sub/c.jsonl"],
    "three splits by files": ["train.jsonl", "test.jsonl", "validation.jsonl"],
    "words of other tools": ["training.csv", "dev.csv", "eval.csv"],
    "words within names": ["my_train_set.jsonl", "my-valid.0.jsonl", "x evaluation y.jsonl"],
    "words that only begin like one": ["trainer.jsonl", "contest.jsonl", "devices.jsonl", "latest.jsonl"],
    "a file of no split": ["train.jsonl", "extra.jsonl"],
    "only a test set": ["test.jsonl"],
    "splits by folders": ["train/a.jsonl", "train/b.jsonl", "test/a.jsonl"],
    "folders before files": ["train/a.jsonl", "test.jsonl"],
    "folders with words in their names": ["my-train/a.jsonl", "data_val_2/b.jsonl", "2-test/c/d.jsonl"],
    "a folder in two splits": ["train/test/a.jsonl", "train/b.jsonl"],
    "numbered parts": [f"data/train-0000{i}-of-00003.parquet" for i in range(3)] + ["data/test-00000-of-00001.parquet"],
    "numbered parts of any name": ["data/train_sft-00000-of-00001.parquet", "data/test_gen-00000-of-00002.parquet",
                                   "data/test_gen-00001-of-00002.parquet"],
    "numbered parts with a hash": ["README.md", "data/train-00000-of-00001-a09b74b3ef9c3b56.parquet"],
    "numbered parts next to others": ["data/train-00000-of-00001.parquet", "data/notes.parquet", "old/train.parquet"],
    "numbered parts that are not in data": ["parts/train-00000-of-00002.json", "parts/train-00001-of-00002.json"],
    "more of one kind": ["a.jsonl", "b.jsonl", "notes.txt"],
    "as many of each kind": ["data.csv", "data.jsonl", "data.parquet"],
    "json and jsonl": ["a.json", "b.jsonl", "c.ndjson"],
    "tables": ["a.csv", "b.tsv"],
    "packed": ["train.jsonl.gz", "val.jsonl.zst"],
    "capitals": ["TRAIN.jsonl", "Test.jsonl"],
    "hidden": ["a.jsonl", ".b.jsonl", ".cache/c.jsonl", "__pycache__/d.jsonl", "_e.jsonl"],
    "descriptions": dict.fromkeys(["train.json", "dataset_info.json", "dataset_infos.json", "config.json"], "{}"),
    "folders within data": ["data/train/a.jsonl", "data/test/b.jsonl", "scripts/make.py"],
    "files of splits in several folders": [f"{part}/{split}.jsonl.gz" for part in ("harmless", "helpful") for split in ("train", "test")],
    "letters beyond ASCII": ["données é.jsonl", "日本/学習-train.jsonl", "日本/b.jsonl"],
    "what the hub made of one configuration": ["default/train/0000.parquet", "default/train/0001.parquet", "default/test/0000.parquet"],
    "a card that names numbered parts by a pattern": {
        "README.md": configs(
            "- config_name: en\n  data_files:\n  - split: train\n    path: en/c4-train.*.json.gz\n"
            "  - split: validation\n    path: en/c4-validation.*.json.gz"
        ),
        **dict.fromkeys(["en/c4-train.00000-of-01024.json.gz", "en/c4-validation.00000-of-00008.json.gz", "multilingual/x.json.gz"], ""),
    },
    "a card whose pattern fits what is hidden": {
        "README.md": configs("- config_name: default\n  data_files: '**/*.jsonl'"),
        **dict.fromkeys(["a.jsonl", "b/c.jsonl", ".d/e.jsonl", "b/.f.jsonl", "__g__/h.jsonl"], ""),
    },
    "a card that names what is hidden": {
        "README.md": configs("- config_name: default\n  data_files: '__g__/*.jsonl'"),
        **dict.fromkeys(["a.jsonl", "__g__/h.jsonl"], ""),
    },
    "a card without configurations": {"README.md": card("license: mit\ntags: [a, b]"), "train.jsonl": "", "test.jsonl": ""},
    "a card of two": {"README.md": MAIN_AND_SOCRATIC, **dict.fromkeys(PARTS, "")},
    "a card of one": {
        "README.md": configs("- config_name: plain_text\n  data_files:\n  - split: train\n    path: plain_text/train-*"),
        "plain_text/train-00000-of-00001.parquet": "",
        "plain_text/other.parquet": "",
    },
    "a card with a default": {
        "README.md": configs(
            "- config_name: a\n  data_files: a.jsonl", "- config_name: b\n  default: true\n  data_files:\n  - b.jsonl\n  - c.jsonl"
        ),
        **dict.fromkeys(["a.jsonl", "b.jsonl", "c.jsonl"], ""),
    },
    "a card with one called default": {
        "README.md": configs("- config_name: default\n  data_files: 'data/*.jsonl'", "- config_name: other\n  data_files: o.jsonl"),
        **dict.fromkeys(["data/a.jsonl", "data/b.jsonl", "data/sub/c.jsonl", "o.jsonl"], ""),
    },
    "a card with lists of paths": {
        "README.md": configs(
            "- config_name: default\n  data_files:\n  - split: train\n    path:\n    - part2/*.json\n    - part1/*.json\n"
            "  - split: validation\n    path: 'part[3-4]/**'"
        ),
        **dict.fromkeys(["part1/a.json", "part2/b.json", "part3/c.json", "part4/d/e.json", "part5/f.json"], ""),
    },
    "a card with folders": {
        "README.md": configs("- config_name: v1\n  data_dir: v1", "- config_name: v2\n  data_dir: ./v2/\n  default: true"),
        **dict.fromkeys(["v1/train.jsonl", "v1/test.jsonl", "v2/a.jsonl", "v2/b.jsonl"], ""),
    },
    "a card with a folder and patterns": {
        "README.md": configs("- config_name: en\n  data_dir: data/en\n  data_files:\n  - split: train\n    path: 't*.jsonl'"),
        **dict.fromkeys(["data/en/t1.jsonl", "data/en/u.jsonl", "data/de/t1.jsonl"], ""),
    },
    "a card with Windows' line ends": {
        "README.md": MAIN_AND_SOCRATIC.replace("\n", "\r\n"),
        **dict.fromkeys(PARTS, ""),
    },
    "a YAML of its own": {
        ".huggingface.yaml": "configs:\n- config_name: x\n  data_files: x.jsonl\n",
        **dict.fromkeys(["x.jsonl", "y.jsonl"], ""),
    },
    "a split that is a number": {
        "README.md": configs("- config_name: default\n  data_files:\n  - split: '2023'\n    path: y2023.jsonl"),
        "y2023.jsonl": "",
    },
    "brackets in a pattern": {
        "README.md": configs("- config_name: default\n  data_files:\n  - split: train\n    path: '[!b]?.jsonl'"),
        **dict.fromkeys(["a1.jsonl", "b1.jsonl", "c12.jsonl"], ""),
    },
    "a name that two patterns fit": ["train-train.jsonl"],
    "other files in a folder of a split's name": {"train.jsonl": "", "eval/run.py": ""},
    "splits of other kinds": ["train.csv", "test.jsonl"],
    "what the hub made of two configurations": ["main/train/0000.parquet", "main/test/0000.parquet", "socratic/train/0000.parquet"],
    "a name with a kind in the middle": ["a.json.bak", "b.jsonl"],
    "a split of a name with a dash": ["data/my-set-00000-of-00001.parquet"],
}

# What Snug answers otherwise: the reason, the configuration that is taken, and the files.
HERE = {
    "a card with a folder and patterns": ("the folder of the first configuration counts too", "en", {"en": {"train": ["data/en/t1.jsonl"]}}),
    "a name that two patterns fit": ("a file is taken once", None, {"default": {"train": ["train-train.jsonl"]}}),
    "other files in a folder of a split's name": ("only data count", None, {"default": {"train": ["train.jsonl"]}}),
    "splits of other kinds": (
        "each split has a kind of its own",
        None,
        {"default": {"train": ["train.csv"], "test": ["test.jsonl"]}},
    ),
    "what the hub made of two configurations": (
        "configurations are not mixed",
        "",
        {
            "main": {"train": ["main/train/0000.parquet"], "test": ["main/test/0000.parquet"]},
            "socratic": {"train": ["socratic/train/0000.parquet"]},
        },
    ),
    "a name with a kind in the middle": ("the ending counts", None, {"default": {"train": ["b.jsonl"]}}),
    "a split of a name with a dash": ("any name is one", None, {"default": {"my-set": ["data/my-set-00000-of-00001.parquet"]}}),
}


def taken(folder):
    """The configuration where none is named, and the files of all."""
    module = LocalDatasetModuleFactory(str(folder)).get_module()
    parameters = module.builder_configs_parameters
    found = {}
    for config in parameters.builder_configs:
        config._resolve_data_files(str(folder), DownloadConfig())
        found[config.name] = {
            str(split): [str(pathlib.Path(file).relative_to(folder)) for file in files]
            for split, files in config.data_files.items()
        }
    return parameters.default_config_name or (next(iter(found)) if len(found) == 1 else ""), found


def case(name, files):
    texts = files if isinstance(files, dict) else dict.fromkeys(files, "")
    result = {"name": name, "files": texts}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary).resolve()
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(text.encode())
        try:
            result["default"], result["configs"] = taken(folder)
        except Exception as error:
            result["error"] = type(error).__name__
    if name in HERE:
        reason, default, found = HERE[name]
        result["here"] = {"because": reason, "default": "default" if default is None else default, "configs": found}
    return result


def main():
    logging.disable(logging.WARNING)
    cases = [case(name, files) for name, files in LAYOUTS.items()]
    lines = ",\n".join(json.dumps(each) for each in cases)
    GOLDEN.write_text(f'{{"datasets": "{datasets.__version__}", "layouts": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
