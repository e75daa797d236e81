"""The race's Markdown table, from its JSON alone."""

GIB = 1 << 30
BARS = {"lora": (1.25, 0.6), "qlora": (1.1, 0.45)}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def contestant_name(job: dict, name: str) -> str:
    side, which = name.split(" ", 1)
    if side == "snug":
        return f"Snug, recompute={which}"
    return f"transformers + PEFT, {which}: {job['peer_variants'][which]}"


def training_rows(job: dict) -> list[list[str]]:
    rows = []
    for name, summary in job["contestants"].items():
        share = summary["share_of_onednn"]
        ratio = job.get("speed_ratio", {}).get(name)
        memory = job.get("memory_ratio", {}).get(name)
        difference = job["loss_difference"].get(name)
        rows.append([job["method"], contestant_name(job, name), f"{summary['tokens_per_second']:.0f}",
                     f"{summary['slowest']:.0f} to {summary['fastest']:.0f}", f"{summary['peak_bytes'] / GIB:.2f}",
                     f"{100 * share['wide']:.0f} %", f"{100 * share['all']:.0f} %",
                     f"{ratio:.2f}" if ratio else "", f"{memory:.2f}" if memory else "",
                     f"{100 * difference:.2f} %" if difference is not None else ""])
    return rows


def measured_at(section: dict) -> str:
    """Of a part that was measured at another commit than the rest."""
    return f" (commit {section['commit']}, {section['date']})" if "commit" in section else ""


def own_rates(job: dict) -> str:
    own = job.get("own_flops_per_second")
    return f"; Snug's kernels alone {own['wide'] / 1e9:.0f} and {own['all'] / 1e9:.0f}" if own else ""


def imports_of(job: dict) -> str:
    """What of the peer's peak is there before any model is."""
    names = [summary["import_bytes"] for name, summary in job["contestants"].items() if name.startswith("peer")]
    return f" Of the peer's peak {max(names) / GIB:.2f} GiB are Python and its libraries." if names else ""


def trials_section(jobs: list[dict]) -> list[str]:
    """What each variant of the peer made of each job in its one short run: seconds a step and peak, or why not."""
    rows, failures = {}, []
    for job in jobs:
        for trial in job.get("trials", []):
            failed = trial.get("failure")
            if failed and not failed.startswith("not tried"):
                failures.append(f"- {job['method']}, {trial['variant']}: {failed}")
            cell = f"{trial['step_seconds']:.2f} s, {trial['peak_bytes'] / GIB:.2f} GiB" if not failed else \
                "not tried" if failed.startswith("not tried") else "failed"
            rows.setdefault(trial["variant"], []).append(cell)
    if not rows:
        return []
    return ["\nThe peer's variants in their one short run (seconds a step, resident peak):\n",
            table(["variant", *(job["method"] for job in jobs)], [[name, *cells] for name, cells in rows.items()]), *failures]


def profile_section(jobs: list[dict]) -> list[str]:
    """Milliseconds of Snug's step by group, recompute=none, a column a job."""
    known = [job for job in jobs if "profile" in job]
    failures = [f"- {job['method']} was not profiled: {job['profile_failure']}" for job in jobs if "profile_failure" in job]
    if not known:
        return failures
    rows = [[group, *(f"{1e3 * job['profile']['groups'][group]:.0f}" for job in known)]
            for group in known[0]["profile"]["groups"]]
    rows.append(["a step", *(f"{1e3 * job['profile']['step_seconds']:.0f}" for job in known)])
    for group, name in (("wide", "oneDNN alone, linears and head"), ("narrow", "oneDNN alone, adapters")):
        rows.append([name, *(f"{1e3 * job['onednn_seconds'][group]:.0f}" for job in known)])
    return ["\nWhere the time of Snug's step goes, in ms, each operation timed where it stands (recompute=none):\n",
            table(["operations", *(job["method"] for job in known)], rows), *failures]


