"""Runs one contestant in a fresh process of its own and keeps what it said and the most memory it held."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

POLL_SECONDS = 0.02


class Failure(Exception):
    """A run that did not end well; its message is the reason, in one line."""


@dataclasses.dataclass
class Outcome:
    stdout: str
    peak_bytes: int  # the largest VmHWM seen from outside
    seconds: float
    stderr: str = ""


def high_water_mark(process: int | str = "self") -> int:
    """VmHWM of a process in bytes; 0 once it is gone."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def reason_of(stderr: str, code: int) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line or "error:" in line]
    return f"exit code {code}: {(named or lines or ['no message'])[-1][:300]}"


def run(command: list, limit_seconds: float, threads: int, environment: dict | None = None, watch=None) -> Outcome:
    """Raises Failure when the process fails or takes longer than its limit; it is killed then. `watch` is called all the
    while; when it returns true, what was wanted of the process is there, and it is ended as one that went well."""
    variables = {**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false",
                 "HF_HUB_OFFLINE": "1", **(environment or {})}
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err, env=variables)
        peak = 0
        late = threading.Timer(limit_seconds, process.kill)
        late.start()
        done = False
        try:
            while process.poll() is None:
                peak = max(peak, high_water_mark(process.pid))
                if watch is not None and watch():
                    done = True
                    break
                time.sleep(POLL_SECONDS)
        finally:
            late.cancel()
            if process.poll() is None:
                process.kill()
                process.wait()
        seconds = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        if process.returncode != 0 and not done:
            if seconds >= limit_seconds:
                raise Failure(f"took longer than {limit_seconds:.0f} s")
            raise Failure(reason_of(err.read(), process.returncode))
        return Outcome(out.read(), peak, seconds, err.read())


def run_json(command: list, limit_seconds: float, threads: int, environment: dict | None = None, watch=None) -> dict:
    """The JSON that a process prints last, with the peak as `peak_bytes`, the larger of its own and the one seen."""
    return parsed(run(command, limit_seconds, threads, environment, watch))


def parsed(outcome: Outcome) -> dict:
    text = outcome.stdout.strip()
    try:
        answer = json.loads(text)
    except json.JSONDecodeError:
        answer = json.loads(text.splitlines()[-1])
    answer["peak_bytes"] = max(outcome.peak_bytes, answer.get("peak_bytes", 0))
    return answer
