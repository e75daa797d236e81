"""A file of measured rows of one machine, which a later measurement of some of them brings up to date."""

import datetime
import json
import os
import pathlib
import platform

from provenance import commit


def processor() -> str:
    return next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("model name")), platform.processor())


def machine() -> str:
    return f"{processor()}, {os.cpu_count()} cores"


def with_earlier_rows(path: pathlib.Path, measured: list[dict], key_of) -> dict:
    """By key: what was measured now, with its commit and date, and what the file has of other keys on the same machine."""
    rows = {}
    if path.exists() and (before := json.loads(path.read_text()))["machine"] == machine():
        rows = {key_of(row): row for row in before["rows"]}
    provenance = {"commit": commit(), "date": datetime.date.today().isoformat()}
    return rows | {key_of(row): row | provenance for row in measured}
