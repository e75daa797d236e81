#!/usr/bin/env python3
"""What a practitioners' guide for FSDP and QLoRA ends with, next to what `snug search` finds, for twelve pairs of model and machine: the table of
docs/search.md. The settings are those that the test of tests/plan/guide_test.cpp walks.

    bench/gpu/guide_table.py [--search-test FILE]      prints it; --check PAGE: fails where that page does not have it; --write PAGE: puts it there
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import planned_pages  # noqa: E402
import processes  # noqa: E402
from report import table  # noqa: E402

HEAD = ["job", "the guide ends with", "tokens/s", "GiB", "`snug search` finds", "tokens/s", "GiB", "faster"]
FOUND = re.compile(r"^(?P<job>\S+ \S+ on \d+x \S+)\n"
                   r"  guide:  (?P<guide_speed>\d+) tokens/s, (?P<guide_gib>[\d.]+) GiB: (?P<guide>.*)\n"
                   r"  search: (?P<search_speed>\d+) tokens/s, (?P<search_gib>[\d.]+) GiB: (?P<search>.*)$", re.MULTILINE)
LIMIT_SECONDS = 1200
JOBS = 12


def printed(search_test: pathlib.Path) -> str:
    """What the test prints; it fails where the guide is faster. Raises Failure."""
    run = subprocess.run([search_test, "--gtest_filter=*Guide*"], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if run.returncode != 0:
        raise processes.Failure(f"{search_test.name}: {processes.reason_of(run.stdout + run.stderr, run.returncode)}")
    return run.stdout


# What a recipe says without them, and one micro-batch in a step, as all settings here have it.
LEFT_OUT = {"activation_offloading=false", "offload_params=false", "offload_optimizer=none", "prefetch=pre", "gradient_accumulation_steps=1"}


def setting(words: str) -> str:
    return " ".join(f"`{word}`" for word in words.split() if word not in LEFT_OUT)


def texts(search_test: pathlib.Path) -> list[str]:
    found = list(FOUND.finditer(printed(search_test)))
    if len(found) != JOBS:
        raise processes.Failure(f"{len(found)} jobs, not {JOBS}")
    return [table(HEAD, [[each["job"], setting(each["guide"]), each["guide_speed"], each["guide_gib"], setting(each["search"]),
                          each["search_speed"], each["search_gib"], f"{int(each['search_speed']) / int(each['guide_speed']):.2f} x"]
                         for each in found])]


if __name__ == "__main__":
    parser = planned_pages.parser(__doc__, "--search-test", "build/release/tests/plan/search_test")
    try:
        sys.exit(planned_pages.show_or_check("bench/gpu/guide_table.py", parser.parse_args(), texts))
    except processes.Failure as failure:
        sys.exit(f"guide_table: {failure}")
