#!/usr/bin/env python3
"""scripts/gpu_check's calls without a card: the parts by themselves, then each call from end to end on the emulated device."""

import argparse
import concurrent.futures
import contextlib
import ctypes
import io
import json
import os
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import call_stages  # noqa: E402
import calls  # noqa: E402
import machine_memory  # noqa: E402
import nccl_check  # noqa: E402
import results  # noqa: E402
import session  # noqa: E402
import sharded  # noqa: E402
import stages_self_test  # noqa: E402
from stages_self_test import require, script  # noqa: E402

MAX_BYTES = 16 << 20
# Tools as a machine with a card has them, as far as the calls look at them.
TOOLS = {
    "nvidia-smi": 'case "$*" in *name*) echo Emulated;; *driver*) echo 1.0;; *memory*) echo 100;; *) echo a card;; esac',
    # Finds the kernel that it was told, in the program that it was told.
    "ncu": 'kernel=${4#regex:}; echo "==PROF== Profiling \\"$kernel\\""; echo "Duration us 1.0"',
    # Runs the program; finds something in one test.
    "compute-sanitizer": 'tool=$2; for word; do case $word in --gtest_filter=*) filter=$word;; */cuda_emulator_test) binary=$word;; esac; done; '
                         '"$binary" "$filter" || exit; case "$tool $filter" in "racecheck "*silu_mul) echo "ERROR SUMMARY: 1"; exit 9;; esac',
}
STAGES = {
    "A": ["environment", "libraries", "nccl", "collectives", "library attention", "capture", "early kernels", "parity", "goldens", "lora", "decoding",
          "calibration"],
    "B": ["environment", "libraries", "capture", "curves", "calibration", "training", "decoding", *(f"ncu {kernel}" for kernel in call_stages.NCU_KERNELS)],
    "C": ["environment", "libraries", "capture", "early kernels", "lean", "phi-3", "memory", "offloaded", "offloaded profile", "memcheck", "racecheck"],
    "D": ["environment", "libraries", "peer", "memory", "longest"],
    "1": ["environment", "libraries", "library attention", "collectives", "capture", "early kernels", "parity", "goldens", "phi-3", "memcheck", "racecheck", "calibration"],
    "2": ["environment", "libraries", "library attention", "attention", "wide heads", "own attention"],
    "3": ["environment", "libraries", "early kernels", "decoding kinds", "decoding", "side by side"],
    "4": ["environment", "libraries", "memory", "offloaded", "ragged attention", "dense attention", "longest"],
    "5": ["environment", "libraries", "early kernels", "rewarded"],
}
ROWS = {"A": {"training": 1, "decoding": 2, "calibration": 1}, "B": {"training": 3, "profile": 3, "decoding": 2, "calibration": 1}, "C": {"training": 7, "profile": 1, "calibration": 1},
        "D": {"peer": 1, "longest": 1, "calibration": 1}, "1": {"training": 1, "calibration": 1}, "2": {"training": 3, "profile": 3, "calibration": 1},
        "3": {"decoding": 6, "calibration": 1}, "4": {"training": 2, "profile": 1, "longest": 1, "calibration": 1}, "5": {"rewarded": 1, "calibration": 1}}
# Calls that find the rates which another has measured; B stands for one whose folder is empty.
LATER = {"C": "A", "D": "A", "2": "1", "3": "1", "4": "1", "5": "1"}


def seconds_of(call: str) -> float:
    """Of a call here; on a card 580 for those of the first look."""
    return calls.SHORT_SECONDS if call.isdigit() else 280.0


def check_commands(folder: pathlib.Path) -> None:
    """A command that is late is ended with all that it started; what it printed is kept."""
    ran = session.run_command([script(folder, "late", "echo begun; sleep 60 & sleep 60")], 0.5)
    require(ran.status == "time limit" and ran.text == "begun\n" and ran.seconds < 5, ran)
    ran = session.run_command([script(folder, "bad", "echo out; echo err >&2; exit 3")], 5)
    require(ran.status == 3 and sorted(ran.text.split()) == ["err", "out"] and not ran.good, ran)


