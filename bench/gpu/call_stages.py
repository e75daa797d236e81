"""What a call of scripts/gpu_check is made of: each function is one or two stages of a session, and leaves its decisions to later ones."""

import dataclasses
import json
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import card  # noqa: E402
import machine_memory  # noqa: E402
import results as kept_results  # noqa: E402
import results_table  # noqa: E402
import sharded  # noqa: E402
from session import Session, Stop, last_line  # noqa: E402

GIB = 1 << 30
OWN_KERNELS = "snug"  # part of the name of each, which is its namespace
# Kernels whose counters are read, as the profiled steps have them.
NCU_KERNELS = ("adamw_8bit_kernel", "softmax_kernel", "dequantize_kernel", "rms_norm_grad_kernel")
CUDNN_MAJOR = "cuDNN 9"
# Own kernels of kinds that have changed since a card ran them, or that none has run: what compute-sanitizer sees in a short form.
CHANGED_KINDS = ("attention", "attention_grad", "matmul", "matmul_nf4", "zeros", "scale_columns", "column_gain_grad", "weigh_rows", "grouped_matmul",
                 "grouped_matmul_grad", "route", "permute", "combine", "grpo", "grpo_grad")
# Jobs whose attention is every form that calls measure, and rows of many documents, which the library gets in groups.
SHAPE = ("method=lora", "max_length=8192", "per_device_train_batch_size=2")
CHECKED_JOBS = tuple((f"model={model}", *SHAPE, segments) for model, segments in
                     (("llama-3.1-8b", "max_segments=1"), ("llama-3.1-8b", "max_segments=64"), ("phi-3-mini-128k", "max_segments=1"),
                      ("gemma-7b", "max_segments=1"), ("gemma-2-9b", "max_segments=1"), ("gemma-2-9b", "max_segments=64")))
TINY_CHECKED_JOBS = (("model=smollm2-135m", "method=lora", "max_length=64", "max_segments=2"),)
# A dense form is worth building where its gradient is so much faster (the design's threshold).
DENSE_GAIN = 1.05


@dataclasses.dataclass(frozen=True)
class Machine:
    """The binaries, and how much of each stage. `tiny`: on the emulated device."""

    snug: pathlib.Path
    parity: pathlib.Path
    goldens: pathlib.Path
    python: str
    workers: int
    tiny: bool = False
    patience: float = 1.0  # times the limits of measurements, which are those of a card
    parity_tests: str = "*"
    golden_tests: str = "*"
    sanitized_tests: str = ":".join(f"*/{kind}" for kind in CHANGED_KINDS)
    # Kinds of which a training step's attention is made, and those that decoding has kernels of its own for.
    attention_tests: str = "*/attention:*/attention_grad"
    decoding_tests: str = "*/attention:*/matmul:*/matmul_nf4:*/cache_write:*/top_k"
    curve_words: tuple[str, ...] = ()


def real_machine(build: pathlib.Path, python: str) -> Machine:
    return Machine(build / "snug", build / "tests/backends/cuda_device_test", build / "tests/train/cuda_device_goldens_test", python,
                   workers=max(1, min(12, (os.cpu_count() or 1) - 2)))


def emulated_machine(build: pathlib.Path) -> Machine:
    """A few tests of each suite; models of some thousand weights under the names of the real ones."""
    return Machine(build / "tests/bench/snug_emulated", build / "tests/backends/cuda_emulator_test",
                   build / "tests/train/cuda_emulator_goldens_test", sys.executable, workers=2, tiny=True, patience=4.0,
                   parity_tests="*/rms_norm:*/silu_mul", golden_tests="*/grouped_tied_cuda",
                   sanitized_tests="*/rms_norm:*/silu_mul", attention_tests="*/attention_sink_grad", decoding_tests="*/cache_write:*/top_k",
                   curve_words=("--methods", "lora", "--steps", "2", "--factor", "10", "--words", "max_length=64,per_device_train_batch_size=1"))


