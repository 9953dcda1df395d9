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
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple, Protocol

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


class Violation(NamedTuple):
    """An input that breaks a rule."""

    number: int
    name: str  # what it takes the place of
    what: str  # what happened
    data: bytes = b""  # none if the process ended with it


@dataclass
class Report:
    """The findings of a run."""

    n_inputs: int = 0
    slowest: float = 0  # most seconds of computing for a megabyte, of inputs of 64 KiB and more
    longest: float = 0  # most seconds of computing for one input of any size
    largest: int = 0  # most bytes of memory that one input took
    largest_share: float = 0  # the same as a part of what is allowed
    next: int = 0  # number of the first input that some process has not tried
    kinds: Counter[str] = field(default_factory=Counter)  # how many inputs there were of each
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


def work(make: Callable[[Path], Harness], seed: str, numbers: range, pipe: Connection) -> None:
    """Try inputs in a process of its own; tell the number of each before it, and the findings."""
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
        for number in numbers:
            pipe.send(number)  # an error if the other end was killed
            examine(harness, harness.case(f"{seed}/{number}"), number, report)
            if report.violations or report.n_inputs == REPORT:
                pipe.send(report)
                report = Report()
        pipe.send(report)
        pipe.send(numbers.stop)


class Worker:
    """A process that tries some inputs, and where it is."""

    def __init__(self, make: Callable[[Path], Harness], seed: str, numbers: range) -> None:
        context = get_context("spawn")
        self.pipe, end = context.Pipe(duplex=False)
        self.numbers, self.at, self.since = numbers, -1, time.monotonic()
        self.process = context.Process(target=work, args=(make, seed, numbers, end))
        self.process.start()
        end.close()

    def reports(self) -> Iterator[Report]:
        """Yield what it has told; raise EOFError if it has ended, and kill it if it hangs."""
        while self.pipe.poll():
            told = self.pipe.recv()
            if isinstance(told, Report):
                yield told
            else:
                self.at, self.since = told, time.monotonic()
        if time.monotonic() - self.since > (START if self.at < 0 else HANG):
            self.process.kill()

    def violation(self) -> Violation:
        """Return what has ended it; the time tells whether it was killed."""
        self.process.join()
        what = f"ended the process: {self.process.exitcode}"
        if time.monotonic() - self.since > (START if self.at < 0 else HANG):
            what = f"no answer in {HANG} s"
        if self.at < 0:
            message = f"the harness does not start: {what}"
            raise RuntimeError(message)
        return Violation(self.at, "", what)


def run(
    make: Callable[[Path], Harness], seed: str, numbers: range, *, seconds: float, n_workers: int
) -> Iterator[Report]:
    """Run inputs in processes, which are started again if one ends them; yield new findings.

    They are made of ``seed`` and ``numbers``; the run ends after so many seconds.
    """
    end = time.monotonic() + seconds
    shares = [numbers[k::n_workers] for k in range(min(n_workers, len(numbers)))]
    workers = [Worker(make, seed, share) for share in shares]
    try:
        while any(each.at < each.numbers.stop for each in workers) and time.monotonic() < end:
            going = [n for n, each in enumerate(workers) if each.at < each.numbers.stop]
            wait([workers[n].pipe for n in going], 0.2)
            for n in going:
                worker = workers[n]
                try:
                    for report in worker.reports():
                        report.next = min(each.at for each in workers)
                        yield report
                except EOFError:
                    yield Report(n_inputs=1, violations=[worker.violation()])
                    left = worker.numbers[worker.numbers.index(worker.at) + 1 :]
                    workers[n] = Worker(make, seed, left)
        yield Report(next=min(each.at for each in workers))
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
