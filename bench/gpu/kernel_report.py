#!/usr/bin/env python3
"""What the compiler made of kernels: registers, local memory, and instructions per element on the path that all elements except a few
take. For reading before a card is there, and for comparing two builds.

    bench/gpu/kernel_report.py BUILD [--before BUILD]      folders of a build, or of its kernels' objects
    bench/gpu/kernel_report.py BUILD --write FILE          the table of instructions per element that is kept (bench/results/kernels.md)

The path is the shortest one through a kernel's machine code that stores (or takes exponentials of) as many elements as a lane has,
divisions that leave the fast way avoided. Needs cuobjdump: of the toolkit, or where CUOBJDUMP says.
"""

import argparse
import dataclasses
import datetime
import heapq
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

sys.path += [str(pathlib.Path(__file__).resolve().parent.parent / "peer")]

from provenance import commit  # noqa: E402
from report import table  # noqa: E402

NEXT_SECTION = "\n## "  # of a page, after the table of kernels
AVOIDED = 10000  # what a call of a slow path costs
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)(.*?);", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Counted:
    """A kernel, by part of its mangled name; how many elements `count` instructions of this form handle. Loops are counted from
    the second time round on, what comes before them not at all; of a `body` all its instructions, also those that a tile may jump over."""

    kernel: str
    form: str
    count: int
    elements: int
    loop: bool = False
    body: bool = False
    unit: str = "weight"  # what an element is


