"""One call of scripts/gpu_check on a machine that is rented by the minute: stages under a common time limit, their logs, what was
decided, and all of it in a folder that may come back as a few files of bounded size."""

import dataclasses
import datetime
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tarfile
import time

MAX_LOG_BYTES = 1 << 20  # of one log: its end
MAX_TAR_BYTES = 15 << 20
MAX_FILES = 8
MIN_SECONDS = 5.0  # no stage is begun with less
KEPT_SECONDS = 10.0  # of a call: to pack what there is


class Stop(Exception):
    """Nothing of the rest of the call would be of use; its message says why."""


@dataclasses.dataclass(frozen=True)
class Ran:
    """What became of a command. `status`: its exit status, "time limit" or "no time left"."""

    status: int | str
    seconds: float
    text: str

    @property
    def good(self) -> bool:
        return self.status == 0


def end(process: subprocess.Popen) -> None:
    """The command and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_command(command: list, limit: float, environment: dict | None = None) -> Ran:
    """Both its streams, in one text."""
    start = time.monotonic()
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                          env={**os.environ, **(environment or {})}) as process:
        try:
            text, _ = process.communicate(timeout=limit)
            status: int | str = process.returncode
        except subprocess.TimeoutExpired:
            end(process)
            text, status = process.communicate()[0], "time limit"
    return Ran(status, time.monotonic() - start, text.decode(errors="replace"))


class Session:
    """A call's stages. Each is one line on standard output, one entry in calls.json and one log in logs-CALL.tar.gz."""

    def __init__(self, call: str, results: pathlib.Path, seconds: float, facts: dict):
        self.call, self.results = call, results
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.stages: list[dict] = []
        self.decisions: dict = {}
        self.logs: dict[str, str] = {}
        self.facts = {**facts, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")}
        results.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        return self.end - KEPT_SECONDS - time.monotonic()

    def run(self, name: str, limit: float, command: list, environment: dict | None = None) -> Ran:
        """A command as a stage; what it printed is its log. The line is the caller's, by note()."""
        limit = min(limit, self.left())
        ran = run_command(command, limit, environment) if limit >= MIN_SECONDS else Ran("no time left", 0.0, "")
        self.log(name, f"{' '.join(map(str, command))}\n{ran.text}")
        return ran

    def log(self, name: str, text: str) -> None:
        self.logs[re.sub(r"[^A-Za-z0-9._-]+", "-", name) + ".log"] = text

    def note(self, name: str, good: bool, detail: str, seconds: float) -> bool:
        """The stage's line and entry; all that there is, is packed again."""
        self.stages.append({"name": name, "good": good, "detail": detail, "seconds": round(seconds, 1)})
        print(f"{name}: {'ok' if good else 'FAILED'}, {seconds:.0f} s{', ' if detail else ''}{detail}", flush=True)
        self.pack()
        return good

    def stage(self, name: str, limit: float, command: list, environment: dict | None = None, detail=lambda ran: "") -> Ran:
        """The two together, for a command whose exit status says whether it went well."""
        ran = self.run(name, limit, command, environment)
        said = detail(ran) if ran.good else f"{ran.status}: {last_line(ran.text)}"
        self.note(name, ran.good, said, ran.seconds)
        return ran

    def left_out(self, name: str, reason: str) -> None:
        """Not a failure: what the stage needs is not here."""
        self.stages.append({"name": name, "good": True, "left_out": True, "detail": reason, "seconds": 0.0})
        print(f"{name}: left out, {reason}", flush=True)
        self.pack()

    def decide(self, what: str, value, why: str) -> None:
        self.decisions[what] = value
        print(f"decided: {what} = {value} ({why})", flush=True)

    def pack(self) -> None:
        """calls.json with this call in it, and the logs."""
        path = self.results / "calls.json"
        calls = json.loads(path.read_text()) if path.exists() else {}
        calls[self.call] = {**self.facts, "seconds": round(time.monotonic() - self.start, 1), "stages": self.stages,
                            "decisions": self.decisions}
        replace(path, (json.dumps(calls, indent=2) + "\n").encode())
        replace(self.results / f"logs-{self.call}.tar.gz", packed(self.logs))

    def good(self) -> bool:
        return all(stage["good"] for stage in self.stages)


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def replace(path: pathlib.Path, content: bytes) -> None:
    whole = path.with_name(path.name + ".new")
    whole.write_bytes(content)
    whole.replace(path)


def packed(logs: dict[str, str], most: int = MAX_TAR_BYTES) -> bytes:
    """A tar of the logs' ends, as long as the limit lets them be; they are halved until it does."""
    most_log = MAX_LOG_BYTES
    while True:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, text in logs.items():
                content = text.encode()
                if len(content) > most_log:
                    content = f"[{len(content) - most_log} bytes before this are left out]\n".encode() + content[-most_log:]
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        if len(buffer.getvalue()) <= most or most_log < 1024:
            return buffer.getvalue()
        most_log //= 2
