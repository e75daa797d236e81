"""Shared by the scripts that put plans into tables of the documentation: asking the binary for a plan, and comparing a page with the tables."""

import argparse
import json
import pathlib
import subprocess
from collections.abc import Callable

import processes

LIMIT_SECONDS = 120
DOES_NOT_FIT = 3
GIB = 2.0**30


def plan(snug: pathlib.Path, words: list[str]) -> dict:
    """The plan of a recipe, also of one that does not fit (`fits` says so). Raises Failure."""
    run = subprocess.run([snug, "plan", *words, "--json"], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if run.returncode not in (0, DOES_NOT_FIT):
        raise processes.Failure(f"{' '.join(words)}: {processes.reason_of(run.stderr, run.returncode)}")
    return json.loads(run.stdout)


def fitting_plan(snug: pathlib.Path, words: list[str]) -> dict:
    planned = plan(snug, words)
    if not planned["fits"]:
        raise processes.Failure(f"{' '.join(words)}: does not fit")
    return planned


def parser(description: str, option: str = "--snug", binary: str = "build/release/snug") -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument(option, dest="binary", default=binary, help="the binary, of any build")
    result.add_argument("--check", default="", help="a file that must contain the tables")
    result.add_argument("--write", default="", help="a file in which they replace the tables that have the same heading rows")
    return result


def with_tables(page: str, texts: list[str]) -> str:
    """The page, with each table put in place of the next table that has the same heading row. Raises Failure where there is none."""
    position = 0
    for text in texts:
        begin = page.find(text[:text.index("\n") + 1], position)
        if begin < 0:
            raise processes.Failure(f"the page has no table with the heading row {text.splitlines()[0]}")
        end = begin
        while page.startswith("|", end):
            end = page.index("\n", end) + 1
        page = page[:begin] + text + page[end:]
        position = begin + len(text)
    return page


def show_or_check(script: str, arguments: argparse.Namespace, make_texts: Callable[[pathlib.Path], list[str]]) -> int:
    """Prints the tables, writes them to a page, or says which of them it does not have."""
    texts = make_texts(pathlib.Path(arguments.binary).resolve())
    if arguments.write:
        page = pathlib.Path(arguments.write)
        page.write_text(with_tables(page.read_text(), texts))
        return 0
    if not arguments.check:
        print("\n".join(texts), end="")
        return 0
    page = pathlib.Path(arguments.check).read_text()
    missing = [text for text in texts if text not in page]
    for text in missing:
        print(f"{arguments.check} does not contain what {script} prints:\n{text}")
    return 1 if missing else 0
