"""Run a harness in processes that cannot harm the machine, and watch their time and memory."""

from __future__ import annotations

import faulthandler
import os
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fuzz.judge import Case

__all__ = ["Harness", "Report", "Violation", "examine", "limit_memory", "run"]

MEMORY = 2**30  # bytes that a process may get beside what it has at its beginning
SECONDS_PER_MB, SECONDS = 10, 2  # of computing, for an input; the latter for the smallest
HANG, START = 300, 900  # seconds of waiting after which a process is ended
REPORT = 500  # cases after which a process tells what it has done
WARM = 10**9  # number of the first input that is not judged
IS_LINUX = sys.platform == "linux"
_PEAK = re.compile(rb"VmHWM:\s+([0-9]+) kB")


class Harness(Protocol):
    """A source of inputs, and the function that tries them."""

    def case(self, seed: str) -> Case:
        """Make the input of a seed."""

    def kept(self, name: str, data: bytes) -> Case:
        """Make the input of a corpus; ``name`` is that of the item it replaces."""

    def run(self, case: Case, number: int) -> list[str]:
        """Try an input, and return the problems; ``number`` selects the way."""

    def allowed(self, case: Case) -> int:
        """Return the bytes of memory that an input may take."""


@dataclass(frozen=True)
class Violation:
    """An input that breaks a rule.

    Parameters
    ----------
    number : int
        Number of the input.
    name : str
        What it takes the place of.
    what : str
        What happened.
    data : bytes
        The input; empty if the process ended with it.
    """

    number: int
    name: str
    what: str
    data: bytes = b""


@dataclass
class Report:
    """The findings of a run.

    Parameters
    ----------
    n_inputs : int
        How many inputs were tried.
    slowest : float
        Most seconds of computing for a megabyte of an input, of inputs of 64 KiB and more.
    longest : float
        Most seconds of computing for one input of any size.
    largest : int
        Most memory that one input took, in bytes.
    largest_share : float
        The same as a part of what is allowed.
    next : int
        Number of the first input that some process has not tried.
    kinds : Counter
        How many inputs there were of each kind.
    violations : list of Violation
        What must not be.
    """

    n_inputs: int = 0
    slowest: float = 0
    longest: float = 0
    largest: int = 0
    largest_share: float = 0
    next: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Add the findings of another process."""
        self.n_inputs += other.n_inputs
        for name in ("slowest", "longest", "largest", "largest_share", "next"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.kinds.update(other.kinds)
        self.violations += other.violations

    def rows(self) -> dict[str, Any]:
        """Return the figures, for documents and other programs."""
        return {
            "cases": self.n_inputs,
            "violations": len(self.violations),
            "seconds_per_mb": round(self.slowest, 2),
            "longest_seconds": round(self.longest, 2),
            "largest_mb": round(self.largest / 10**6, 1),
            "largest_of_allowed": round(self.largest_share, 2),
            "next": self.next,
        }


def peak_memory() -> int:
    """Return the most memory since :func:`forget_peak`, in bytes.

    ``getrusage`` would count that of the process which started this one, too.
    """
    found = _PEAK.search(Path("/proc/self/status").read_bytes())
    assert found is not None
    return int(found[1]) * 1024


def forget_peak() -> int:
    """Reset the peak of memory; return the memory in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def examine(harness: Harness, case: Case, number: int, report: Report) -> None:
    """Try an input, and record its time and memory."""
    before, start = forget_peak() if IS_LINUX else 0, time.process_time()
    wrong = harness.run(case, number)
    seconds = time.process_time() - start
    taken = peak_memory() - before if IS_LINUX else 0
    megabytes = len(case.data) / 10**6
    allowed = harness.allowed(case)
    if seconds > max(SECONDS, SECONDS_PER_MB * megabytes):
        wrong.append(f"took {seconds:.1f} s for {len(case.data)} bytes")
    if taken > allowed:
        wrong.append(f"took {taken} bytes of memory, of {allowed}")
    report.n_inputs += 1
    report.kinds[case.name.partition(" ")[0]] += 1
    report.longest = max(report.longest, seconds)
    if len(case.data) >= 2**16:
        report.slowest = max(report.slowest, seconds / megabytes)
    report.largest = max(report.largest, taken)
    report.largest_share = max(report.largest_share, taken / allowed)
    report.violations += [Violation(number, case.name, what, case.data) for what in wrong]


