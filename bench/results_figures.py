"""The figures of bench/RESULTS.md and of the README's table, each worked out from the files of bench/results and from nothing else.

A function for each file, whose names are those of the placeholders in bench/results_page.md.
"""

import json
import pathlib
import statistics
import sys

BENCH = pathlib.Path(__file__).resolve().parent
RESULTS = BENCH / "results"
sys.path += [str(BENCH / "gpu"), str(BENCH / "peer")]

import results  # noqa: E402
import results_table  # noqa: E402
from report import BARS, GIB, table  # noqa: E402

H200 = "NVIDIA H200"


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def off(row: dict) -> float:
    """How far a planned time is from the measured one."""
    return abs(row["ratio"] - 1)


def listed(values: list[str]) -> str:
    return ", ".join(values[:-1]) + " and " + values[-1] if len(values) > 1 else values[0]


def verdict(missed: list[str]) -> str:
    return f"missed by {'; '.join(missed)}" if missed else "held"


def span(values: list[float], form: str = ".2f") -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def offloading() -> dict:
    jobs = list(load("offloading")["jobs"].values())
    cells = [f"{job['share_of_bytes']:.2f} at {job['speed']:.2f}" for job in jobs]
    return {"offloading": f"{cells[0]}; with `adamw_8bit` {cells[1]}"}


def memory_of_runs() -> dict:
    resident = load("resident")
    return {"rank_memory": f"{load('rank_memory')['most_beyond_plan_bytes'] / 1e6:.1f} MB more at most",
            "resident": f"{percent(resident['now']['least_ratio'])} to {percent(resident['now']['greatest_ratio'])} of the plan in "
                        f"{len(resident['jobs'])} random jobs"}


def rewards() -> dict:
    found = load("grpo_example")
    after = ", ".join(f"{100 * share:.1f}" for share in found["exact_match_after"])
    race = load("grpo_race")
    ratios = []
    for dtype in (each for each in ("bf16", "fp32") if f"trl_{each}" in race):
        snug, trl = race[f"snug_{dtype}"], race[f"trl_{dtype}"]
        ratios.append(f"{dtype}: {trl['step_seconds'] / snug['step_seconds']:.1f} times as fast in {snug['peak_bytes'] / trl['peak_bytes']:.2f} of the memory")
    return {"rewarded_example": f"from {100 * found['exact_match_before']:.1f} % to {after} %; with answers of other questions as references "
                                f"{100 * found['exact_match_shuffled']:.1f} %; a run of {found['train_seconds']} s",
            "rewards_race": "; ".join(ratios)}


def example() -> dict:
    found = load("example")
    before, lora, qlora, shuffled = (f"{100 * found[key]:.1f} %" for key in
                                     ("exact_match_before", "exact_match_after", "exact_match_after_qlora", "exact_match_shuffled"))
    return {"example": f"from {before} to {lora} with LoRA in a run of {found['train_seconds']} s, to {qlora} with QLoRA; shuffled answers {shuffled}"}


def reading() -> dict:
    found, checked = load("reading"), load("reading_checksums")

    def of_dd(place: str, program: str) -> str:
        return percent(statistics.median(found[place][program]) / statistics.median(found[place]["dd"]))

    def kept(method: str) -> str:
        return percent(statistics.median(checks / plain for plain, checks in map(reversed, checked[method])))

    return {"reading": f"in memory {of_dd('memory', 'qlora')}, on disk {of_dd('disk', 'qlora')} (`snug quantize`, which writes too: "
                       f"{of_dd('memory', 'quantize')} and {of_dd('disk', 'quantize')})",
            "checksums": f"{kept('lora')}; {kept('qlora')}"}


def tokenizers() -> dict:
    rows = load("tokenizers")["speed"]["tokenizers"].values()
    return {"tokenizers": f"{span([row['snug'] / row['library'] for row in rows], '.1f')} times it ({len(rows)} tokenizers)"}