def training_section(result: dict) -> list[str]:
    jobs = [job for job in result["jobs"] if "failure" not in job]
    parts = ["## Training\n"]
    setting = result["setting"]
    parts.append(
        f"{setting['shape']}, {setting['batch']} rows of {setting['row_tokens']} tokens per micro-batch, {setting['pairs']} "
        f"rounds of {setting['steps']} steps after {setting['warmup']}, {setting['threads']} threads. Shares are model "
        "FLOPs over what oneDNN alone reaches on the job's products, once on those of linears and head, once on all, "
        "adapters included. Faster: over the peer's fastest. Memory: recompute=none over the peer's fastest, "
        "recompute=layer over its leanest. Loss: largest difference from Snug's.\n")
    parts.append(table(["job", "contestant", "tokens/s", "range", "peak GiB", "of oneDNN, linears", "of oneDNN, all",
                        "faster", "memory", "loss"], [row for job in jobs for row in training_rows(job)]))
    for job in jobs:
        rates = job["onednn_flops_per_second"]
        parts.append(f"- {job['method']}: {job['flops_per_token'] / 1e6:.1f} model MFLOP a token; oneDNN "
                     f"({job['onednn_libraries']}) {rates['wide'] / 1e9:.0f} GFLOP/s on linears and head, "
                     f"{rates['all'] / 1e9:.0f} on all" + own_rates(job) + f". Losses agree within 1 %: {'yes' if job['losses_agree'] else 'NO'}." + imports_of(job))
        if job["method"] in BARS and setting["shape"] == "smollm2-135m":
            bars = zip(("snug none", "snug layer"), BARS[job["method"]])
            parts.append("  Resident peak, bar and measured: " + "; ".join(
                f"{name} {bar} GiB, {job['contestants'][name]['peak_bytes'] / GIB:.2f} GiB" for name, bar in bars) + ".")
    parts += [f"- {job['method']} did not run: {job['failure']}" for job in result["jobs"] if "failure" in job]
    if in_turn := result.get("in_turn"):
        rates = in_turn["tokens_per_second"]
        parts.append(f"- Snug's QLoRA next to its LoRA, {in_turn['rounds']} rounds in turn, recompute=none: {rates['qlora']:.0f} and "
                     f"{rates['lora']:.0f} tokens/s; {in_turn['ratio']:.2f} times LoRA's in the median of rounds{measured_at(in_turn)}.")
    parts += profile_section(jobs)
    return parts + trials_section(jobs)


def decoding_section(decode: dict) -> list[str]:
    rows = []
    for name, entry in decode["contestants"].items():
        bound = entry.get("bound_tokens_per_second")
        rows.append([name, f"{entry['tokens_per_second']:.2f}", f"{bound:.2f}" if bound else "",
                     f"{100 * entry['share_of_bound']:.0f} %" if bound else "", f"{entry['peak_bytes'] / GIB:.2f}"])
    parts = ["\n## Generation\n",
             f"{decode['shape']}, batch 1, {decode['prompt_tokens']} tokens of prompt, {decode['new_tokens']} new ones. "
             f"Memory is read at {decode['read_bytes_per_second'] / 1e9:.1f} GB/s; the bound is that over the weights' "
             f"bytes{measured_at(decode)}.\n",
             table(["contestant", "tokens/s", "bound", "share", "peak GiB"], rows)]
    parts += [f"- {name} did not run: {reason}" for name, reason in decode["failures"].items()]
    return parts


def markdown(result: dict) -> str:
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)
    parts = ["# The race\n",
             f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB; {result['date']}, commit "
             f"{result['commit']}; load {machine['load_before']} before. {versions}.\n"]
    if machine.get("environment"):
        parts.append("Set for all: " + ", ".join(f"{name}={value}" for name, value in machine["environment"].items()) + ".\n")
    if result["jobs"]:
        parts += training_section(result)
    if result.get("decode"):
        parts += decoding_section(result["decode"])
    return "\n".join(parts) + "\n"
