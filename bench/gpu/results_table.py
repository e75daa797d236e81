"""The Markdown table of what was measured on a card, from its JSON alone."""

from report import GIB, table

PROFILE_LINES = 16


def gib(count: int | None) -> str:
    return f"{count / GIB:.2f}" if count else "not measured"


def line(kind: str, row: dict) -> str:
    """One result in one line."""
    if kind == "peer":
        best = row["best"]
        return f"{best['tokens_per_second']:.0f} tokens/s, {best['variant']}" if best else "no variant ran"
    if kind == "profile":
        longest = row["operations"][0]
        return f"{row['step_seconds']:.3f} s a step, the longest {longest['name']}, {longest['seconds']:.3f} s"
    text = f"{row['tokens_per_second']:.1f} tokens/s, peak {gib(row['measured_peak_bytes'])}"
    if kind == "training":
        text = f"{row['step_seconds']:.3f} s a step, {text} of {gib(row['planned_peak_bytes'])} planned GiB"
    return text


def training_rows(result: dict) -> list[list[str]]:
    peers = {(row["model"], row["method"]): row["best"] for row in result["peer"]}
    rows = []
    for row in result["training"]:
        best = peers.get((row["model"], row["method"]))
        rows.append([row["model"], row["method"], row["recompute"], str(row["tokens"]), f"{row['step_seconds']:.3f}",
                     f"{row['planned_step_seconds']:.3f} ({row['planned_step_basis']})",
                     f"{row['tokens_per_second']:.0f}", gib(row["planned_peak_bytes"]),
                     gib(row["measured_peak_bytes"]), f"{best['tokens_per_second']:.0f}" if best else "",
                     gib(best["measured_peak_bytes"]) if best else "", best["variant"] if best else ""])
    return rows


def profile_rows(row: dict) -> list[list[str]]:
    """The operations that take longest, and the rest as one."""
    shown, rest = row["operations"][:PROFILE_LINES], row["operations"][PROFILE_LINES:]
    rows = []
    for line in shown:
        rate = line["work"] / line["seconds"] * (1e-12 if line["unit"] == "flops" else 1e-9)
        rows.append([line["name"], f"{line['count']:.0f}", f"{line['seconds'] * 1e3:.2f}",
                     f"{rate:.1f} {'TFLOP/s' if line['unit'] == 'flops' else 'GB/s'}"])
    others = sum(line["seconds"] for line in rest)
    return rows + [["everything else", f"{sum(line['count'] for line in rest):.0f}", f"{others * 1e3:.2f}", ""]]


def markdown(result: dict) -> str:
    parts = ["# On a card\n", f"{result['device']}, driver {result['driver']}, commit {result['commit']}, "
             f"{result['date']}; medians of {result['steps']} steps after {result['warmup']}. A step: one micro-batch, clip, "
             "update. Memory: as the driver reports it, above what was taken before; planned: the arena and what the "
             "plan counts beside it.\n"]
    if result["dry_run"]:
        parts.append("A dry run on the processor: no figure of a card.\n")
    if result["training"]:
        parts.append(table(["model", "method", "recompute", "tokens", "s a step", "planned s", "tokens/s", "planned GiB",
                            "measured GiB", "peer tokens/s", "peer GiB", "peer's best"], training_rows(result)))
    if result["decoding"]:
        parts.append(table(["model", "stored", "tokens/s", "prefill s", "measured GiB"],
                           [[row["model"], row["stored"], f"{row['tokens_per_second']:.1f}",
                             f"{row['prefill_seconds']:.3f}", gib(row["measured_peak_bytes"])]
                            for row in result["decoding"]]))
    for row in result["profile"]:
        parts.append(f"Where a step of {row['model']} {row['method']} goes (recompute={row['recompute']}, "
                     f"{row['step_seconds'] * 1e3:.1f} ms):\n")
        parts.append(table(["operations", "count", "ms", "rate"], profile_rows(row)))
    parts += [f"- {name} failed: {reason}" for name, reason in result["failures"].items()]
    parts += [f"- peer, {row['model']} {row['method']}, {trial['variant']}: {trial['failure']}" for row in result["peer"]
              for trial in row["trials"] if "failure" in trial]
    return "\n".join(parts) + "\n"