PAIR = "pair of a query and a key"
# A kernel that was rewritten stands here once for each form that it had. Attention's elements are of a lane: in a tile of 16 rows by 64
# keys (32 in the gradient; half as many of heads above 128) on the tensor cores, the pairs; while decoding, the numbers of keys and values that it reads.
COUNTED = (
    Counted("adamw_8bit_kernel", r"STG\.E\.64", 2, 8),
    Counted("adamw_8bit_kernel", r"STG\.E\.U8", 16, 8),
    Counted("adamw_stochastic_kernel", r"STG\.E\.128", 3, 8),
    Counted("adamw_stochastic_kernel", r"STG\.E\.U16", 24, 8),
    Counted("rounded_sum_kernel", r"STG\.E\.128", 1, 8, unit="sum"),
    Counted("RoundedSum", r"STG\.E\.U16", 8, 8, unit="sum"),
    Counted("softmax_kernel", r"MUFU\.EX2", 32, 32, loop=True, unit="logit"),
    *(Counted(f"attention_matrix_kernelILi{dims}ELb{adjusts}ELNS2_8KeyPlaceE0ENS1_4Bf16E", r"HMMA", products, pairs, body=True, unit=PAIR)
      for dims, products, pairs in ((64, 64, 32), (128, 128, 32), (192, 96, 16), (256, 128, 16)) for adjusts in (0, 1)),
    *(Counted(f"{kernel}_matrix_kernelILi{dims}ELb{adjusts}ENS1_4Bf16E", r"HMMA", dims // 64 * products, pairs, body=True, unit=PAIR)
      for kernel, products, dims, pairs in (
          ("query", 48, 64, 16), ("query", 48, 128, 16), ("query", 24, 192, 8), ("query", 24, 256, 8),
          ("key", 64, 64, 16), ("key", 64, 128, 16), ("key", 24, 192, 8), ("key", 24, 256, 8),
          ("value", 16, 192, 8), ("value", 16, 256, 8)) for adjusts in (0, 1)),
    *(Counted(f"attention_splits_kernelILi{heads}ENS1_{form}E", r"LDG.*\.128", 8, 64, body=True, unit="number of the cache")
      for heads in (1, 2, 4, 8) for form in ("4Bf16", "3F16")),
    Counted("dequantize_kernelILi8E", r"STG\.E\.128", 4, 32),
    Counted("few_rows_kernelILi8E", r"FFMA", 8, 8, loop=True),
    Counted("few_rows_nf4_kernelILi8E", r"FFMA", 8, 8, loop=True),
    *(Counted(f"few_rows_matrix_kernelINS1_10NarrowStepINS1_4Bf16EEELi{rows}E", r"HMMA", products, 16, loop=True)
      for rows, products in ((4, 2), (8, 2), (16, 4))),
    *(Counted(f"few_rows_matrix_kernelINS1_7Nf4StepINS1_4Bf16ELb{nested}EEELi{rows}E", r"HMMA", 2 * rows, 64, loop=True)
      for rows in (4, 8, 16) for nested in (0, 1)),
)


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    registers: int
    stack: int
    shared: int
    code: list  # (address, predicate, opcode, the rest)

    def forms(self, pattern: str) -> int:
        return sum(bool(re.match(pattern, opcode)) for _, _, opcode, _ in self.code)


def registers_in(text: str) -> set[int]:
    """Of what an instruction names; a 64-bit address is two."""
    return {int(name) + i for name, pair in re.findall(r"\bR(\d+)(\.64)?", text) for i in range(2 if pair else 1)}


def loads_in_flight(kernel: Kernel) -> int:
    """The most 16-byte loads that stand one after another, in the order of the code, before an instruction reads one of them."""
    most, pending = 0, []
    for _, _, opcode, rest in kernel.code:
        loads = re.match(r"LDG.*128", opcode)
        words = rest.split(",", 1)
        read = registers_in(rest if re.match("ST|RED", opcode) or len(words) < 2 else words[1])
        if any(read & loaded for loaded in pending):
            pending = []
        if loads:
            first = int(re.search(r"\bR(\d+)", rest)[1])
            pending.append(set(range(first, first + 4)))
            most = max(most, len(pending))
    return most


def cuobjdump(words: list) -> str:
    """Nothing of an object without device code: the emulator's kernels are compiled for the processor, and have the same names."""
    tool = os.environ.get("CUOBJDUMP") or shutil.which("cuobjdump")
    if not tool:
        raise SystemExit("kernel_report: cuobjdump is not on the PATH; CUOBJDUMP names it")
    done = subprocess.run([tool, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if "does not contain device code" in done.stdout + done.stderr:
        return ""
    raise SystemExit(f"kernel_report: cuobjdump of {words[-1]} failed: {(done.stderr or done.stdout).strip()}")


def kernels_of(path: pathlib.Path) -> list[Kernel]:
    usage = {name: tuple(map(int, found)) for name, *found in
             re.findall(r"Function (\S+?):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", cuobjdump(["-res-usage", path]))}
    found = []
    for part in re.split(r"\n\s+Function : ", cuobjdump(["-sass", path]))[1:]:
        name = part.split("\n", 1)[0].strip()
        code = [(int(address, 16), predicate, opcode, rest) for address, predicate, opcode, rest in INSTRUCTION.findall(part)]
        if name in usage:
            found.append(Kernel(name, *usage[name], code))
    return found


def successors(kernel: Kernel) -> list[list[tuple[int, int]]]:
    """Of each instruction: the next ones and what going there costs."""
    place = {address: i for i, (address, *_) in enumerate(kernel.code)}
    found = []
    for i, (_, predicate, opcode, rest) in enumerate(kernel.code):
        next_one = [(i + 1, 1)] if i + 1 < len(kernel.code) else []
        if opcode.startswith(("BRA", "JMP")):
            target = re.search(r"0x([0-9a-f]+)", rest)
            jump = [(place[int(target[1], 16)], 1)] if target and int(target[1], 16) in place else []
            # BRA P0, target: a predicate that is an operand.
            is_conditional = predicate or re.search(r"\b!?U?P\d\b", rest)
            found.append(jump + (next_one if is_conditional else []))
        elif opcode.startswith("CALL"):
            found.append([(at, AVOIDED) for at, _ in next_one])
        elif opcode.startswith(("EXIT", "RET")):
            found.append(next_one if predicate else [])
        else:
            found.append(next_one)
    return found


def shortest(kernel: Kernel, form: str, count: int) -> int | None:
    """Instructions of the shortest path from the beginning on which so many are of the form."""
    after = successors(kernel)
    counts = [bool(re.match(form, opcode)) for _, _, opcode, _ in kernel.code]
    best, queue = {}, [(1, 0, int(counts[0]))]
    while queue:
        cost, at, seen = heapq.heappop(queue)
        if seen >= count:
            return cost
        if best.get((at, seen), cost + 1) <= cost:
            continue
        best[at, seen] = cost
        for following, price in after[at]:
            heapq.heappush(queue, (cost + price, following, seen + counts[following]))
    return None


def loop_body(kernel: Kernel, form: str, count: int) -> int | None:
    """Instructions of the shortest loop that has so many of the form."""
    place = {address: i for i, (address, *_) in enumerate(kernel.code)}
    lengths = []
    for i, (address, _, opcode, rest) in enumerate(kernel.code):
        target = re.search(r"0x([0-9a-f]+)", rest) if opcode.startswith("BRA") else None
        begin = place.get(int(target[1], 16)) if target and int(target[1], 16) < address else None
        if begin is not None and sum(bool(re.match(form, each)) for _, _, each, _ in kernel.code[begin:i + 1]) >= count:
            lengths.append(i + 1 - begin)
    return min(lengths, default=None)


def instructions_of(kernel: Kernel, counted: Counted) -> int | None:
    """What `elements` of them cost; nothing where the kernel has no such path or loop."""
    if counted.body:
        return loop_body(kernel, counted.form, counted.count)
    cost = shortest(kernel, counted.form, 2 * counted.count if counted.loop else counted.count)
    before = shortest(kernel, counted.form, counted.count) if counted.loop else 0
    return cost - before if cost is not None and before is not None and cost < AVOIDED else None


def instructions_per_element(kernel: Kernel) -> list[tuple[Counted, float]]:
    """Of each of the forms that the kernel has."""
    found = []
    for each in COUNTED:
        if each.kernel not in kernel.name or kernel.forms(each.form) == 0:
            continue
        if (cost := instructions_of(kernel, each)) is not None:
            found.append((each, cost / each.elements))
    return found


def per_element(kernel: Kernel) -> list[str]:
    return [f"{count:.1f} per element ({each.form.replace(chr(92), '')})" for each, count in instructions_per_element(kernel)]


def all_kernels(folder: pathlib.Path) -> list[Kernel]:
    objects = sorted(folder.rglob("*.cu.o"))
    kernels = [kernel for path in objects for kernel in kernels_of(path)]
    if not kernels:
        raise SystemExit(f"kernel_report: {folder} has no kernels that were compiled for a card")
    # Of several architectures a kernel has one name.
    names = [short_name(name) for name in {kernel.name for kernel in kernels}]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"kernel_report: several kernels have the name {', '.join(twice)}")
    return kernels


def architectures_of(folder: pathlib.Path) -> str:
    listed = "".join(cuobjdump(["-lelf", path]) for path in sorted(folder.rglob("*.cu.o")))
    return ", ".join(sorted(set(re.findall(r"sm_\w+", listed)))) or "unknown"


def counted_table(folder: pathlib.Path) -> str:
    """The kernels whose instructions are counted, the fastest of each one's forms, with what made them and when."""
    rows = []
    for kernel in sorted(all_kernels(folder), key=lambda each: short_name(each.name)):
        if found := instructions_per_element(kernel):
            each, count = min(found, key=lambda pair: pair[1])
            rows.append([short_name(kernel.name), f"{count:.1f}", each.unit, str(kernel.registers), str(kernel.stack), str(kernel.shared),
                         str(loads_in_flight(kernel))])
    day = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return (f"# Instructions of kernels\n\nCounted in machine code by `bench/gpu/kernel_report.py BUILD --write FILE`, on the path that all elements except a few "
            f"take, of attention in the whole loop over tiles; nothing ran.\nCompiled for {architectures_of(folder)} on {platform.machine()} on {day} at commit {commit()}.\n\n" +
            table(["kernel", "instructions per element", "an element is a", "registers", "local bytes", "shared bytes", "loads of 16 bytes in flight"], rows))


def lines_of(folder: pathlib.Path) -> dict[str, str]:
    """By kernel, in the order of its name."""
    found = {}
    for kernel in all_kernels(folder):
        found[short_name(kernel.name)] = (
            f"{kernel.registers} registers, {kernel.stack} bytes of local memory, {kernel.shared} shared, {len(kernel.code)} instructions "
            f"({kernel.forms('LDL|STL')} local, {kernel.forms('LDS')} LDS, {kernel.forms(r'LDG.*128')} of {kernel.forms('LDG')} loads in 16 bytes, "
            f"{loads_in_flight(kernel)} of those in flight)" + "".join(f"; {text}" for text in per_element(kernel)))
    return found


class MangledName:
    """A reader of a name as compilers mangle it (Itanium C++ ABI), as far as kernels have it: names, substitutions, numbers, flags and
    built-in types. Namespaces are left out."""

    BUILTIN = {"f": "float", "d": "double", "i": "int", "l": "long", "t": "unsigned short", "h": "unsigned char", "b": "bool"}

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def takes(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def take(self, pattern: str) -> str:
        found = re.compile(pattern).match(self.text, self.at)
        if not found:
            raise ValueError(f"no {pattern} at {self.at} of {self.text}")
        self.at = found.end()
        return found[0]

    def word(self) -> str:
        length = int(self.take(r"\d+"))
        self.at += length
        return self.text[self.at - length:self.at]

    def arguments(self) -> str:
        """`<128, true>`, or nothing where there are none."""
        if not self.takes("I"):
            return ""
        found = []
        while not self.takes("E"):
            found.append(self.argument())
        return f"<{', '.join(found)}>"

    def argument(self) -> str:
        if self.takes("L"):
            # An enumerator is its number.
            kind = self.take("[a-z]") if self.text[self.at] in self.BUILTIN else self.name()
            value = self.take(r"n?\d+").replace("n", "-")
            self.take("E")
            return ("false", "true")[int(value)] if kind == "b" else value
        if self.text[self.at] in self.BUILTIN:
            return self.BUILTIN[self.take(".")]
        return self.name()

    def name(self) -> str:
        """The last word of a name, and its arguments."""
        if not self.takes("N"):
            return self.take(r"S[0-9A-Z]*_") if self.text[self.at] == "S" else self.word() + self.arguments()
        last = ""
        while not self.takes("E"):
            last = self.take(r"S[0-9A-Z]*_") if self.text[self.at] == "S" else self.word()
            last += self.arguments()
        return last


def short_name(mangled: str) -> str:
    """adamw_kernel, over_items_kernel<RoundedSum>, attention_matrix_kernel<128, true, Bf16>: no two kernels of a file have one."""
    reader = MangledName(mangled)
    reader.take("_Z")
    return reader.name()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path, help="what it is compared with: kernels that differ are shown")
    parser.add_argument("--only", default="", help="part of kernels' names")
    parser.add_argument("--write", type=pathlib.Path, help="file of the table that is kept")
    arguments = parser.parse_args()
    if arguments.write:
        # What follows the table stays; the plan's tests hold it (tests/plan/card_classes_test.cpp).
        kept = arguments.write.read_text() if arguments.write.exists() else ""
        _, mark, rest = kept.partition(NEXT_SECTION)
        arguments.write.write_text(counted_table(arguments.build) + mark + rest)
        return 0
    now = lines_of(arguments.build)
    before = lines_of(arguments.before) if arguments.before else {}
    for name in sorted({*now, *before}):
        if arguments.only not in name or (before and now.get(name) == before.get(name)):
            continue
        print(name)
        for title, lines in (("before", before), ("now", now)):
            if name in lines and (before or title == "now"):
                print(f"  {title + ': ' if before else ''}{lines[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