def environment(session: Session, machine: Machine) -> None:
    """The card, the memory that the machine shows at first, and what tools there are."""
    facts = card.facts()
    memory = machine_memory.read()
    tools = [tool for tool in ("ncu", "compute-sanitizer", "nvcc") if card.has_tool(tool)]
    session.log("environment", session.run("nvidia-smi", 20, ["nvidia-smi"]).text if card.has_tool("nvidia-smi") else "no nvidia-smi")
    session.note("environment", True, f"{facts['device']}, driver {facts['driver']}; {os.cpu_count()} cores; memory of "
                 f"{memory['MemTotal'] / GIB:.1f} GiB, {memory['MemAvailable'] / GIB:.1f} available; tools: {', '.join(tools) or 'none'}", 0)
    if facts["device"] == "none" and not machine.tiny:
        raise Stop("nvidia-smi shows no card")


def libraries(session: Session, machine: Machine) -> None:
    """What Snug opens here. Without cuDNN, training would be measured on other kernels than are planned for."""
    ran = session.run("libraries", 60, [machine.snug, "plan", "--json", "model=smollm2-135m", "method=lora", "max_length=512",
                                        "max_segments=1", "backend=cuda"])
    if not ran.good:
        session.note("libraries", False, f"{ran.status}: {last_line(ran.text)}", ran.seconds)
        raise Stop("Snug does not plan for this card")
    found = json.loads(ran.text[ran.text.index("{"):])["libraries"]
    session.note("libraries", True, found, ran.seconds)
    has_cudnn = CUDNN_MAJOR in found or machine.tiny
    session.decide("training", "measured" if has_cudnn else "left out", "cuDNN is here" if has_cudnn else "own kernels alone would be measured")


def kept_checks() -> dict[str, dict]:
    """What Snug keeps of checks of the library's attention, by their forms (src/backends/cuda/attention/library_checks.h)."""
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "snug" / "library-checks"
    return {form: answer for file in folder.glob("*.json") for form, answer in json.loads(file.read_text())["forms"].items()}


def library_attention(session: Session, machine: Machine) -> None:
    """cuDNN's attention against own kernels in each form that the calls' jobs have, as a plan on this card asks for it; later stages take the answers.
    Where the library ended two processes in a form, the third plan goes on without it."""
    start = session.left()
    failed = []
    for number, words in enumerate(TINY_CHECKED_JOBS if machine.tiny else CHECKED_JOBS):
        command = [machine.snug, "plan", "--json", *words, "backend=cuda"]
        if not any(session.run(f"library attention plan {number}", 60, command).good for _ in range(3)):
            failed.append(" ".join(words))
    answers = kept_checks()
    agree = [answer["difference"] for answer in answers.values() if answer.get("agrees")]
    refused = {form: answer.get("why") or "it ended the process" for form, answer in answers.items() if not answer.get("agrees")}
    session.log("library attention", json.dumps(answers, indent=1))
    for form, why in refused.items():
        print(f"  own kernels for {form}: {why}", flush=True)
    good = bool(answers) and not failed
    detail = f"{len(agree)} of {len(answers)} forms agree" + (f", to {max(agree):.1e}" if agree else "") + (f"; no plan of {', '.join(failed)}" if failed else "")
    session.note("library attention", good, detail, start - session.left())
    if answers:
        session.decide("library_attention", "agrees" if not refused else "agrees in part" if agree else "differs",
                       f"of {len(answers)} forms own kernels take {len(refused)}")


def capture(session: Session, machine: Machine) -> None:
    """Attention by cuDNN inside CUDA graphs; where that fails, once more without kernels that begin early, to see which of the two is wrong."""
    def captured(name: str, variables: dict[str, str]) -> tuple[bool, str]:
        ran = session.run(name, 120, [machine.goldens, "--gtest_filter=CudaGraphs*"], variables)
        good = ran.good and "[  PASSED  ] 2 tests" in ran.text
        session.note(name, good, "" if good else f"{ran.status}: {last_line(ran.text)}", ran.seconds)
        return good, "the capture test passed" if good else "the capture test failed"

    good, detail = captured("capture", {})
    if not good:
        good, _ = captured("capture without early kernels", {"SNUG_CUDA_EARLY_KERNELS": "off"})
        if good:
            detail = "the capture test passed without kernels that begin early, and failed with them"
            session.decide("early_kernels", "off", detail)
    session.decide("graphs", "on" if good else "off", detail)


