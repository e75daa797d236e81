#!/usr/bin/env python3
"""Published fine-tuning runs next to Snug's plans for the same jobs: the tables of docs/published.md.

    bench/gpu/published_table.py [--snug FILE]      prints them; --check PAGE: fails where that page does not contain them; --write PAGE: writes them there

Each row of published.csv, the figures as their authors printed them, is planned in its own setting; each job of these rows that is affordable also in the
best setting that `snug search` finds. Of encoder-decoders and of prompts, the commands are shown. Rows that cannot be planned say why. Nothing is
fitted to them.

The ranges and rows that the page's prose names are held against its tables (published_prose.py) with --check and after --write.

`--rows 1,2,3` plans these rows alone, and `--check` with it compares their lines. `--searches N`: jobs are searched whose cards times billions of
parameters are at most N; 0 leaves the searches out.
"""

import concurrent.futures
import csv
import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import planned_pages  # noqa: E402
import processes  # noqa: E402
import published_prose  # noqa: E402
from planned_pages import GIB  # noqa: E402
from report import table  # noqa: E402

MODELS = {
    ("BLOOMZ (7B)", "7"): "bloomz-7b1",
    ("CodeLlama", "13"): "codellama-13b",
    ("CodeLlama", "34"): "codellama-34b",
    ("CodeT5+ 2B", "2"): "codet5p-2b",
    ("Falcon", "40"): "falcon-40b",
    ("FLAN-XL (11B)", "11"): "flan-t5-xxl",
    ("FLAN-XL (3B)", "3"): "flan-t5-xl",
    ("FLANT5-XL 3B", "3"): "flan-t5-xl",
    ("Gemma 2 9B", "9"): "gemma-2-9b",
    ("Gemma 7B", "7"): "gemma-7b",
    ("GPT-2 XL (1.5B)", "1.5"): "gpt2-xl",
    ("Llama 2", "7"): "llama-2-7b",
    ("Llama 2", "13"): "llama-2-13b",
    ("Llama 2", "70"): "llama-2-70b",
    ("Llama 2 13B", "13"): "llama-2-13b",
    ("Llama 3 8B", "8"): "llama-3-8b",
    ("Llama 3.1 70B", "70"): "llama-3.1-70b",
    ("Llama 3.1 8B", "8"): "llama-3.1-8b",
    ("LLaMA-13B", "13"): "llama-13b",
    ("Llama-2 70B", "70"): "llama-2-70b",
    ("Llama-2 7B", "7"): "llama-2-7b",
    ("LLaMA-30B", "30"): "llama-30b",
    ("LLaMA-65B", "65"): "llama-65b",
    ("LLaMA-7B", "7"): "llama-7b",
    ("Mistral 7B v0.2 Base", "7"): "mistral-7b-v0.2",
    ("mTO (12B)", "12"): "mt0-xxl",
    ("phi-1.5", "1.3"): "phi-1_5",
    ("Phi3-mini (3.8B)", "3.8"): "phi-3-mini-128k",
    ("StableLM Alpha", "3"): "stablelm-base-alpha-3b",
    ("TO (3B)", "3"): "t0-3b",
    ("Yi 34B", "34"): "yi-34b",
}
CARDS = {
    "H100": "h100", "H100 SXM": "h100", "Pro 6000": "rtx-pro-6000", "RTX 4090": "rtx-4090", "RTX 3090": "rtx-3090", "A5000": "rtx-a5000",
    "A6000 Ada": "rtx-6000-ada", "A100-SXM4-40GB": "a100-40gb", "A100": "a100",
}
# Rows whose figures are in pictures alone: the setting in which they are planned is chosen, not published.
FULL_CHOSEN = {"gpu": "A100", "gpus": "8", "gpu_mem_gb": "40", "micro_batch": "1", "seq_len": "1024", "grad_checkpoint": "y", "outcome": "chosen"}
LORA_CHOSEN = {"gpu": "A100", "gpus": "1", "gpu_mem_gb": "80", "micro_batch": "1", "seq_len": "1024", "outcome": "chosen"}
# "DS Zero offload: Yes (50G CPU)": neither the stage nor what is offloaded is published. DeepSpeed's ZeRO-Offload is stage 2, with the
# optimizer on the host.
ZERO_OFFLOAD = {"strategy": "zero2", "cpu_offload": "50GiB"}
SETTINGS = {58: ZERO_OFFLOAD, 59: ZERO_OFFLOAD, 60: FULL_CHOSEN, 61: FULL_CHOSEN, 65: LORA_CHOSEN, 66: LORA_CHOSEN}
# Models whose positions end before the rows that were run: as many tokens in more rows.
POSITIONS = {"llama-2-13b": 4096}
# Cards times billions of parameters: larger jobs have nine times the settings, or plans that take longer.
AFFORDABLE = 16.0
GIGA = 1e9


