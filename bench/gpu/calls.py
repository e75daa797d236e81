#!/usr/bin/env python3
"""The check on a card as calls of some minutes each, for a machine that is rented by the minute and starts bare. What they are made of is in
call_stages.py.

A to D, at most 580 s each, look at a kind of card for the first time. A: what is here, cuDNN against own kernels, graphs, kernels that begin early,
parity, goldens, 15 steps of 8B LoRA, decoding, the card's rates. B: curves, LoRA, QLoRA and full with profiles, decoding again, four kernels
under ncu. C: lean jobs, Phi-3, full fine-tuning from host memory, own kernels under compute-sanitizer. D: one peer, the longest row.

1 to 5, at most 480 s each, look at what no card has run yet, in the order of worth. 1 and 2 begin with cuDNN's attention against own kernels. 1: parity,
goldens and a step of Phi-3, whose gradient has a form that is new, changed kernels under compute-sanitizer, the card's rates. 2: Gemma 7B and Gemma 2 9B,
own attention with heads of 128. 3: decoding, 1, 8 and 64 sequences. 4: full fine-tuning of 8B from host memory, dense against ragged attention, the longest
row. 5: GRPO of 8B QLoRA.

What a later stage depends on is decided by earlier ones of the same call, and said. Calls plan with the rates that an earlier call left in the folder of
results, or measure them first. That folder holds gpu.json, gpu.md, calls.json, the card's calibration and the logs of each call; several calls may share it,
and measure.py --merge adds others' gpu.json.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "peer")]

import card  # noqa: E402
import jobs  # noqa: E402
from call_stages import (Machine, begin, capture, collectives, curves, dense_attention, early_kernels, emulated_machine, goldens, grown_memory,  # noqa: E402
                         library_attention, measure, nccl, ncu, parity, parity_of, rates, real_machine, sanitizer)
from provenance import commit  # noqa: E402
from results import peer_name  # noqa: E402
from session import Session, Stop  # noqa: E402

LONG_SECONDS = 580.0
SHORT_SECONDS = 480.0

LLAMA, PHI = jobs.LLAMA, jobs.PHI
LORA, QLORA, FULL = f"{LLAMA} lora", f"{LLAMA} qlora", f"{LLAMA} full"
STREAMED = f"{FULL} offloaded"
DECODING = [each.name for each in jobs.DECODING]
OWN_ATTENTION = f"{LORA} own attention"
WIDE = [f"{jobs.GEMMA} lora", f"{jobs.GEMMA_2} lora"]


def call_a(session: Session, machine: Machine) -> None:
    begin(session, machine)
    nccl(session, machine)
    collectives(session, machine)
    library_attention(session, machine)
    capture(session, machine)
    early_kernels(session, machine)
    parity(session, machine)
    goldens(session, machine)
    measure(session, machine, "lora", "training", [LORA], 130)
    measure(session, machine, "decoding", "decoding", DECODING, 120)
    rates(session, machine, 150)


def call_b(session: Session, machine: Machine) -> None:
    begin(session, machine)
    capture(session, machine)
    curves(session, machine)
    rates(session, machine, 90)
    measure(session, machine, "training", "training,profile", [LORA, QLORA, f"{FULL} checkpoints"], 300)
    measure(session, machine, "decoding", "decoding", DECODING, 90)
    ncu(session, machine)


def call_c(session: Session, machine: Machine) -> None:
    begin(session, machine)
    capture(session, machine)
    early_kernels(session, machine)
    rates(session, machine, 90)
    measure(session, machine, "lean", "training", [f"{LORA} checkpoints", f"{QLORA} checkpoints"], 150)
    measure(session, machine, "phi-3", "training", [f"{PHI} lora", f"{PHI} qlora", f"{PHI} full"], 160)
    grown_memory(session, machine, 64)
    measure(session, machine, "offloaded", "training", [STREAMED, f"{STREAMED} not clipped"], 170)
    measure(session, machine, "offloaded profile", "profile", [STREAMED], 90)
    sanitizer(session, machine, machine.parity_tests, 110)


def call_d(session: Session, machine: Machine) -> None:
    begin(session, machine)
    rates(session, machine, 60)
    if machine.python:
        measure(session, machine, "peer", "peer", [peer_name(LLAMA, "lora", jobs.TINY_ROW_TOKENS if machine.tiny else 8192)], 200)
    else:
        session.left_out("peer", "--python names no Python with torch, transformers and PEFT")
    grown_memory(session, machine, 90)
    measure(session, machine, "longest", "longest", [f"{QLORA} longest row"], 330)


def call_1(session: Session, machine: Machine) -> None:
    begin(session, machine)
    library_attention(session, machine)
    collectives(session, machine)
    capture(session, machine)
    early_kernels(session, machine)
    parity(session, machine)
    goldens(session, machine)
    measure(session, machine, "phi-3", "training", [f"{PHI} lora"], 60)
    sanitizer(session, machine, machine.sanitized_tests, 60)
    rates(session, machine, 90)


def call_2(session: Session, machine: Machine) -> None:
    begin(session, machine)
    library_attention(session, machine)
    parity_of(session, machine, "attention", machine.attention_tests)
    rates(session, machine, 90)
    measure(session, machine, "wide heads", "training,profile", WIDE, 180)
    measure(session, machine, "own attention", "training,profile", [OWN_ATTENTION], 90)


def call_3(session: Session, machine: Machine) -> None:
    begin(session, machine)
    early_kernels(session, machine)
    parity_of(session, machine, "decoding kinds", machine.decoding_tests)
    rates(session, machine, 90)
    measure(session, machine, "decoding", "decoding", DECODING, 60)
    measure(session, machine, "side by side", "decoding", [each.name for each in jobs.SIDE_BY_SIDE], 180)


def call_4(session: Session, machine: Machine) -> None:
    begin(session, machine)
    rates(session, machine, 60)
    grown_memory(session, machine, 64)
    measure(session, machine, "offloaded", "training", [STREAMED, f"{STREAMED} not clipped"], 110)
    measure(session, machine, "ragged attention", "profile", [LORA], 40)
    dense_attention(session, machine, LORA)
    # Last, since a step of it takes what is left of most calls; where it is planned to take more it is not begun.
    measure(session, machine, "longest", "longest", [f"{QLORA} longest row"], 330)


def call_5(session: Session, machine: Machine) -> None:
    begin(session, machine)
    early_kernels(session, machine)
    rates(session, machine, 90)
    measure(session, machine, "rewarded", "rewarded", [each.name for each in jobs.REWARDED], 300)


CALLS = {"A": call_a, "B": call_b, "C": call_c, "D": call_d, "1": call_1, "2": call_2, "3": call_3, "4": call_4, "5": call_5}


def run(call: str, machine: Machine, results: pathlib.Path, seconds: float) -> bool:
    session = Session(call, results, seconds, {**card.facts(), "commit": commit()})
    print(f"call {call}, {seconds:.0f} s, commit {session.facts['commit']}", flush=True)
    try:
        CALLS[call](session, machine)
    except Stop as stop:
        session.note("stopped", False, str(stop), 0)
    session.pack()
    return session.good()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--call", required=True, choices=sorted(CALLS))
    parser.add_argument("--results", required=True, help="folder of what comes back")
    parser.add_argument("--build", default="build/gpu", help="a build for the card, or a release build with --emulated")
    parser.add_argument("--python", default="", help="one with torch, transformers and PEFT, for the peer")
    parser.add_argument("--seconds", type=float, default=LONG_SECONDS, help=f"at most {SHORT_SECONDS:.0f} are taken by calls 1 to 5")
    parser.add_argument("--emulated", action="store_true", help="every stage on the emulated device, tiny")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    machine = emulated_machine(build) if arguments.emulated else real_machine(build, arguments.python)
    seconds = min(arguments.seconds, SHORT_SECONDS if arguments.call.isdigit() else LONG_SECONDS)
    return 0 if run(arguments.call, machine, pathlib.Path(arguments.results).resolve(), seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