def early_kernels(session: Session, machine: Machine) -> None:
    """Tokens with kernels that begin early and without, by algorithms that are not timed: each run might take others. Where tokens
    differ, what is measured later is without."""
    if session.decisions.get("early_kernels") == "off":
        return
    model, tokens = ("examples/wordnet", 2) if machine.tiny else ("smollm2-135m", 48)
    command = [machine.snug, "generate", f"model={model}", "init=random", "backend=cuda", "ids=1 2 3", "temperature=0",
               f"max_new_tokens={tokens}", "--json"]
    untimed = settings(session) | {"SNUG_CUDA_TIMING": "off"}
    made = {word: session.run(f"early kernels {word}", 60, command, untimed | {"SNUG_CUDA_EARLY_KERNELS": word}) for word in ("on", "off")}
    ids = [json.loads(ran.text[ran.text.index("{"):]).get("ids") if ran.good and "{" in ran.text else None for ran in made.values()]
    good = None not in ids and ids[0] == ids[1]
    detail = "the same tokens with and without" if good else f"with {ids[0]}, without {ids[1]}"
    session.note("early kernels", good, detail, sum(ran.seconds for ran in made.values()))
    session.decide("early_kernels", "on" if good else "off", detail)


def settings(session: Session) -> dict[str, str]:
    """What the decisions so far say of how a card is used."""
    variables = {"graphs": "SNUG_CUDA_GRAPHS", "early_kernels": "SNUG_CUDA_EARLY_KERNELS"}
    return {variable: "off" for decision, variable in variables.items() if session.decisions.get(decision) == "off"}


def tests_in_shards(session: Session, machine: Machine, name: str, binary: pathlib.Path, words: str, limit: float) -> None:
    tests = sharded.tests_of(binary, words)
    results, seconds = timed(session, lambda: sharded.run_tests(binary, tests, machine.workers, lambda: min(limit, session.left())))
    session.log(name, sharded.log_of(results))
    bad = [result.test for result in results if result.verdict in (sharded.FAILED, sharded.NO_RESULT)]
    # Where a card is, a test that found none has checked nothing.
    blind = [result.test for result in results if result.verdict == sharded.SKIPPED and "no CUDA device" in result.ran.text]
    session.note(name, not bad and not blind and bool(results), sharded.summary(results) + (f"; found no card: {', '.join(blind)}" if blind else ""), seconds)
    if bad:
        session.decide(f"wrong in {name}", bad, "what is measured below stands next to wrong results")


def parity(session: Session, machine: Machine) -> None:
    """Every kind of operation against fp64, a process for each."""
    tests_in_shards(session, machine, "parity", machine.parity, machine.parity_tests, 200)


def parity_of(session: Session, machine: Machine, name: str, words: str) -> None:
    """The kinds that what is measured next consists of, which a call without the whole suite looks at first."""
    tests_in_shards(session, machine, name, machine.parity, words, 60)


def goldens(session: Session, machine: Machine) -> None:
    tests_in_shards(session, machine, "goldens", machine.goldens, machine.golden_tests, 150)


def curves(session: Session, machine: Machine) -> None:
    """The example's curves next to the processor's, which were made before and brought along."""
    kept = HERE / "processor_losses.json"
    known = ["--processor-losses", kept] if kept.exists() else []
    verdicts = re.compile(r"^(lora|qlora|full): .*?([^:]*)$", re.MULTILINE)
    session.stage("curves", 150, [sys.executable, "-B", HERE / "example_curves.py", "--snug", machine.snug, *known, *machine.curve_words],
                  detail=lambda ran: "; ".join(f"{method}:{verdict}" for method, verdict in verdicts.findall(ran.text)))


def nccl(session: Session, machine: Machine) -> None:
    ran = session.run("nccl", 60, [machine.python or sys.executable, "-B", HERE / "nccl_check.py"])
    if ran.status == 77:
        session.left_out("nccl", last_line(ran.text))
    else:
        session.note("nccl", ran.good, last_line(ran.text), ran.seconds)