def limit_memory() -> None:
    """Limit the memory, so that larger requests fail."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY,) * 2)


def work(make: Callable[[Path], Harness], seed: str, numbers: range, at: Any, answers: Any) -> None:
    """Try inputs in a process of its own; ``at`` holds the number of the current one."""
    faulthandler.enable()  # an input that ends the process tells where
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - memory
    with tempfile.TemporaryDirectory(prefix="fuzz", dir=base) as directory:
        harness = make(Path(directory))
        # what is imported when it is first needed is no matter of an input
        for number in range(WARM, WARM + 60):
            harness.run(harness.case(f"warm/{number}"), number)
        if IS_LINUX:
            limit_memory()
        report = Report()
        parent = os.getppid()
        for number in numbers:
            if os.getppid() != parent:  # which was killed
                return
            at.value = number
            examine(harness, harness.case(f"{seed}/{number}"), number, report)
            if report.violations or report.n_inputs == REPORT:
                answers.put(report)
                report = Report()
        at.value = numbers.stop
        answers.put(report)


class Worker:
    """A process that tries every n-th input, and is started again when one ends it."""

    def __init__(
        self, make: Callable[[Path], Harness], seed: str, numbers: range, answers: Any
    ) -> None:
        self.make, self.seed, self.numbers, self.answers = make, seed, numbers, answers
        self.context = get_context("spawn")
        self.start()

    def start(self) -> None:
        self.at = self.context.Value("q", -1)
        self.seen, self.since = -1, time.monotonic()
        arguments = (self.make, self.seed, self.numbers, self.at, self.answers)
        self.process = self.context.Process(target=work, args=arguments)
        self.process.start()

    def check(self) -> Violation | None:
        """Start the process again if an input has ended it, or has run for too long."""
        if self.at.value != self.seen:
            self.seen, self.since = self.at.value, time.monotonic()
        patience = START if self.seen < 0 else HANG
        hangs = time.monotonic() - self.since > patience
        if self.is_done or (self.process.is_alive() and not hangs):
            return None
        what = (
            f"no answer in {patience} s" if hangs else f"ended the process: {self.process.exitcode}"
        )
        number = int(self.at.value)
        self.stop()
        if number < 0:
            message = f"the harness does not start: {what}"
            raise RuntimeError(message)
        self.numbers = self.numbers[self.numbers.index(number) + 1 :]
        self.start()
        return Violation(number, "", what)

    @property
    def is_done(self) -> bool:
        return bool(self.at.value >= self.numbers.stop) and not self.process.is_alive()

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def run(
    make: Callable[[Path], Harness],
    seed: str,
    numbers: range,
    *,
    seconds: float,
    n_workers: int,
) -> Iterator[Report]:
    """Run inputs in processes; yield the findings since the last time.

    Parameters
    ----------
    make : callable
        Makes the harness, in a directory of each process.
    seed : str
        Of all inputs.
    numbers : range
        Of the inputs.
    seconds : float
        After which the run ends, whatever is left.
    n_workers : int
        How many processes work.
    """
    end = time.monotonic() + seconds
    answers = get_context("spawn").Queue()
    workers = [
        Worker(make, seed, numbers[k::n_workers], answers)
        for k in range(min(n_workers, len(numbers)))
    ]
    try:
        while True:
            done = all(worker.is_done for worker in workers)
            with suppress(Empty):
                while True:
                    report = answers.get(timeout=0.2)
                    report.next = min(int(worker.at.value) for worker in workers)
                    yield report
            if done or time.monotonic() > end:
                return
            for worker in workers:
                found = worker.check()
                if found is not None:
                    yield Report(n_inputs=1, violations=[found])
    finally:
        for worker in workers:
            worker.stop()