class NotPlanned(Exception):
    """Why a row cannot be planned."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A published row as a recipe: what any setting of it has, and its own setting."""

    words: tuple[str, ...]
    own: tuple[str, ...]


def card_of(row: dict) -> str:
    if row["source"] == "llama-fsdp-deepspeed":
        return "a100"
    if row["gpu"] in ("A100", "A100 SMX"):
        return "a100-40gb" if row["gpu_mem_gb"] == "40" else "a100"
    if row["gpu"] not in CARDS:
        raise NotPlanned(f"the GPU is not named ({row['gpu'] or 'nothing'} is printed)")
    return CARDS[row["gpu"]]


def length_of(row: dict) -> int:
    """Of the rows of a batch; where they are as long as their documents, of the longest."""
    length = row["seq_len"] or row["longest"]
    if not length:
        raise NotPlanned("the length of rows is not printed")
    return int(length)


def method_words(row: dict) -> tuple[str, ...]:
    method = row["method"]
    if method == "full":
        # Eight bytes per parameter are what its memory allows.
        return ("method=full", "optim=adamw_bf16") if row["source"] == "gpu-test" else ("method=full",)
    if method in ("adapter", "adapter_v2"):
        in_4_bits = row["quant"].startswith("nf4")
        stored = ("load_in_4bit=true", f"double_quant={'false' if row['quant'] == 'nf4' else 'true'}") if in_4_bits else ()
        return (f"method={method}", "adapter_gates=head", *stored)
    if row["quant"].startswith("nf4"):
        method = "qlora"
    words = [f"method={method}"]
    if method == "qlora":
        words.append(f"double_quant={'false' if row['quant'] == 'nf4' else 'true'}")
    if row["source"] == "lit-gpt":
        # On queries and values, which GPT-NeoX's layers have in one weight with the keys.
        modules = "query_key_value" if row["model"].startswith(("StableLM", "Falcon")) else "q_proj,v_proj"
        words += ["lora_r=8", f"target_modules={modules}"]
    if row["source"] == "fsdp-qlora":
        words += ["lora_r=64", "target_modules=q_proj,k_proj,v_proj,gate_proj,up_proj,down_proj"]
    return tuple(words)


def strategy_of(row: dict) -> str:
    return "ddp" if row["parallel"] == "ddp" else row["strategy"] or "full_shard"


def has_command(row: dict) -> bool:
    """Whether the page shows the command: of encoder-decoders and of prompts."""
    model = MODELS.get((row["model"], row["params_b"]), "")
    return row["method"] in ("adapter", "adapter_v2") or "t5" in model or model.startswith(("t0", "mt0"))


def own_words(row: dict, rows: int) -> tuple[str, ...]:
    words = [f"per_device_train_batch_size={rows}"]
    several = row["gpus"] not in ("", "1")
    # lit-gpt recomputes layers where it shards, and only there; fsdp_qlora unless it says otherwise.
    recomputes = row["grad_checkpoint"] == "y" or row["source"] == "fsdp-qlora" and row["grad_checkpoint"] != "n"
    if row["source"] == "lit-gpt":
        recomputes = several
    words.append(f"recompute={'layer' if recomputes else 'none'}")
    if several:
        words.append(f"strategy={strategy_of(row)}")
    offloads = row["cpu_offload"] == "params" or row["source"] in ("gpu-test", "llama-fsdp-deepspeed") and row["cpu_offload"] == "unknown" and several
    if offloads:
        words.append("offload_params=true")
        if row["method"] == "full":
            words.append("offload_optimizer=auto")
    if row["cpu_offload"].endswith("GiB"):
        words += ["offload_optimizer=auto", f"host_memory={row['cpu_offload']}"]
    if row["activation_offload"] == "y":
        words.append("activation_offloading=true")
    if has_command(row):
        words.append("compute_dtype=bf16")
    return tuple(words)


