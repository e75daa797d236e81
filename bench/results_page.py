#!/usr/bin/env python3
"""bench/RESULTS.md: the template bench/results_page.md with the figures of bench/results in it, the README's table of six rows, and the table of servers
in docs/serving.md.

    bench/results_page.py --write     writes bench/RESULTS.md and the tables
    bench/results_page.py --check     fails where one of them is not what would be written
"""

import argparse
import json
import pathlib
import re
import sys

import results_figures
from report import table

BENCH = pathlib.Path(__file__).resolve().parent
TEMPLATE, PAGE = BENCH / "results_page.md", BENCH / "RESULTS.md"
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
# Of other pages one table each, which stands below this heading.
TABLES = [(BENCH.parent / "README.md", "How fast, how much memory", results_figures.readme),
          (BENCH.parent / "docs/serving.md", "How fast", results_figures.serving)]


def sections(found: dict) -> list[dict]:
    """A file is one measurement, or has several, each with a commit of its own."""
    if "commit" in found:
        return [found]
    inner = [each for value in found.values() for each in (value if isinstance(value, list) else value.values() if isinstance(value, dict) else [])]
    values = [value for value in found.values() if isinstance(value, dict)] + [each for each in inner if isinstance(each, dict)]
    return [value for value in values if "commit" in value]


def distinct(values: list[str]) -> str:
    return ", ".join(sorted({str(value) for value in values if value}))


def machine_of(found: dict, section: dict) -> str:
    said = section.get("machine") or section.get("device") or found.get("machine") or found.get("cpu") or ""
    return said.get("cpu", "") if isinstance(said, dict) else said


def files_table() -> str:
    """Every file of results: what it holds, on which machine, when and at which commit it was measured."""
    rows = []
    for path in sorted(results_figures.RESULTS.glob("*.json")):
        found = json.loads(path.read_text())
        parts = sections(found)
        machines = distinct([machine_of(found, part) for part in parts] or [machine_of(found, found)])
        rows.append([f"[{path.stem}](results/{path.name})", machines, distinct([part.get("date", "")[:10] for part in parts]),
                     distinct([part["commit"] for part in parts])])
    return table(["file", "machine", "date", "commit"], rows)


def page() -> str:
    figures = results_figures.all_figures() | {"files": files_table()}
    template = TEMPLATE.read_text()
    unused = set(figures) - set(PLACEHOLDER.findall(template))
    if unused:
        raise SystemExit(f"{TEMPLATE.name} does not show {', '.join(sorted(unused))}")
    return PLACEHOLDER.sub(lambda match: figures[match[1]].rstrip("\n"), template)


def with_table(path: pathlib.Path, heading: str, figures: str) -> str:
    text, count = re.subn(rf"(?<=## {heading}\n\n)(?:\|.*\n)+", lambda _: figures, path.read_text())
    if count != 1:
        raise SystemExit(f'{path.name} has no table below "{heading}"')
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--check", action="store_true")
    arguments, status = parser.parse_args(), 0
    for path, text in [(PAGE, page()), *((path, with_table(path, heading, figures())) for path, heading, figures in TABLES)]:
        if arguments.write:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.name} is not what bench/results_page.py --write writes")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
