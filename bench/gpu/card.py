"""What the driver says of the card, through nvidia-smi; nothing is set."""

import shutil
import subprocess
import time

MIB = 1 << 20
LOOK_SECONDS = 0.5


def has_tool(name: str) -> bool:
    return shutil.which(name) is not None


def query(what: str) -> str:
    """The first card's answer; empty where there is none."""
    if not has_tool("nvidia-smi"):
        return ""
    answer = subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={what}", "--format=csv,noheader,nounits"],
                            capture_output=True, text=True)
    return answer.stdout.strip() if answer.returncode == 0 else ""


def facts() -> dict:
    return {"device": query("name") or "none", "driver": query("driver_version") or "none"}


def used_bytes() -> int:
    used = query("memory.used")
    return int(used) * MIB if used.isdigit() else 0


class MemoryWatch:
    """The most memory that was in use on the card, above what was when the watch was made. 0: no card to ask. Who times
    something leaves off looking meanwhile: asking takes the driver's locks."""

    def __init__(self):
        self.before = used_bytes()
        self.peak = 0
        self.looked = 0.0

    def look(self, at_once: bool = False) -> None:
        """Asks the driver, but not all the time."""
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS and not at_once:
            return
        self.looked = now
        self.peak = max(self.peak, used_bytes() - self.before)