def job_of(row: dict) -> Job:
    if row["method"] == "inference":
        raise NotPlanned("inference, which `snug plan` is not about")
    if row["outcome"] == "na":
        raise NotPlanned("no figure is printed")
    model = MODELS.get((row["model"], row["params_b"]))
    if model is None:
        raise NotPlanned(f"the model {row['model']} is no built-in shape")
    if not row["micro_batch"]:
        raise NotPlanned("the rows of a micro-batch are not printed")
    if not row["gpus"]:
        raise NotPlanned("the number of GPUs is not printed")
    length = min(length_of(row), POSITIONS.get(model, length_of(row)))
    rows = int(row["micro_batch"]) * length_of(row) // length
    common = (f"model={model}", *method_words(row), f"device={card_of(row)}", f"devices={row['gpus']}", f"max_length={length}", "max_segments=1")
    return Job(common, own_words(row, rows))


def published_speed(row: dict) -> float | None:
    """Tokens per second of all cards, where rows have the length that is printed."""
    if row["outcome"] != "ok" or not row["time_value"] or not row["seq_len"]:
        return None
    cards, tokens = int(row["gpus"]), int(row["seq_len"])
    if row["time_unit"] == "s_per_step":
        return int(row["micro_batch"]) * tokens * cards / float(row["time_value"])
    if row["time_unit"] == "s_total":
        return int(row["samples"]) * tokens / float(row["time_value"])
    if row["time_unit"] == "h:m:s_total":
        hours, minutes, seconds = (int(part) for part in row["time_value"].split(":"))
        return 3 * int(row["samples"]) * tokens / (3600 * hours + 60 * minutes + seconds)
    return None


def search(snug: pathlib.Path, words: tuple[str, ...]) -> dict:
    run = subprocess.run([snug, "search", "--json", *words], capture_output=True, text=True, timeout=600, check=False)
    if run.returncode not in (0, planned_pages.DOES_NOT_FIT):
        raise processes.Failure(f"{' '.join(words)}: {processes.reason_of(run.stderr, run.returncode)}")
    return json.loads(run.stdout)


def memory(row: dict) -> str:
    if row["outcome"] == "oom":
        return "out of memory"
    if row["outcome"] == "error":
        return "error"
    return f"{row['peak_mem_value']} {row['peak_mem_unit']}" if row["peak_mem_value"] else ""


def speed(tokens_per_second: float | None) -> str:
    return "" if tokens_per_second is None else f"{tokens_per_second:,.0f}"


def ratio(planned: float, published: float | None) -> str:
    return f"{planned / published:.2f}" if published else ""


def own_cells(row: dict, planned: dict) -> list[str]:
    unit = row["peak_mem_unit"] or "GiB"
    bytes_of_unit = GIGA if unit == "GB" else GIB
    total = (planned["device"]["peak_bytes"] + planned["card"]["outside_bytes"]) / bytes_of_unit
    tokens_per_second = planned["tokens_per_step"] / planned["step_seconds"]
    published = published_speed(row)
    return [memory(row), f"{total:.1f} {unit}{'' if planned['fits'] else ', does not fit'}",
            ratio(total, float(row["peak_mem_value"]) if row["peak_mem_value"] else None),
            speed(published), speed(tokens_per_second), ratio(tokens_per_second, published)]


def name_of(row: dict) -> str:
    return f"{row['model']} {row['method']}{' ' + row['quant'] if row['quant'] not in ('', 'none') else ''}"


def own_line(number: int, row: dict, planned: dict) -> list[str]:
    return [str(number), row["source"], name_of(row), f"{row['gpus']} x {card_of(row)}", f"{row['micro_batch']} x {length_of(row)}", *own_cells(row, planned)]


def command_line(number: int, job: Job, planned: dict) -> list[str]:
    """A job's command, and how it ends."""
    ends = "0" if planned["fits"] else f"{planned_pages.DOES_NOT_FIT}; `{planned['change']}` fits"
    return [str(number), f"`snug plan {' '.join([*job.words, *job.own])}`", f"{planned['device']['peak_bytes'] / GIB:.2f} GiB", ends]


def best_line(numbers: list[int], row: dict, fastest: tuple[float, str] | None, found: dict) -> list[str]:
    job = [", ".join(map(str, numbers)), name_of(row), f"{row['gpus']} x {card_of(row)}", str(length_of(row)), speed(fastest[0]) if fastest else ""]
    if not found["plans"]:
        return [*job, "nothing fits", "", "", ""]
    best = found["plans"][0]
    tokens_per_second = best["tokens_per_second"]
    return [*job, f"{best['device_bytes'] / GIB:.1f} GiB", speed(tokens_per_second), ratio(tokens_per_second, fastest[0] if fastest else None), best["setting"]]


