"""A GoogleTest binary with a process for each of its tests, several side by side: one that aborts takes no other with it, and a
test without a result is counted as one."""

import concurrent.futures
import dataclasses
import pathlib
import re

from session import Ran, run_command

PASSED, FAILED, SKIPPED, NO_RESULT = "passed", "failed", "skipped", "no result"


@dataclasses.dataclass(frozen=True)
class Result:
    test: str
    verdict: str
    ran: Ran


def tests_of(binary: pathlib.Path, words: str) -> list[str]:
    """Names that the filter lets through."""
    ran = run_command([binary, "--gtest_list_tests", f"--gtest_filter={words}"], 60)
    if not ran.good:
        raise RuntimeError(f"{binary} --gtest_list_tests: {ran.status}, {ran.text[-300:]}")
    found, suite = [], ""
    for line in ran.text.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  "):
            found.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return found


def verdict_of(ran: Ran) -> str:
    """Of a process that ran one test: what GoogleTest says of it, where the exit status says the same."""
    marks = re.findall(r"^\[ +(OK|FAILED|SKIPPED) +\] .* \(\d+ ms\)$", ran.text, re.MULTILINE)
    if len(marks) != 1:
        return NO_RESULT
    if marks[0] == "FAILED":
        return FAILED
    if not ran.good:
        return NO_RESULT
    return PASSED if marks[0] == "OK" else SKIPPED


def run_test(binary: pathlib.Path, test: str, limit, environment: dict | None, prefix: list) -> Result:
    seconds = limit()
    ran = run_command([*prefix, binary, f"--gtest_filter={test}"], seconds, environment) if seconds >= 1 else Ran("no time left", 0.0, "")
    return Result(test, verdict_of(ran), ran)


def run_tests(binary: pathlib.Path, tests: list[str], workers: int, limit, environment: dict | None = None, prefix: list = ()) -> list[Result]:
    """`limit()`: the seconds that a test begun now may take. `prefix`: a tool that runs the binary."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(lambda test: run_test(binary, test, limit, environment, list(prefix)), tests))


def summary(results: list[Result]) -> str:
    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in (PASSED, FAILED, SKIPPED, NO_RESULT)}
    text = f"{len(results)} tests: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count or verdict == PASSED)
    bad = [f"{result.test} ({result.verdict}{'' if result.verdict == FAILED else ', ' + str(result.ran.status)})"
           for result in results if result.verdict in (FAILED, NO_RESULT)]
    return text + (": " + ", ".join(bad) if bad else "")


def log_of(results: list[Result]) -> str:
    return "".join(f"== {result.test}: {result.verdict}, {result.ran.seconds:.1f} s\n{result.ran.text}\n" for result in results)