def ranks() -> dict:
    found = load("ranks")

    def times(method: str, alone: bool) -> list[str]:
        return [f"{100 * off(row):.0f}" for row in found["times"] if row["method"] == method and (row["strategy"] == "one rank") == alone]

    missed = [f"{row['method']} by {row['strategy']}" for row in found["times"] if row["strategy"] != "one rank" and off(row) > 0.15]

    gains = {row["method"]: row["gain"] for row in found["gains"] if "gain" in row}
    return {"ranks_times": f"LoRA {listed(times('lora', False))} % off, one rank alone {times('lora', True)[0]} %; "
                           f"all weights in fp32 {listed(times('full fp32', False))} %, alone {times('full fp32', True)[0]} %; {verdict(missed)}",
            "ranks_gains": f"LoRA {gains['lora']:.2f}, all weights {gains['full fp32']:.2f}"}


def families() -> dict:
    rows = load("families")["rows"]
    dense = [row["ratio"] for name, row in rows.items() if row["bar"] < 1.2]
    experts = {name: row["ratio"] for name, row in rows.items() if row["bar"] >= 1.2}
    missed = [name.replace(", ", " ") for name, row in rows.items() if row["ratio"] > row["bar"]]
    return {"families": f"{span(dense)} times; of experts " + ", ".join(f"{name.replace(', ', ' ')} {ratio:.2f}" for name, ratio in experts.items()) +
                        f"; {verdict(missed)}"}


def predictions() -> dict:
    rows = load("prediction")["recipes"]
    found = {"prediction": listed([f"{100 * off(row):.1f}" for row in rows]) + " % off; " +
                           verdict([row["recipe"] for row in rows if off(row) > 0.1])}
    for name in ("prediction_random", "prediction_random_avx512"):
        recipes, cells, missed = load(name)["recipes"], [], []
        for kind, bound, share, title in (("full", 0.15, 0.9, "a whole calibration"), ("quick", 0.25, 1.0, "a first run alone")):
            errors = [off(row[kind]) for row in recipes]
            within = sum(error <= bound for error in errors)
            cells.append(f"{title}: median {100 * statistics.median(errors):.1f} %, {within} of {len(errors)} within {percent(bound)}, "
                         f"worst {100 * max(errors):.0f} %")
            if within < share * len(errors) or (kind == "full" and statistics.median(errors) > 0.07):
                missed.append(title)
        found[name] = "; ".join([*cells, verdict(missed)])
    return found


def recompute() -> dict:
    jobs = load("recompute")["jobs"]
    return {"recompute": listed([f"{job['speed']:.3f}" for job in jobs.values()]) + " times; " +
                         verdict([name for name, job in jobs.items() if job["speed"] < 1.1])}


CONTESTANTS = {"snug none": "Snug", "peer fastest": "transformers + PEFT, fastest ({variant})", "snug layer": "Snug, layers recomputed",
               "peer leanest": "transformers + PEFT, lowest peak ({variant})"}


def race() -> dict:
    found, rows, differences = load("race"), [], []
    for job in found["jobs"]:
        goals = dict(zip(("snug none", "snug layer"), BARS.get(job["method"], ())))
        for name, summary in job["contestants"].items():
            speed, memory, goal = job["speed_ratio"].get(name), job["memory_ratio"].get(name), goals.get(name)
            title = CONTESTANTS[name].format(variant=job["peer_variants"].get(name.split(" ")[1], ""))
            rows.append([f"{job['method']}, {title}", f"{summary['tokens_per_second']:.0f}", f"{speed:.2f} x" if speed else "",
                         f"{summary['peak_bytes'] / GIB:.2f} GiB" + (f" ({goal})" if goal else ""), f"{memory:.2f}" if memory else ""])
        differences += job["loss_difference"].values()
    full = next(job for job in found["jobs"] if job["method"] == "full")["profile"]["groups"]
    shares = {name: percent(seconds / sum(full.values())) for name, seconds in full.items() if seconds}
    turn = found["in_turn"]
    slow = [f"{job['method']}, {CONTESTANTS[name]} ({ratio:.2f})" for job in found["jobs"] for name, ratio in job["speed_ratio"].items() if ratio < 2]
    rounds = [summary["fastest"] / summary["slowest"] for job in found["jobs"] for summary in job["contestants"].values()]
    rates = [rate / 1e9 for job in found["jobs"] for rate in job["onednn_flops_per_second"].values()]
    return {"race_slow": "; ".join(slow), "race_rounds": f"{max(rounds):.1f}", "race_rates": span(rates, ".0f"),
            "read_rate": f"{found['decode']['read_bytes_per_second'] / 1e9:.1f} GB/s",
            "race": table(["", "tokens/s", "times the baseline's fastest", "peak resident memory (goal)", "over the baseline's"], rows),
            "race_losses": f"{100 * max(differences):.2f} %",
            "race_profile": ", ".join(f"{name} {share}" for name, share in shares.items()),
            "in_turn": f"{turn['tokens_per_second']['qlora']:.0f} and {turn['tokens_per_second']['lora']:.0f} tokens/s, {turn['ratio']:.2f} times in the "
                       f"median of {turn['rounds']} rounds",
            "decode": decode_table(found["decode"])}


