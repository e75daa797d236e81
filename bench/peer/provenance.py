"""Which commit was measured."""

import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RESULTS = ":(exclude)bench/results"
PACKED = ROOT / "COMMIT"  # bench/gpu/pack leaves it where there is no repository


def commit() -> str:
    """Its short name, with "+changes" where the tree has some, other than in what measurements write; "unknown" outside of a
    repository or pack."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True).stdout.strip()
    if PACKED.exists():
        return PACKED.read_text().strip()
    if shutil.which("git") is None:
        return "unknown"
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+changes" if git("status", "--porcelain", "--", ".", RESULTS) else "")