def collectives(session: Session, machine: Machine) -> None:
    """Snug's own collectives through NCCL, against the processor's bits: a rank for each card. Two ranks on one card are left out, since
    NCCL refuses them; one rank tries the library, a group's beginning and end, a gather, and the kernels of sums."""
    ran = session.run("collectives", 100, [machine.parity, "--gtest_filter=CudaCollectives.*"])
    if ran.good and "[  SKIPPED ]" in ran.text:
        said = [line for line in ran.text.splitlines() if line.startswith("skipped: ")]
        return session.left_out("collectives", said[0].removeprefix("skipped: ") if said else last_line(ran.text))
    good = ran.good and "[  PASSED  ] 1 test" in ran.text
    ranks = re.search(r"ranks on cards of their own: (\d+)", ran.text)
    detail = f"{ranks[1]} on cards of their own" + ("; NCCL takes no two ranks on one card" if ranks[1] == "1" else "") if ranks else ""
    session.note("collectives", good, detail if good else f"{ran.status}: {last_line(ran.text)}", ran.seconds)


def measure(session: Session, machine: Machine, name: str, parts: str, names: list[str], limit: float) -> None:
    """Rows of gpu.json, of exactly these names."""
    limit *= machine.patience
    if parts not in ("decoding", "calibration") and session.decisions.get("training") == "left out":
        return session.left_out(name, "cuDNN is not here")
    command = [sys.executable, "-B", HERE / "measure.py", "--snug", machine.snug, "--parts", parts, "--exactly", ",".join(names),
               "--out", session.results, "--seconds", f"{max(0.0, min(limit, session.left()) - 2):.0f}", "--limit", f"{limit:.0f}"]
    if machine.python:
        command += ["--python", machine.python]
    if machine.tiny:
        command.append("--tiny")
    ran = session.run(name, limit, command, settings(session))
    rows = [line for line in ran.text.splitlines() if any(line.startswith(f"{each}:") or line.startswith(f"{each} profile:") for each in names)]
    print("\n".join(f"  {line}" for line in rows), flush=True)
    expected = len(names) * len(parts.split(","))
    made = sum(": FAILED" not in row for row in rows)
    detail = f"{made} of {expected} rows"
    session.note(name, ran.good and made == expected, detail if ran.good else f"{detail}, {ran.status}: {last_line(ran.text)}", ran.seconds)


def rates(session: Session, machine: Machine, limit: float) -> None:
    """The card's rates, which later plans of the call predict with: those that an earlier call measured with this driver, or measured now."""
    def known_rates() -> dict | None:
        rows = kept_results.load(session.results / "gpu.json")["calibration"]
        return kept_results.find(rows, "calibration", session.facts["device"])

    known = known_rates()
    if known and known["driver"] == session.facts["driver"] and (session.results / known["file"]).exists():
        return session.decide("rates", "as measured before", f"{known['file']}, {known['date']}")
    measure(session, machine, "calibration", "calibration", ["calibration"], limit)
    made = known_rates()
    session.decide("rates", "measured" if made else "of the data sheet", results_table.line("calibration", made) if made else "calibrating failed")


def dense_attention(session: Session, machine: Machine, job: str) -> None:
    """cuDNN's attention of rows that are not ragged, by PyTorch, next to what the profile of this job has of the ragged form that Snug asks for."""
    profile = kept_results.find(kept_results.load(session.results / "gpu.json")["profile"], f"{job} profile", session.facts["device"])
    if profile is None:
        return session.left_out("dense attention", f"there is no profile of {job} to hold it against")
    ran = session.run("dense attention", 60, [machine.python or sys.executable, "-B", HERE / "dense_attention.py", *(["--tiny"] if machine.tiny else [])])
    if ran.status == 77:
        return session.left_out("dense attention", last_line(ran.text))
    if not session.note("dense attention", ran.good, last_line(ran.text), ran.seconds):
        return
    dense = json.loads(ran.text.splitlines()[-1])
    ragged = {name: sum(each["work"] for each in found) / sum(each["seconds"] for each in found) * 1e-12
              for name in ("attention", "attention_grad") if (found := [each for each in profile["operations"] if each["name"].split()[0] == name])}
    gain = dense["gradient_tflops"] / ragged["attention_grad"]
    session.decide("attention_grad", "dense" if gain >= DENSE_GAIN else "ragged",
                   f"forward {dense['forward_tflops']:.0f} TFLOP/s dense and {ragged['attention']:.0f} ragged, gradient {dense['gradient_tflops']:.0f} and "
                   f"{ragged['attention_grad']:.0f}; torch {dense['torch']}, cuDNN {dense['cudnn']}")


