"""Markdown of what was measured on cards, from gpu.json alone: gpu.md, and the table of goals in bench/RESULTS.md."""

import pathlib
import sys

sys.path += [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent / "peer")]

import bars  # noqa: E402
import jobs  # noqa: E402
import results  # noqa: E402
from report import GIB, table  # noqa: E402

PROFILE_LINES = 24
RESULTS = pathlib.Path(__file__).resolve().parent.parent / "results"


def gib(count: int | None) -> str:
    return f"{count / GIB:.2f}" if count else "not measured"


def figure(value: float | None, form: str, unit: str = "") -> str:
    return f"{value:{form}}{unit}" if value else ""


def line(kind: str, row: dict) -> str:
    """One result in one line."""
    if kind in ("peer", "peer_decoding"):
        best = max((trial for trial in row["trials"] if "failure" not in trial), default=None, key=lambda trial: trial["tokens_per_second"])
        return f"{best['tokens_per_second']:.1f} tokens/s, {best['variant']}" if best else "no variant ran"
    if kind == "profile":
        longest = row["operations"][0]
        return f"{row['step_seconds']:.3f} s a step, the longest {longest['name']}, {longest['seconds']:.3f} s"
    if kind == "rewarded":
        return (f"{row['step_seconds']:.2f} s a step, {row['rollout_seconds']:.2f} of them to make {row['answers']} answers of {row['mean_length']:.0f} tokens; planned "
                f"{row['planned_step_seconds']:.2f} and {row['planned_rollout_seconds']:.2f}; peak {gib(row['measured_peak_bytes'])} of {gib(row['planned_peak_bytes'])} planned GiB")
    if kind == "calibration":
        left_out = "".join(f", {count} steps left out" for count in row.get("left_out", []))
        return f"{row['samples']} samples in {row['file']}, {row['seconds']:.0f} s{left_out}"
    text = f"{row['tokens_per_second']:.1f} tokens/s, peak {gib(row['measured_peak_bytes'])}"
    if kind == "decoding":
        return text + " GiB"
    text = f"{row['step_seconds']:.3f} s a step, recompute={row['recompute']}, {text} of {gib(row['planned_peak_bytes'])} planned GiB"
    return f"{row['tokens']} tokens in a row: {text}" if kind == "longest" else text


def held(result: dict, name: str, row: dict | None) -> tuple[str, str]:
    """A row's goals, and whether each is held."""
    found = bars.verdicts(name, row, results.compared_to(result, row))
    return "; ".join(goal for goal, _ in found), "; ".join(verdict for _, verdict in found)


def training_section(result: dict, device: str) -> str:
    rows = []
    for job in jobs.TRAINING:
        row, reference = results.find(result["training"], job.name, device), bars.of(job.name)
        goal, verdict = held(result, job.name, row)
        if row is None:
            rows.append([job.name, "", str(job.tokens), bars.UNMEASURED, "", "", "", "", "", "", reference.published, goal, verdict])
            continue
        peer = row.get("peer")
        rows.append([job.name, row["recompute"], str(row["tokens"]), f"{row['step_seconds']:.3f}",
                     f"{row['planned_step_seconds']:.3f} ({row['planned_step_basis']})", f"{row['tokens_per_second']:.0f}",
                     f"{100 * row['share_of_peak']:.0f} %", figure(row["times_practical"], ".2f"),
                     f"{gib(row['measured_peak_bytes'])} of {gib(row['planned_peak_bytes'])}",
                     f"{row['times_the_peer']:.2f} ({peer['fastest']['variant']}); {gib(peer['memory']['measured_peak_bytes'])} GiB" if peer else
                     bars.UNMEASURED, reference.published, goal, verdict])
    return table(["job", "recompute", "tokens", "s a step", "planned s", "tokens/s", "of 989 TFLOP/s", "times practical", "GiB of planned",
                  "times the baseline's speed", "published", "goal", "held"], rows)