def decode_table(found: dict) -> str:
    rows = [[name, f"{row['tokens_per_second']:.2f}", f"{100 * row['share_of_bound']:.1f} %" if row.get("share_of_bound") else "",
             f"{row['peak_bytes'] / GIB:.2f} GiB"] for name, row in found["contestants"].items()]
    return table(["", "tokens/s", "share of what reading the weights allows", "peak resident memory"], rows)


def job_name(row: dict) -> str:
    return f"{row['model']} {row['method']}, {row['rows']} x {row['tokens']}"


def shares() -> dict:
    rows = [[job_name(row), percent(row["share_of_linears_and_head"]), percent(row["bar"]), "held" if
             row["share_of_linears_and_head"] >= row["bar"] else "missed"] for row in load("shares")["rows"]]
    fp32 = [[f"{job_name(row)}, {row['isa']}", percent(row["share_of_linears_and_head"]), percent(row["bar"]),
             "held" if row["share_of_linears_and_head"] >= row["bar"] else "missed"] for row in load("shares_fp32")["rows"]]
    head = ["job", "share", "goal", ""]
    return {"shares": table(head, rows), "shares_fp32": table(head, fp32)}


def shapes_race() -> dict:
    found = load("shapes_race")
    rows = [[job_name(row), row["peer"], f"{row['speed_ratio']:.2f}", f"{row['memory_ratio']:.2f}"] for row in found["rows"]]
    return {"shapes_race": table(["job", "baseline", "times its speed", "of its memory"], rows),
            "shapes_median": f"{found['median_speed_ratio']:.2f}", "shapes_goal": f"{found['speed_targets']['median']}"}


def decode_shares() -> dict:
    rows = [[f"{row['model']}, {row['weights']}, {row['what']}", str(row["sequences"]), f"{row['tokens_per_second']:.1f}", percent(row["share"]),
             row["limit"], percent(row["target"])] for row in load("decode_shares")["rows"]]
    return {"decode_shares": table(["", "sequences", "tokens/s", "share", "of the limit by", "goal"], rows)}


def builds() -> dict:
    rows = [[name, f"{row['median_ratio']:.2f}"] for name, row in load("compare_builds_products")["speed"]["rows"].items()]
    return {"compare_builds": table(["step", "time over the build's before"], rows)}


def peer_trial(row: dict, checkpoints: bool) -> dict | None:
    sound = [trial for trial in row["trials"] if "failure" not in trial and ("checkpointing" in trial["variant"]) == checkpoints]
    return max(sound, key=lambda trial: trial["tokens_per_second"], default=None)


def gpu_pairs() -> list[tuple[str, dict, dict]]:
    """Snug's rows on the H200 next to the baseline's, where both are there."""
    found, pairs = load("gpu"), []
    for method in ("lora", "qlora"):
        peer = results.find(found["peer"], f"llama-3.1-8b {method} 8192 peer", H200)
        for checkpoints in (False, True):
            snug = results.find(found["training"], f"llama-3.1-8b {method}" + (" checkpoints" if checkpoints else ""), H200)
            trial = peer_trial(peer, checkpoints) if peer else None
            if snug and trial:
                pairs.append((f"{'QLoRA' if method == 'qlora' else 'LoRA'}{', checkpoints' if checkpoints else ''}", snug, trial))
    return pairs


def figures_of(row: dict, key: str) -> str:
    return f"{row['tokens_per_second']:,.0f}, {row[key] / GIB:.1f} GiB"