def ncu(session: Session, machine: Machine) -> None:
    """What the hardware counts of four memory-bound kernels, in a step of a small model."""
    if not card.has_tool("ncu"):
        return session.left_out("ncu", "it is not installed")
    for kernel in NCU_KERNELS:
        job = ["method=qlora"] if kernel == "dequantize_kernel" else ["method=full", "optim=adamw_8bit"]
        ran = session.run(f"ncu {kernel}", 45, ["ncu", "--clock-control", "none", "--kernel-name", f"regex:{kernel}", "--launch-skip", "1",
                                                "--launch-count", "1", "--set", "full", machine.snug, "bench", "step", "model=smollm2-135m", *job,
                                                "max_length=2048", "max_segments=1", "backend=cuda", "--json"])
        counted = kernel in ran.text.split("==PROF==", 1)[-1] and "Duration" in ran.text
        if "LibraryNotLoaded" in ran.text or "ERR_NVGPUCTRPERM" in ran.text:
            return session.left_out("ncu", f"the device refuses it: {last_line(ran.text)}")
        session.note(f"ncu {kernel}", ran.good and counted, "counters are in the log" if counted else f"{ran.status}: {last_line(ran.text)}", ran.seconds)


def sanitizer(session: Session, machine: Machine, words: str, limit: float) -> None:
    """Own kernels of these tests under memcheck and racecheck; cuBLASLt's and cuDNN's are others' and slow."""
    if not card.has_tool("compute-sanitizer"):
        return session.left_out("sanitizer", "compute-sanitizer is not installed")
    for tool in ("memcheck", "racecheck"):
        tests = sharded.tests_of(machine.parity, words)
        end = session.left() - limit
        prefix = ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9", "--kernel-name",
                  f"kernel_substring={OWN_KERNELS}"]
        results, seconds = timed(session, lambda: sharded.run_tests(machine.parity, tests, machine.workers,
                                                                    lambda: session.left() - max(end, 0.0), {"SNUG_CUDNN": "off"}, prefix))
        session.log(tool, sharded.log_of(results))
        if any("Device not supported" in result.ran.text for result in results):
            session.left_out(tool, "the device refuses it: Device not supported")
            continue
        found = [result.test for result in results if result.ran.status == 9]
        late = [result.test for result in results if result.verdict == sharded.NO_RESULT and result.ran.status in ("time limit", "no time left")]
        bad = [result for result in results if result.verdict in (sharded.FAILED, sharded.NO_RESULT) and result.test not in late]
        session.note(tool, not bad, f"{len(results) - len(late)} of {len(results)} tests in time" + (f", errors in {', '.join(found)}" if found else "") +
                     (f"; {sharded.summary(bad)}" if bad else ""), seconds)


def grown_memory(session: Session, machine: Machine, gib: int) -> None:
    """The host's memory where it grows as it is used, so that what is planned for it finds it."""
    wanted = GIB if machine.tiny else gib * GIB
    ran = session.run("memory", 120, [sys.executable, "-B", HERE / "machine_memory.py", "--touch", str(wanted)])
    session.note("memory", ran.good, last_line(ran.text), ran.seconds)


def timed(session: Session, work):
    begin = session.left()
    found = work()
    return found, begin - session.left()


def begin(session: Session, machine: Machine) -> None:
    environment(session, machine)
    libraries(session, machine)
