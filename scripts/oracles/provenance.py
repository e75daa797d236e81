"""Where, when and of what a result was made."""

import datetime
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def provenance() -> dict:
    processor = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    return {"machine": f"{processor}, {os.cpu_count()} cores", "date": datetime.date.today().isoformat(), "commit": commit}
