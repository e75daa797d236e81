"""Checks that need no card: what a dry run made of every part, and what is made of made-up results."""

import copy
import dataclasses
import pathlib

import bars
import jobs
import longest
import model_flops
import predicted_table
import results
import results_table
import stages
from peer_stage import Peer
from processes import Failure
from report import GIB

HERE = pathlib.Path(__file__).resolve().parent


def require(condition: bool, what: object) -> None:
    if not condition:
        raise SystemExit(f"self-test: {what}")


def made_up_peer(setting: stages.Setting) -> Peer:
    script = HERE / "made_up_peer.py"
    return Peer(setting, train_script=script, generate_script=script)


def check(setting: stages.Setting, result: dict) -> None:
    """Of a dry run of all parts."""
    check_training(result)
    check_peers(result)
    check_rest(setting, result)
    check_table(results_table.markdown(result))
    check_measured_table(result)
    check_bars()
    check_libraries(setting)
    check_rates()
    check_outside()
    check_streamed()
    check_merge(result)
    check_search()
    check_planned_tables(setting)
    check_jobs(setting)
    for script in ("peer_train_cuda.py", "peer_generate_cuda.py"):
        compile((HERE / script).read_text(), script, "exec")


def check_training(result: dict) -> None:
    require(result["failures"] == [], result["failures"])
    require((len(result["training"]), len(result["profile"])) == (len(jobs.DRY_TRAINING), len(jobs.DRY_PROFILED)), result["training"])
    for row in result["training"]:
        require(row["steps"] == 2 and row["step_seconds"] > 0 and row["planned_peak_bytes"] > 0, row)
        require(row["libraries"], "which libraries were measured")
        require(row["tokens_per_second"] == row["tokens"] / row["step_seconds"] and 0 < row["share_of_peak"] < 1, row)
    for row in result["profile"]:
        require(row["planned_step_basis"] == "calibrated", row["planned_step_basis"])
        seconds = sum(line["seconds"] for line in row["operations"])
        require(0.5 * row["step_seconds"] < seconds < 2 * row["step_seconds"], (seconds, row["step_seconds"]))
        require(all(line["planned_seconds"] > 0 for line in row["operations"]), row["operations"])


def check_peers(result: dict) -> None:
    """The quickest variant stands next to the row; what was quickest for one job is tried first for the next."""
    require(len(result["peer"]) == len(result["peer_decoding"]) == 2, result["peer"])
    for row in result["peer"]:
        require(len(row["trials"]) == 8 and sum("failure" in trial for trial in row["trials"]) == 4, row)
    require(result["peer"][1]["trials"][0]["variant"] == "sdpa, compiled, checkpointing", result["peer"][1])
    for row in result["training"]:
        require(row["peer"]["fastest"]["variant"] == "sdpa, compiled, checkpointing", row["peer"])
        require(abs(row["times_the_peer"] - 0.5 / row["step_seconds"]) < 1e-9, row)
    for row in result["decoding"]:
        require(row["times_the_peer"] == row["tokens_per_second"] / 20.0, row)


def check_rest(setting: stages.Setting, result: dict) -> None:
    for row in result["decoding"]:
        require(row["tokens_per_second"] > 0 and row["new_tokens"] == jobs.NEW_TOKENS, row)
        require(any(line["name"].startswith("matmul") for line in row["operations"]), row)
    [calibration], [row] = result["calibration"], result["longest"]
    require(calibration["samples"] > 10 and (setting.out / calibration["file"]).exists(), calibration)
    job = longest.dry_job(setting)
    words = longest.words_of(setting, job, row["tokens"] + 64)
    require(row["tokens"] >= 64 and row["step_seconds"] > 0, row)
    require(stages.plan(setting, words) is None, f"{row['tokens'] + 64} tokens fit as well")
    require(row["planned_peak_bytes"] <= int(job.words[0].removeprefix("device_memory=")), row)


def check_table(text: str) -> None:
    for part in ("Where a step of smollm2-135m qlora goes", "Where a token of smollm2-135m, nf4, goes", "| everything else |", "| all |", "times predicted", "longest row, smollm2-135m qlora",
                 "| llama-3.1-8b lora |  | 16384 | not measured |", "flash_attn is not installed", "4.7 s, 78 GiB"):
        require(part in text, f"no '{part}' in:\n{text}")