def decoding_section(result: dict, device: str) -> str:
    rows = []
    for name in (each.name for each in (*jobs.DECODING, *jobs.SIDE_BY_SIDE)):
        row, reference = results.find(result["decoding"], name, device), bars.of(name)
        goal, verdict = held(result, name, row)
        measured = [bars.UNMEASURED, "", "", "", ""] if row is None else [
            f"{row['tokens_per_second']:.1f}", f"{row['prefill_seconds']:.3f}", figure(row["share_of_bandwidth"] and 100 * row["share_of_bandwidth"], ".0f", " %"),
            gib(row["measured_peak_bytes"]), f"{row['times_the_peer']:.2f} ({row['peer']['variant']})" if row.get("peer") else bars.UNMEASURED]
        rows.append([name, *measured, reference.published, goal, verdict])
    return table(["generation", "tokens/s", "prefill s", "of the bandwidth", "GiB", "times the baseline's speed", "published", "goal", "held"], rows)


def rewarded_section(result: dict, device: str) -> str:
    rows = []
    for job in jobs.REWARDED:
        row = results.find(result["rewarded"], job.name, device)
        measured = [bars.UNMEASURED, "", "", "", ""] if row is None else [
            f"{row['step_seconds']:.2f}", f"{row['planned_step_seconds']:.2f} ({row['planned_step_basis']})", f"{row['rollout_seconds']:.2f}",
            f"{row['planned_rollout_seconds']:.2f}", f"{gib(row['measured_peak_bytes'])} of {gib(row['planned_peak_bytes'])}"]
        rows.append([job.name, f"{job.prompts * job.answers} of {job.completion_tokens} tokens", *measured])
    return table(["learning from rewards", "answers of a step", "s a step", "planned s", "s of making answers", "planned s of that", "GiB of planned"], rows)


def rate(operation: dict) -> str:
    unit, scale = ("TFLOP/s", 1e-12) if operation["unit"] == "flops" else ("GB/s", 1e-9)
    return f"{operation['work'] / operation['seconds'] * scale:.1f} {unit}"


def share_of_card(operation: dict, device: str) -> str:
    """Of the card's arithmetic or bandwidth, by its data sheet; empty for a card that is not known."""
    most = bars.PEAK_FLOPS if operation["unit"] == "flops" else bars.BANDWIDTH.get(bars.card_of(device))
    is_of_card = operation["unit"] in ("flops", "bytes") and bars.card_of(device)
    return f"{100 * operation['work'] / operation['seconds'] / most:.0f} %" if is_of_card else ""


def profile_section(row: dict, title: str) -> str:
    """Predicted and measured time of the operations that take longest, and of the rest as one; each one's GB/s or TFLOP/s."""
    shown, rest = row["operations"][:PROFILE_LINES], row["operations"][PROFILE_LINES:]
    rows = [[each["name"], f"{each['count']:.0f}", f"{each['seconds'] * 1e3:.2f}", f"{each['planned_seconds'] * 1e3:.2f}",
             f"{each['seconds'] / each['planned_seconds']:.2f}" if each["planned_seconds"] else "", rate(each), share_of_card(each, row["device"])]
            for each in shown]
    for name, each in (("everything else", rest), ("all", row["operations"])):
        seconds, planned = (sum(line[key] for line in each) for key in ("seconds", "planned_seconds"))
        rows.append([name, f"{sum(line['count'] for line in each):.0f}", f"{seconds * 1e3:.2f}", f"{planned * 1e3:.2f}",
                     f"{seconds / planned:.2f}" if planned else "", "", ""])
    return f"{title}, predicted by {row['planned_step_basis']} rates; commit {row['commit']}):\n\n" + \
        table(["operations", "count", "ms", "predicted ms", "times predicted", "rate", "of the card"], rows)


def profile_sections(result: dict, device: str) -> list[str]:
    found = [profile_section(row, f"Where a step of {row['model']} {row['method']} goes (recompute={row['recompute']}, {row['step_seconds'] * 1e3:.1f} ms")
             for row in result["profile"] if row["device"] == device]
    return found + [profile_section(row, f"Where a token of {row['model']}, {row['stored']}{of_several(row)}, goes ({1e3 * row.get('sequences', 1) / row['tokens_per_second']:.3f} ms with sampling")
                    for row in result["decoding"] if row["device"] == device and row.get("operations")]


def of_several(row: dict) -> str:
    return f", of each of {row['sequences']} sequences" if row.get("sequences", 1) > 1 else ""