def gpu() -> dict:
    rows = [[name, figures_of(peer, "measured_peak_bytes"), figures_of(snug, "measured_peak_bytes"),
             f"{snug['tokens_per_second'] / peer['tokens_per_second']:.2f} x, {snug['measured_peak_bytes'] / peer['measured_peak_bytes']:.2f}"]
            for name, snug, peer in gpu_pairs()]
    below = [(row["planned_peak_bytes"] - row["measured_peak_bytes"]) / GIB for row in load("gpu")["training"]]
    times = [row["planned_step_seconds"] / row["step_seconds"] - 1 for row in load("gpu")["training"] if row["planned_step_basis"] == "calibrated"]
    decoding = results.find(load("gpu")["decoding"], "llama-3.1-8b decoding bf16", H200)
    return {"gpu_decoding": f"{decoding['tokens_per_second']:.0f} tokens per second are {decoding['weight_bytes_per_second'] / 1e12:.1f} TB/s of weights",
            "gpu": results_table.goals_table(results.load(RESULTS / "gpu.json")),
            "gpu_peer": table(["job", "transformers and PEFT", "Snug", "speed, memory"], rows),
            "gpu_below_plan": f"{span(below)} GiB", "gpu_times": span([100 * each for each in times], "+.0f") + " %"}


def serve_races() -> dict:
    """Of each kind of weights its rows: the name ends with it."""
    return {name.rsplit(", ", 1)[1]: race["rows"] for name, race in load("serve_race")["races"].items()}


def server() -> dict:
    said = []
    for weights, rows in serve_races().items():
        said.append(f"{weights}: {listed([format(row['ratio'], '.2f') for row in rows])} times its tokens/s, "
                    f"p99 {listed([format(row['first_token_p99_ratio'], '.2f') for row in rows])} of its time")
    stress, broken = (load("serve_stress")[mode] for mode in ("load", "hostile"))
    return {"server_race": "; ".join(said),
            "server_load": f"{stress['counts']['same']:,} answers as alone, {'; '.join(stress['wrong']) or 'none lost'}; {stress['resident_bytes'] / 2**20:.0f} of "
                           f"{stress['planned_bytes'] / 2**20:.0f} planned MiB",
            "server_broken": f"{sum(broken['counts'].values()):,} requests, {'; '.join(broken['wrong']) or 'nothing found'}"}


def serving() -> str:
    """Both servers, for docs/serving.md."""
    rows = []
    for weights, found in serve_races().items():
        for row in found:
            snug, peer = row["snug"], row["llama_cpp"]
            rows.append([f"{weights}, {row['users']} user{'s' if row['users'] > 1 else ''}", *(f"{each['tokens_per_second']:.0f}" for each in (snug, peer)),
                         f"{row['ratio']:.2f}", f"{row['processor_ratio']:.2f}", *(f"{each['first_token_p50_ms']:,} and {each['first_token_p99_ms']:,} ms" for each in (snug, peer))])
    return table(["weights, users", "tokens/s", "llama.cpp", "ratio", "for each second of the processor", "first token, p50 and p99", "llama.cpp"], rows)


def readme() -> str:
    """Speed and memory in six rows: three on a GPU, three on two cores of a CPU."""
    rows = [[f"llama-3.1-8b {name}, H200", figures_of(snug, "measured_peak_bytes"), figures_of(peer, "measured_peak_bytes")]
            for name, snug, peer in gpu_pairs()]
    for job in load("race")["jobs"]:
        ours, theirs = job["contestants"]["snug none"], job["contestants"]["peer fastest"]
        name = {"lora": "LoRA", "qlora": "QLoRA"}.get(job["method"], job["method"])
        rows.append([f"smollm2-135m {name}, two cores with AMX", figures_of(ours, "peak_bytes"), figures_of(theirs, "peak_bytes")])
    return table(["job", "Snug", "transformers + PEFT"], rows)


def all_figures() -> dict:
    found = {}
    for part in (offloading, memory_of_runs, example, rewards, reading, tokenizers, ranks, families, predictions, recompute, race, shares, shapes_race,
                 decode_shares, builds, server, gpu):
        found |= part()
    return found