def check_measured_table(dry: dict) -> None:
    """The dry run's rows under the names of real ones: their figures, verdicts and peers stand in the table."""
    result = copy.deepcopy(dry)
    result["training"][0] |= {"name": "llama-3.1-8b lora", "step_seconds": 1.0, "planned_step_seconds": 1.25, "times_practical": 0.96,
                              "measured_peak_bytes": 60 * GIB, "planned_peak_bytes": 61 * GIB, "times_the_peer": 2.5}
    result["decoding"][1] |= {"name": "llama-3.1-8b decoding nf4", "tokens_per_second": 100.0, "share_of_bandwidth": 0.25, "times_the_peer": 5.0}
    text = results_table.markdown(result)
    for part in ("| llama-3.1-8b lora | none | 16 | 1.000 | 1.250 (assumed) |", "| 0.96 | 60.00 of 61.00 | 2.50 (sdpa, compiled, checkpointing); ",
                 "| 6.4 s, 36 GiB | 1.15 s | held |", "| llama-3.1-8b decoding nf4 | 100.0 | ", "| 25 % | not measured | 5.00 (sdpa, static cache, compiled) |",
                 "| 650 tokens/s | missed |"):
        require(part in text, f"no '{part}' in:\n{text}")


def made_up_row(name: str, seconds: float, gib: float, recompute: str = "none", commit: str = "a") -> dict:
    return {"name": name, "device": "NVIDIA H200", "commit": commit, "date": "2026-01-01T00:00:00Z", "recompute": recompute,
            "step_seconds": seconds, "measured_peak_bytes": int(gib * GIB), "tokens_per_second": 16384 / seconds}


def check_bars() -> None:
    """Every bar's verdict either way, and no verdict without a measurement."""
    named = {job.name for job in (*jobs.TRAINING, jobs.LONGEST)}
    require(named >= {name for name in bars.REFERENCES if "decoding" not in name}, "a bar without a job")
    for tokens, verdict in ((342733, "held"), (342732, "missed"), (None, "not measured")):
        found = bars.verdicts(jobs.LONGEST.name, {"tokens": tokens}, None)
        require(found == [("342733 tokens on 80 GB", verdict)], found)
    alone = {f"llama-3.1-8b {rest}" for rest in ("lora rows of 2048", "lora checkpoints offloaded", "qlora checkpoints offloaded", "full offloaded",
                                                "full offloaded not clipped", "lora own attention")}
    require({job.name for job in jobs.TRAINING} - set(bars.REFERENCES) == alone, "a job without a reference")
    for name in bars.REFERENCES:
        require(all(verdict == bars.UNMEASURED for _, verdict in bars.verdicts(name, None, None)), name)
    full = "llama-3.1-8b full checkpoints"
    for seconds, gib, expected in ((1.85, 56, ["held", "held"]), (1.86, 55, ["missed", "held"]), (1.0, 56.1, ["held", "missed"])):
        found = [verdict for _, verdict in bars.verdicts(full, made_up_row(full, seconds, gib, "layer"), None)]
        require(found == expected, (seconds, gib, found))
    lora, qlora = made_up_row("llama-3.1-8b lora", 1.0, 60), "llama-3.1-8b qlora"
    for seconds, gib, expected in ((1.05, 60, ["held", "held"]), (1.06, 60.1, ["missed", "missed"])):
        found = [verdict for _, verdict in bars.verdicts(qlora, made_up_row(qlora, seconds, gib), lora)]
        require(found == expected, (seconds, gib, found))
    require(bars.verdicts(qlora, made_up_row(qlora, 1, 50), None)[0][1] == bars.UNMEASURED, "QLoRA without LoRA")
    recomputed = bars.verdicts("llama-3.1-8b full", made_up_row("llama-3.1-8b full", 1.5, 70, "gate_up"), None)
    require(recomputed == [("1.6 s", "not measured (recomputes)")], recomputed)
    name = "llama-3.1-8b decoding nf4"
    for rate, expected in ((650, "held"), (649, "missed")):
        require(bars.verdicts(name, {"tokens_per_second": rate}, None)[0][1] == expected, rate)
    require(bars.practical_seconds("llama-3.1-8b lora", "NVIDIA H200") == 1.0, "practical seconds on an H200")
    require(bars.practical_seconds("llama-3.1-8b lora", "NVIDIA H100 80GB HBM3") == 1.04, "practical seconds on an H100")
    check_flops()