def check_shards(folder: pathlib.Path) -> None:
    """One test aborts, one fails, one hangs, one leaves itself out: each is counted, and no other is lost."""
    binary = script(folder, "suite", r'''
case $1 in --gtest_list_tests) printf 'Kinds.\n  agrees/good  # GetParam() = 1\n  agrees/bad\n  agrees/aborts\n  agrees/hangs\n  agrees/skipped\n'; exit;; esac
name=${1#--gtest_filter=}
echo "[ RUN      ] $name"
case $name in
  */good) echo "[       OK ] $name (3 ms)";;
  */bad) echo "[  FAILED  ] $name (3 ms)"; exit 1;;
  */aborts) kill -ABRT $$;;
  */hangs) sleep 60;;
  */skipped) echo "[  SKIPPED ] $name (0 ms)";;
esac''')
    tests = sharded.tests_of(binary, "*")
    require(tests == [f"Kinds.agrees/{name}" for name in ("good", "bad", "aborts", "hangs", "skipped")], tests)
    found = sharded.run_tests(binary, tests, 3, lambda: 1.0)
    verdicts = [result.verdict for result in found]
    require(verdicts == ["passed", "failed", "no result", "no result", "skipped"], verdicts)
    text = sharded.summary(found)
    require(text.startswith("5 tests: 1 passed, 1 failed, 1 skipped, 2 no result: Kinds.agrees/bad (failed), Kinds.agrees/aborts (no result, -6), "
                            "Kinds.agrees/hangs (no result, time limit)"), text)
    lying = session.Ran(1, 0.0, "[       OK ] Kinds.agrees/good (3 ms)\n")
    require(sharded.verdict_of(lying) == sharded.NO_RESULT, "a test that passed in a process that failed")


def check_packing() -> None:
    """However much is logged, it comes back within the limit, and its end is what is kept."""
    logs = {f"{i}.log": f"start of {i}\n" + os.urandom(1 << 20).hex() + f"\nend of {i}\n" for i in range(4)}
    content = session.packed(logs, most=1 << 20)
    require(len(content) <= 1 << 20, len(content))
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        with tarfile.open(fileobj=file) as tar:
            for i in range(4):
                text = tar.extractfile(f"{i}.log").read().decode()
                require(text.endswith(f"end of {i}\n") and "are left out" in text, text[:80])


