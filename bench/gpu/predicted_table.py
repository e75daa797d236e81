#!/usr/bin/env python3
"""Where a step's time is planned to go on a card that need not be here, next to what was measured there: the tables of docs/performance.md.

    bench/gpu/predicted_table.py [--snug FILE]      prints them; --check PAGE: fails where that page does not have them; --write PAGE: puts them there
"""

import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import bars  # noqa: E402
import jobs  # noqa: E402
import model_flops  # noqa: E402
import planned_pages  # noqa: E402
import processes  # noqa: E402
import results  # noqa: E402
import results_table  # noqa: E402
import stages  # noqa: E402
import step_profile  # noqa: E402
from report import table  # noqa: E402

CARD = "H200"
# Each as quick and as lean as it is measured on the card.
JOBS = [make(jobs.LLAMA, method) for method in ("lora", "qlora", "full") for make in (jobs.quick, jobs.lean)]
# What may be kept of layers that are recomputed, on the card and on the host.
SAVINGS = [dataclasses.replace(jobs.lean(jobs.LLAMA, method), recomputes=recomputes, words=words)
           for method in ("lora", "qlora") for recomputes in (jobs.LEAN, jobs.BUT_ATTENTION) for words in ((), jobs.OFFLOADED)]
NOT_MEASURED = "not yet measured"
MIN_MS = 1.0  # of a line in some job; what takes less is one line
REST = "everything else"


def kind_of(line: str) -> str:
    """Of an operation's line, as explain and `bench step` name it: the race's groups, with those taken apart that are of several kinds."""
    group = step_profile.group_of(line)
    return line.split()[0] if group in ("attention", REST) else group


def by_kind(operations: list[dict], name: str) -> dict[str, float]:
    """Milliseconds by kind."""
    found = {}
    for each in operations:
        kind = kind_of(each[name])
        found[kind] = found.get(kind, 0.0) + each["seconds"] * 1e3
    return found


def explained(snug: pathlib.Path, job: jobs.Job) -> dict:
    """What `snug explain` says: the step as the plan's clock sees it, and the device's peak. Raises Failure."""
    setting = stages.Setting(snug=snug, python="", work=HERE, out=HERE, backend="cuda", device="none", warmup=0, steps=0, limit_seconds=120)
    words = stages.words_of(setting, job, job.recomputes[0])
    return processes.run_json([snug, "explain", *words, f"device={CARD.lower()}", "--json"], setting.limit_seconds, 1)


def measured(result: dict, kind: str, job: jobs.Job, name: str) -> dict | None:
    """The card's row, where it is of the same job."""
    found = (results.find(result[kind], name, device) for device in results.devices(result) if bars.card_of(device) == CARD)
    return next((row for row in found if row and row["recompute"] == job.recomputes[0]), None)


def steps_table(result: dict, steps: dict[jobs.Job, dict]) -> str:
    rows = []
    for job, step in steps.items():
        flops = model_flops.training_flops(jobs.shape_of(job.model), job.method, job.row_tokens) * job.tokens
        practical, row = bars.practical_seconds(job.name, CARD), measured(result, "training", job, job.name)
        rows.append([job.name, job.recomputes[0], f"{flops * 1e-12:.0f}", f"{flops / bars.PEAK_FLOPS:.2f}", f"{practical:.2f}",
                     f"{step['seconds']:.3f}", f"{step['seconds'] / practical:.2f}", results_table.held(result, job.name, None)[0],
                     f"{row['step_seconds']:.3f}" if row else NOT_MEASURED])
    return table(["job", "recompute", "model TFLOP", "physical s", "practical s", "planned s", "times practical", "goal", "measured s"], rows)


def kinds_table(result: dict, steps: dict[jobs.Job, dict]) -> str:
    planned = {job: by_kind(step["operations"], "line") for job, step in steps.items()}
    profiles = {job: measured(result, "profile", job, f"{job.name} profile") for job in steps}
    found = {job: by_kind(row["operations"], "name") for job, row in profiles.items() if row}
    kinds = sorted({kind for each in planned.values() for kind in each}, key=lambda kind: -max(each.get(kind, 0) for each in planned.values()))
    shown = [kind for kind in kinds if any(each.get(kind, 0) >= MIN_MS for each in planned.values())]

    def line(name: str, sum_of) -> list[str]:
        cells = [f"{milliseconds:.1f}" if milliseconds else "" for milliseconds in map(sum_of, planned.values())]
        return [name, *cells, "; ".join(f"{job.method} {sum_of(each):.1f}" for job, each in found.items()) or NOT_MEASURED]

    rows = [line(kind, lambda each, kind=kind: each.get(kind, 0.0)) for kind in shown]
    rows.append(line(REST, lambda each: sum(value for kind, value in each.items() if kind not in shown)))
    rows.append(line("all", lambda each: sum(each.values())))
    return table(["operations, ms", *(f"{job.method}, {job.recomputes[0]}" for job in steps), "measured"], rows)


def savings_table(snug: pathlib.Path) -> str:
    rows = []
    for job in SAVINGS:
        plan = explained(snug, job)
        rows.append([f"{job.model} {job.method}", job.recomputes[0], "yes" if job.words else "no", f"{plan['step']['seconds']:.3f}",
                     f"{plan['peak']['bytes'] * 1e-9:.2f}"])
    return table(["job", "recompute", "offloaded", "planned s", "planned GB on the GPU"], rows)


def main() -> int:
    parser = planned_pages.parser(__doc__)
    parser.add_argument("--results", default=str(results_table.RESULTS), help="folder of gpu.json; what is not there is not measured")
    arguments = parser.parse_args()

    def texts(snug: pathlib.Path) -> list[str]:
        steps = {job: explained(snug, job)["step"] for job in JOBS}
        result = results.load(pathlib.Path(arguments.results) / "gpu.json")
        return [steps_table(result, steps), kinds_table(result, steps), savings_table(snug)]

    return planned_pages.show_or_check("bench/gpu/predicted_table.py", arguments, texts)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except processes.Failure as failure:
        sys.exit(f"predicted_table: {failure}")