def check_libraries(setting: stages.Setting) -> None:
    """A row that is not measured with cuDNN, or only in part, is none."""
    on_card = dataclasses.replace(setting, backend="cuda")
    stages.require_cudnn(on_card, "NVIDIA H200, cuDNN 9.19.0", "read 16 GB\n")
    for libraries, said in (("NVIDIA H200, no cuDNN", ""),
                            ("NVIDIA H200, cuDNN 9.19.0", "read 16 GB\ncuDNN 9.19.0 asks for 9 bytes of scratch; own kernels are planned for it\n")):
        try:
            stages.require_cudnn(on_card, libraries, said)
        except Failure as failure:
            require("own kernels" in str(failure), failure)
        else:
            require(False, f"a row with {libraries} that said {said!r} counts")
    stages.require_cudnn(setting, "oneDNN", "")
    [own] = [job for job in jobs.TRAINING if job.own_attention]
    stages.require_kernels(on_card, own, "NVIDIA H200, no cuDNN", "")
    try:
        stages.require_kernels(on_card, own, "NVIDIA H200, cuDNN 9.19.0", "")
    except Failure as failure:
        require("in cuDNN" in str(failure), failure)
    else:
        require(False, "a row of own attention that cuDNN made counts")


def check_outside() -> None:
    said = "read\noutside the arenas on the card after tuning: 1.00 GiB of 1.50 GiB planned\nstep\noutside the arenas on the card after two steps: 1.25 GiB of 1.50 GiB planned\n"
    found = stages.outside(said)
    require(found == {"tuning": "1.00 GiB of 1.50 GiB planned", "two steps": "1.25 GiB of 1.50 GiB planned"}, found)


def check_streamed() -> None:
    """What is said of a job whose state lies in host memory; of others nothing."""
    require(stages.streamed({"offload_optimizer": "none"}) == {}, "a job that holds its state on the card")
    planned = {"offload_optimizer": "host", "host": {"peak_bytes": 48 * GIB}, "busy_seconds": {"compute": 2.0, "host": 1.5}}
    row = made_up_row("llama-3.1-8b full offloaded", 3.5, 4) | stages.streamed(planned) | {"driver": "1", "steps": 4}
    [steps, note] = [note for note in results_table.notes(results.empty() | {"training": [row]}, row["device"]) if "offloaded" in note]
    require(steps == "- llama-3.1-8b full offloaded: the median of 4 steps", steps)
    require(note == "- llama-3.1-8b full offloaded, 48.00 GiB of host memory, updates on the host; planned: compute 2.000 s, host 1.500 s", note)


def check_rates() -> None:
    """An operation's rate and its share of the card."""
    for unit, work, expected in (("bytes", 2.4e9, ("2400.0 GB/s", "50 %")), ("flops", 4.945e11, ("494.5 TFLOP/s", "50 %")), ("link_bytes", 5e7, ("50.0 GB/s", ""))):
        operation = {"unit": unit, "work": work, "seconds": 1e-3}
        require((results_table.rate(operation), results_table.share_of_card(operation, "NVIDIA H200")) == expected, (unit, expected))
    require(results_table.share_of_card({"unit": "bytes", "work": 1.0, "seconds": 1.0}, "none") == "", "a share of no card")


def check_flops() -> None:
    """The figures that the bars were stated with, in TFLOP a step of 16,384 tokens."""
    for model, method, expected in (("llama-3.1-8b", "full", 861), ("llama-3.1-8b", "lora", 619), ("phi-3-mini-128k", "full", 458)):
        tera = model_flops.training_flops(jobs.shape_of(model), method, 8192) * 16384 * 1e-12
        require(abs(tera / expected - 1) < 0.01, (model, method, tera))