OWN_HEAD = ["row", "source", "job", "GPUs", "rows", "published", "planned", "ratio", "tokens/s", "planned", "ratio"]
BEST_HEAD = ["rows", "job", "GPUs", "length", "fastest published", "best plan", "tokens/s", "ratio", "its setting"]
COMMAND_HEAD = ["row", "command", "device", "exit code"]
LEFT_HEAD = ["source", "not planned, because", "rows", "which"]


def read_rows() -> list[dict]:
    with (HERE / "published.csv").open(newline="") as file:
        return [{**row, **SETTINGS.get(number, {})} for number, row in enumerate(csv.DictReader(file), 1)]


def jobs_of(rows: list[dict]) -> tuple[dict[int, Job], dict[int, str]]:
    """Of the numbers of rows: jobs, and why others have none."""
    jobs: dict[int, Job] = {}
    reasons: dict[int, str] = {}
    for number, row in enumerate(rows, 1):
        try:
            jobs[number] = job_of(row)
        except NotPlanned as reason:
            reasons[number] = str(reason)
    return jobs, reasons


def not_planned(rows: list[dict], reasons: dict[int, str]) -> list[list[str]]:
    left: dict[tuple[str, str], list[int]] = {}
    for number, reason in sorted(reasons.items()):
        left.setdefault((rows[number - 1]["source"], reason), []).append(number)
    return [[source, reason, str(len(numbers)), ", ".join(map(str, numbers))] for (source, reason), numbers in left.items()]


def searched_lines(snug: pathlib.Path, rows: list[dict], jobs: dict[int, Job], pool: concurrent.futures.Executor) -> list[list[str]]:
    numbers_of: dict[tuple[str, ...], list[int]] = {}
    for number, job in jobs.items():
        numbers_of.setdefault(job.words, []).append(number)
    found = {words: pool.submit(search, snug, words) for words in numbers_of}
    lines = []
    for words, numbers in numbers_of.items():
        speeds = [(value, row["source"]) for number in numbers if (value := published_speed(row := rows[number - 1]))]
        lines.append(best_line(numbers, rows[numbers[0] - 1], max(speeds, default=None), found[words].result()))
    return lines


def tables(snug: pathlib.Path, only: list[int], searches: float) -> list[str]:
    rows = read_rows()
    jobs, reasons = jobs_of(rows)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        own = {n: pool.submit(planned_pages.plan, snug, [*job.words, *job.own]) for n, job in jobs.items() if not only or n in only}
        lines, commands = [], []
        for number, planned in own.items():
            try:
                lines.append(own_line(number, rows[number - 1], planned.result()))
                if has_command(rows[number - 1]):
                    commands.append(command_line(number, jobs[number], planned.result()))
            except processes.Failure as failure:
                # What Snug refuses to plan, by its own words.
                reasons[number] = str(failure).rpartition("snug: error: ")[2].splitlines()[0]
                del jobs[number]
        if only:
            # Single lines of the page's tables, without their headings.
            return [line for head, part in ((OWN_HEAD, lines), (COMMAND_HEAD, commands)) for line in table(head, part).splitlines(keepends=True)[2:]]
        texts = [table(OWN_HEAD, lines), table(COMMAND_HEAD, commands)]
        if searches:
            published = {n: job for n, job in jobs.items() if rows[n - 1]["outcome"] != "chosen"}
            few = {n: job for n, job in published.items() if int(rows[n - 1]["gpus"]) * float(rows[n - 1]["params_b"]) <= searches}
            texts.append(table(BEST_HEAD, searched_lines(snug, rows, few, pool)))
    return [*texts, table(LEFT_HEAD, not_planned(rows, reasons))]


def check_prose(page: str) -> int:
    missing = published_prose.missing(pathlib.Path(page).read_text(), AFFORDABLE)
    for claim in missing:
        print(f"the prose of {page} does not say what its tables do: {claim}")
    return 1 if missing else 0


def main() -> int:
    parser = planned_pages.parser(__doc__)
    parser.add_argument("--rows", default="", help="numbers of rows that are planned alone, with commas")
    parser.add_argument("--searches", type=float, default=AFFORDABLE, help="cards times billions of parameters of the largest job that is searched")
    arguments = parser.parse_args()
    only = [int(number) for number in arguments.rows.split(",") if number]
    try:
        result = planned_pages.show_or_check("published_table.py", arguments,
                                             functools.partial(tables, only=only, searches=arguments.searches))
        page = arguments.check or arguments.write
        return max(result, check_prose(page)) if page else result
    except processes.Failure as failure:
        print(failure, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
