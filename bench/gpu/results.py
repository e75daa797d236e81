"""gpu.json: what was measured, over several runs and cards. A measurement made again on the same card replaces the older."""

import json
import pathlib

import bars
from jobs import TRAINING

KINDS = ("training", "decoding", "peer", "peer_decoding", "profile", "calibration", "longest", "rewarded")


def empty() -> dict:
    return {kind: [] for kind in KINDS} | {"failures": []}


def load(path: pathlib.Path) -> dict:
    return empty() | json.loads(path.read_text()) if path.exists() else empty()


def to_json(result: dict) -> str:
    return json.dumps(result, indent=2) + "\n"


def replace(rows: list[dict], row: dict) -> None:
    rows[:] = [other for other in rows if (other["name"], other["device"]) != (row["name"], row["device"])] + [row]


def put(result: dict, kind: str, row: dict) -> None:
    """A row of one of KINDS, or of failures, which end with the next success of their name."""
    replace(result[kind], row)
    if kind != "failures":
        result["failures"] = [failure for failure in result["failures"]
                              if (failure["name"], failure["device"]) != (row["name"], row["device"])]


def merge(result: dict, other: dict) -> None:
    """What another run found, which counts as the newer one where its date is."""
    for kind in (*KINDS, "failures"):
        for row in other.get(kind, []):
            older = find(result[kind], row["name"], row["device"])
            if older is None or older["date"] <= row["date"]:
                put(result, kind, row)


def find(rows: list[dict], name: str, device: str) -> dict | None:
    return next((row for row in rows if (row["name"], row["device"]) == (name, device)), None)


def devices(result: dict) -> list[str]:
    return sorted({row["device"] for kind in (*KINDS, "failures") for row in result[kind]})


def compared_to(result: dict, row: dict | None) -> dict | None:
    """The LoRA row that a QLoRA row is held against: of the same card and commit."""
    lora = find(result["training"], bars.of(row["name"]).compared_to, row["device"]) if row else None
    return lora if lora and lora["commit"] == row["commit"] else None


def best(trials: list[dict], key: str) -> dict | None:
    sound = [trial for trial in trials if trial.get(key)]
    return min(sound, key=lambda trial: trial[key]) if sound else None


def add_peers(result: dict) -> None:
    """Next to each row what the peer made of the same job on the same card: its fastest variant for the speed; for the memory
    that one too, or the leanest where the row is lean."""
    for row in result["training"]:
        job = next((job for job in TRAINING if job.name == row["name"]), None)
        found = find(result["peer"], peer_name(row["model"], row["method"], row["row_tokens"]), row["device"])
        fastest = best(found["trials"], "step_seconds") if found else None
        leanest = best(found["trials"], "measured_peak_bytes") if found else None
        lean = job is not None and job.is_lean
        row["peer"] = {"fastest": fastest, "memory": leanest if lean else fastest} if fastest else None
        row["times_the_peer"] = row["tokens_per_second"] / fastest["tokens_per_second"] if fastest else None
    for row in result["decoding"]:
        found = find(result["peer_decoding"], row["name"] + " peer", row["device"])
        fastest = max((trial for trial in found["trials"] if "failure" not in trial), default=None,
                      key=lambda trial: trial["tokens_per_second"]) if found else None
        row["peer"] = fastest
        row["times_the_peer"] = row["tokens_per_second"] / fastest["tokens_per_second"] if fastest else None


def peer_name(model: str, method: str, row_tokens: int) -> str:
    return f"{model} {method} {row_tokens} peer"