def check_merge(dry: dict) -> None:
    """The newer row of a name and card counts; other cards' rows and the dry run's stay; a success ends its failure."""
    result = copy.deepcopy(dry)
    row = made_up_row("llama-3.1-8b lora", 1.0, 60)
    facts = {key: row[key] for key in ("name", "device", "commit", "date")}
    results.merge(result, results.empty() | {"failures": [facts | {"reason": "out of time"}]})
    require(len(result["failures"]) == 1, result["failures"])
    results.merge(result, results.empty() | {"training": [row, row | {"device": "NVIDIA H100"}]})
    require(len(result["training"]) == len(dry["training"]) + 2 and result["failures"] == [], result)
    results.merge(result, results.empty() | {"training": [row | {"step_seconds": 2.0, "date": "2026-01-02T00:00:00Z"}]})
    results.merge(result, results.empty() | {"training": [row | {"step_seconds": 3.0, "date": "2025-01-01T00:00:00Z"}]})
    require(results.find(result["training"], row["name"], row["device"])["step_seconds"] == 2.0, result["training"])
    qlora = made_up_row("llama-3.1-8b qlora", 1.0, 50)
    require(results.compared_to(result, qlora) is not None, "QLoRA's LoRA is not found")
    require(results.compared_to(result, qlora | {"commit": "b"}) is None, "LoRA of another commit stands next to QLoRA")
    text = results_table.goals_table(result)
    require("| llama-3.1-8b lora | 6.4 s, 36 GiB | 1.15 s | H100: 1.00 s, 60.00 GiB (held); H200: 2.00 s, 60.00 GiB (missed) |" in text, text)
    require("| 31 tokens/s | 270 tokens/s | not yet measured |" in text, text)


def check_planned_tables(setting: stages.Setting) -> None:
    """A measured step and its profile stand next to what is planned; those of a job that recomputes something else do not."""
    job = predicted_table.JOBS[0]
    steps = {job: predicted_table.explained(setting.snug, job)["step"]}
    for recompute, step, kind in (("none", "| 1.250 |", "| lora 60.0 |"), ("gate_up", "| not yet measured |", "| not yet measured |")):
        row = made_up_row(job.name, 1.25, 60, recompute)
        operations = [{"name": "attention bf16 bf16 bf16 > bf16 f32 by library", "seconds": 0.06}]
        result = results.empty() | {"training": [row], "profile": [row | {"name": f"{job.name} profile", "operations": operations}]}
        require(step in predicted_table.steps_table(result, steps), (recompute, predicted_table.steps_table(result, steps)))
        [attention] = [line for line in predicted_table.kinds_table(result, steps).splitlines() if line.startswith("| attention |")]
        require(attention.endswith(kind), attention)


def check_search() -> None:
    for most in (0, 1, 2, 3, 7, 8, 1000):
        found = longest.search(lambda tokens: tokens <= most * 64 + 5, 64)
        require(found == most * 64, (most, found))


def check_jobs(setting: stages.Setting) -> None:
    """Every real job has a plan that fits an H100, and on an H200 with nothing recomputed where it is to be quick; all within the bars."""
    # A device of that name has no calibration: the one of this run is another backend's.
    planner = dataclasses.replace(setting, backend="cuda", device="planned")
    for job in jobs.TRAINING:
        for card in ("h100", "h200"):
            recompute, planned = stages.first_that_fits(planner, job, [f"device={card}"])
            require(planned["tokens_per_step"] == job.tokens == 16384, (job, planned["tokens_per_step"]))
            require(planned["card"]["name"] == card, planned["card"])
            require(card == "h100" or recompute == job.recomputes[0], (job.name, card, recompute))
            gib, bar = stages.planned_peak(planned) / GIB, bars.of(job.name).gib
            require(bar is None or gib <= bar, f"{job.name} plans {gib:.2f} GiB, its bar is {bar}")
            print(f"{job.name}: recompute={recompute} fits an {card}, {gib:.2f} GiB planned", flush=True)