def notes(result: dict, device: str) -> list[str]:
    """Longest row, calibration, failures, and when each commit's rows were made."""
    def here(kind: str) -> list[dict]:
        return [row for row in result[kind] if row["device"] == device]

    found = [f"- longest row, {row['model']} {row['method']}: {line('longest', row)}" for row in here("longest")]
    found += [f"- rates: {line('calibration', row)}" for row in here("calibration")]
    found += [f"- {row['name']}: the median of {row['steps']} steps" for row in here("training") if row.get("steps", jobs.STEPS) != jobs.STEPS]
    found += [f"- {row['name']}, outside the arenas on the card: " + "; ".join(f"{bytes_} after {when}" for when, bytes_ in row["outside"].items())
              for row in here("training") if row.get("outside")]
    found += [f"- {row['name']}, {gib(row['planned_host_bytes'])} GiB of host memory, updates " +
              ("on the host" if row["updates"] == "host" else "on the card") + "; planned: " +
              ", ".join(f"{channel} {seconds:.3f} s" for channel, seconds in row["planned_busy_seconds"].items())
              for row in here("training") if row.get("updates")]
    found += [f"- {row['name']} failed: {row['reason']} (commit {row['commit']})" for row in here("failures")]
    found += [f"- {row['name']}, {trial['variant']}: {trial['failure']}" for kind in ("peer", "peer_decoding") for row in here(kind)
              for trial in row["trials"] if "failure" in trial]
    runs = sorted({(row["date"][:10], row["commit"], row["driver"]) for kind in results.KINDS for row in here(kind)})
    return [f"- measured {date} at commit {commit}, driver {driver}" for date, commit, driver in runs] + found


def markdown(result: dict) -> str:
    parts = ["# On a GPU\n", f"`scripts/gpu_check`; medians of {jobs.STEPS} steps after {jobs.WARMUP}. Random weights and tokens, bf16; a row is one document, all of "
             "it trained; a step is one micro-batch, clip, update. Memory as the driver reports it above what was taken before, loading included; planned: "
             "the arena and what the plan counts next to it. Full: 6 bytes per weight (`adamw_8bit`). Rows of 8192; Llama 2 13B, which has 4096 positions, takes rows of 4096. Shares of 989 TFLOP/s count model FLOPs, nothing that is recomputed. "
             "Practical: products at 730 TFLOP/s, attention at what cuDNN was measured with, other bytes at 80 % of the bandwidth. Goals were set for an H200, those of Gemma for an H100 and whatever is recomputed; any other time's for "
             "nothing recomputed, unless the row is one with checkpoints (recompute=layer). The baseline: transformers + PEFT in the same state of the machine, its fastest "
             "variant; its memory is that variant's, of rows with checkpoints the one with the lowest peak.\n"]
    for device in results.devices(result):
        parts += [f"## {device}\n", training_section(result, device), decoding_section(result, device), rewarded_section(result, device)]
        parts += profile_sections(result, device)
        parts += ["\n".join(notes(result, device)) + "\n"]
    parts.append("Published:\n\n" + "".join(f"- by {source}: {', '.join(names)}\n" for source, names in sources().items()))
    if not results.devices(result):
        parts.insert(2, "Nothing has been measured yet.\n")
    return "\n".join(parts)


def sources() -> dict[str, list[str]]:
    """The rows that each source has a figure for."""
    found = {}
    for name, reference in bars.REFERENCES.items():
        if reference.source:
            found.setdefault(reference.source, []).append(name)
    return found


def reached(row: dict, reference: bars.Reference) -> str:
    """What was measured, in the unit of what was published."""
    if reference.published.endswith("tokens/s") or "step_seconds" not in row:
        return f"{row['tokens_per_second']:.1f} tokens/s"
    return f"{row['tokens']} tokens" if reference.published.endswith("tokens") else f"{row['step_seconds']:.2f} s"


def goals_table(result: dict) -> str:
    """Every row that has a goal or a published figure, with what each card made of it."""
    rows = []
    for name, reference in bars.REFERENCES.items():
        kind, cells = next((kind for kind in ("decoding", "longest") if kind in name), "training"), []
        for device in results.devices(result):
            row = results.find(result[kind], name, device)
            if row is None:
                continue
            cells.append(f"{bars.card_of(device) or device}: {reached(row, reference)}, {gib(row['measured_peak_bytes'])} GiB ({held(result, name, row)[1] or 'no goal'})")
        rows.append([name, reference.published, held(result, name, None)[0], "; ".join(cells) or "not yet measured"])
    return table(["job", "published", "goal", "measured"], rows)