class MadeUpDevices:
    """Both libraries, with the devices' memory in Python: `error` is added to every sum."""

    def __init__(self, devices: int, error: float = 0.0):
        self.devices, self.error, self.buffers, self.current = devices, error, {}, 0
        self.joined = []

    def cudaGetDeviceCount(self, count) -> int:
        count._obj.value = self.devices
        return 0

    def cudaSetDevice(self, device: int) -> int:
        self.current = device
        return 0

    def cudaStreamCreate(self, stream) -> int:
        return 0

    def cudaStreamSynchronize(self, stream) -> int:
        return 0

    def cudaMalloc(self, buffer, size) -> int:
        memory = (ctypes.c_float * (size.value // 4))()
        buffer._obj.value = ctypes.addressof(memory)
        self.buffers[buffer._obj.value] = memory
        return 0

    def cudaMemcpy(self, to, source, size, direction) -> int:
        ctypes.memmove(to, source, size.value)
        return 0

    def ncclGetVersion(self, version) -> int:
        version._obj.value = 22907
        return 0

    def ncclCommInitAll(self, comms, devices, names) -> int:
        return 0

    def ncclGroupStart(self) -> int:
        self.joined = []
        return 0

    def ncclAllReduce(self, source, to, count, kind, operation, comm, stream) -> int:
        self.joined.append(self.buffers[to.value])
        return 0 if (kind, operation) == (7, 0) else 5

    def ncclGroupEnd(self) -> int:
        sums = [sum(values) + self.error for values in zip(*self.joined)]
        for buffer in self.joined:
            buffer[:] = sums
        return 0 if len(self.joined) == self.devices else 5


def check_nccl() -> None:
    nccl_check.REPEATS = 1
    size = 4 * nccl_check.CHECKED_FLOATS
    for library, nccl, status, said in ((None, None, 77, "runtime is not found"), (MadeUpDevices(1), None, 77, "1 device here"),
                                        (MadeUpDevices(2), None, 77, "libnccl.so.2 is not found"), (MadeUpDevices(2), "same", 0, "sums are right"),
                                        (MadeUpDevices(2, 1.0), "same", 1, f"{2 * nccl_check.CHECKED_FLOATS} of {2 * nccl_check.CHECKED_FLOATS} sums")):
        found = nccl_check.check(library, library if nccl else None, size)
        require(found[0] == status and said in found[1], found)


def check_memory() -> None:
    require(machine_memory.read()["MemTotal"] >= machine_memory.read()["MemAvailable"] > 0, "no memory")
    machine_memory.PIECE_BYTES = 1 << 20
    require(machine_memory.touch(3 << 20) == 3 << 20, "memory that is there was not taken")
    machine_memory.SPARE_BYTES = 1 << 60
    require(machine_memory.touch(3 << 20, patience=0.2) == 0, "memory that is not there was taken")


def check_decisions(folder: pathlib.Path) -> None:
    """What a stage that fails leaves to the later ones."""
    failing = script(folder, "failing", 'echo "[  FAILED  ] CudaGraphs.x (1 ms)"; exit 1')
    idle = script(folder, "idle", 'echo "[  PASSED  ] 0 tests."')
    plan = script(folder, "snug", 'echo \'{"libraries": "NVIDIA H200, no cuDNN"}\'')
    for goldens, graphs in ((failing, "off"), (idle, "off")):
        run = session.Session("A", folder / "decided", 60, {})
        machine = call_stages.Machine(plan, failing, goldens, "", workers=1)
        call_stages.libraries(run, machine)
        require(run.decisions["training"] == "left out", run.decisions)
        call_stages.capture(run, machine)
        require(run.decisions["graphs"] == graphs and not run.good(), run.decisions)
        call_stages.early_kernels(run, machine)
        require(run.decisions["early_kernels"] == "off", run.decisions)
        require(call_stages.settings(run) == {"SNUG_CUDA_GRAPHS": "off", "SNUG_CUDA_EARLY_KERNELS": "off"}, call_stages.settings(run))
        call_stages.measure(run, machine, "lora", "training", ["llama-3.1-8b lora"], 5)
        require(run.stages[-1].get("left_out"), run.stages[-1])
    blamed = script(folder, "blamed", '[ "$SNUG_CUDA_EARLY_KERNELS" = off ] || exit 1; echo "[  PASSED  ] 2 tests."')
    run = session.Session("A", folder / "blamed_run", 60, {})
    machine = call_stages.Machine(plan, failing, blamed, "", workers=1)
    call_stages.capture(run, machine)
    call_stages.early_kernels(run, machine)
    require(run.decisions == {"graphs": "on", "early_kernels": "off"}, run.decisions)
    run = session.Session("A", folder / "late_results", session.KEPT_SECONDS + 1, {})
    ran = run.stage("late", 60, ["true"])
    require(ran.status == "no time left" and not run.good(), run.stages)


def check_time_of_a_call(folder: pathlib.Path) -> None:
    """Whatever hangs (for a minute), a call of three seconds ends soon after them, and says in its results what it did not come to."""
    hanging = script(folder, "hanging", "sleep 60")
    plan = script(folder, "plan_alone", '[ "$1" = plan ] || exec sleep 60; echo \'{"libraries": "cuDNN 9.25"}\'')
    kept, least, listed = session.KEPT_SECONDS, session.MIN_SECONDS, sharded.tests_of
    session.KEPT_SECONDS, session.MIN_SECONDS, sharded.tests_of = 0.5, 0.2, lambda binary, words: ["Kinds.agrees/hangs"]
    begin = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        good = calls.run("B", call_stages.Machine(plan, hanging, hanging, "", workers=1, tiny=True), folder / "hung", 3.0)
    taken = time.monotonic() - begin
    session.KEPT_SECONDS, session.MIN_SECONDS, sharded.tests_of = kept, least, listed
    entry = json.loads((folder / "hung/calls.json").read_text())["B"]
    late = {stage["name"] for stage in entry["stages"] if not stage["good"]}
    require(not good and taken < 10 and {"capture", "curves", "training"} <= late, (taken, entry))


def run_call(call: str, build: pathlib.Path, results: pathlib.Path, environment: dict) -> session.Ran:
    return session.run_command([sys.executable, "-B", HERE / "calls.py", "--call", call, "--emulated", "--build", build, "--results", results,
                                "--seconds", f"{seconds_of(call):.0f}"], seconds_of(call) + 20, environment)


def leave_rates(folder: pathlib.Path, later: pathlib.Path) -> None:
    """What a call has measured of the card, and nothing else of it, for a later one."""
    later.mkdir()
    rows = results.load(folder / "gpu.json")
    [calibration] = rows["calibration"]
    (later / "gpu.json").write_text(results.to_json(results.empty() | {"calibration": [calibration]}))
    shutil.copy(folder / calibration["file"], later)


def run_calls(wanted: list[str], build: pathlib.Path, folder: pathlib.Path, environment: dict) -> list[session.Ran]:
    """Two side by side; those that take rates from the first of all begin when it has ended."""
    def later(call: str) -> session.Ran:
        if call in LATER:
            first = made[LATER[call]].result()
            require((folder / LATER[call] / "gpu.json").exists() and results.load(folder / LATER[call] / "gpu.json")["calibration"],
                    f"call {LATER[call]} left no rates:\n{first.text}")
            leave_rates(folder / LATER[call], folder / call)
        return run_call(call, build, folder / call, environment)

    made: dict[str, concurrent.futures.Future] = {}
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for call in wanted:
            made[call] = pool.submit(later, call)
        return [made[call].result() for call in wanted]


def check_call(call: str, ran: session.Ran, folder: pathlib.Path) -> None:
    entry = json.loads((folder / "calls.json").read_text())[call]
    names = [stage["name"] for stage in entry["stages"]]
    require(names == STAGES[call], f"call {call} made {names}:\n{ran.text}")
    require(max(entry["seconds"], ran.seconds) <= seconds_of(call), f"call {call} took {ran.seconds:.0f} s")
    require(re.search(r"memory of [\d.]+ GiB, [\d.]+ available", entry["stages"][0]["detail"]), entry["stages"][0])
    bad = [stage for stage in entry["stages"] if not stage["good"]]
    # The made-up racecheck has found something, and that is seen.
    planted = {"C": ["racecheck"], "1": ["racecheck"]}.get(call, [])
    require([stage["name"] for stage in bad] == planted and (ran.status == 0) == (not planted), f"call {call}:\n{ran.text}")
    if planted:
        require("errors in" in bad[0]["detail"] and "silu_mul" in bad[0]["detail"], bad)
    rows = json.loads((folder / "gpu.json").read_text())
    for kind, count in ROWS[call].items():
        require(len(rows[kind]) == count, (call, kind, [row["name"] for row in rows[kind]]))
    require(rows["failures"] == [], rows["failures"])
    files = [path for path in folder.rglob("*") if path.is_file()]
    require(len(files) <= session.MAX_FILES - 3, files)  # logs of three more calls may join them
    require(all(path.stat().st_size < MAX_BYTES and path.parent == folder for path in files), files)
    require(all(re.fullmatch(r"[A-Za-z0-9._-]+", path.name) for path in files), files)
    with tarfile.open(folder / f"logs-{call}.tar.gz") as tar:
        logs = set(tar.getnames())
    logged = {name for name in names if name != "early kernels"} | ({"early kernels on"} if "early kernels" in names else set())
    require({name.replace(" ", "-") + ".log" for name in logged} <= logs, logs)
    check_rates(call, entry, rows, folder)
    if call == "A":
        require(set(rows["training"][0]["outside"]) == {"tuning", "two steps"}, rows["training"][0])
        require(entry["decisions"] == {"training": "measured", "library_attention": "agrees", "graphs": "on", "early_kernels": "on", "rates": "measured"},
                entry["decisions"])
    if call in ("C", "4"):
        check_streamed(rows)
    if call == "C":
        [profile] = rows["profile"]
        require(any(line["name"].startswith("transfer") for line in profile["operations"]), [line["name"] for line in profile["operations"]])
    if call == "2":
        check_wide(rows)


def check_rates(call: str, entry: dict, rows: dict, folder: pathlib.Path) -> None:
    """The card's rates lie with the results, and what is measured after them is predicted by them."""
    [calibration] = rows["calibration"]
    require(calibration["samples"] > 10 and (folder / calibration["file"]).exists(), calibration)
    require(entry["decisions"]["rates"] == ("as measured before" if call in LATER else "measured"), entry["decisions"])
    if call in LATER.values():  # whose rows stand before its rates
        return
    predicted = [row for kind in ("training", "profile", "decoding", "longest", "rewarded") for row in rows[kind]]
    require(predicted and all(row["planned_step_basis"] == "calibrated quickly" for row in predicted),
            [(row["name"], row["planned_step_basis"]) for row in predicted])


def check_streamed(rows: dict) -> None:
    """Weights and their state lay in host memory, and copies were timed."""
    streamed = {row["name"]: row for row in rows["training"] if row.get("updates")}
    require(set(streamed) == {calls.STREAMED, f"{calls.STREAMED} not clipped"}, list(streamed))
    for row in streamed.values():
        require(row["steps"] == 2 and row["planned_host_bytes"] > 0 and row["planned_busy_seconds"]["host_to_device"] > 0, row)


def check_wide(rows: dict) -> None:
    """Attention of heads of 256 was profiled, with soft caps too; where own kernels were meant for what the library would have taken, they did it."""
    for profile in rows["profile"]:
        names = [line["name"] for line in profile["operations"] if line["name"].startswith("attention")]
        by_library = [name for name in names if "by library" in name]
        require(len(names) >= 2 and not ("own attention" in profile["name"] and by_library), (profile["name"], names))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path, help="such as build/release")
    parser.add_argument("--calls", default="A,B,C,D", help="of these, by commas")
    parser.add_argument("--show", action="store_true", help="what the calls print")
    arguments = parser.parse_args()
    wanted = arguments.calls.split(",")
    for call in wanted:
        if call in LATER and LATER[call] not in wanted[:wanted.index(call)]:
            parser.error(f"{call} takes the rates that {LATER[call]} measures, which comes before it")
    with tempfile.TemporaryDirectory(prefix="snug-calls-") as name:
        folder = pathlib.Path(name)
        check_commands(folder)
        check_shards(folder)
        check_packing()
        check_nccl()
        check_memory()
        check_decisions(folder)
        stages_self_test.check(folder)
        check_time_of_a_call(folder)
        tools = folder / "tools"
        tools.mkdir()
        for tool, body in TOOLS.items():
            script(tools, tool, body)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
        made = run_calls(wanted, arguments.build, folder, environment)
        if arguments.show:
            print("\n".join(ran.text for ran in made), flush=True)
        for call, ran in zip(wanted, made):
            check_call(call, ran, folder / call)
            print(f"call {call}: ok, {ran.seconds:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
