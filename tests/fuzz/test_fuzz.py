"""Hostile blocks, documents and keys give a right value, or an error with the place.

The short form of ``uv run python -m tests.fuzz``, and the inputs that were kept. ``.ci/kernel``
replays them under the sanitizers, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n5zarr import N5Error
from n5zarr.errors import N5BlockError
from tests.fuzz.__main__ import HARNESSES
from tests.fuzz.blocks import ALWAYS, ARRAYS, WAYS, _compared
from tests.fuzz.judge import Case, judged, kept
from tests.fuzz.oracle import Expected, read_files
from tests.fuzz.seeds import JAVA
from tests.fuzz.watch import SECONDS, Report, examine, run

HAS_ASAN = "asan" in os.environ.get("LD_PRELOAD", "")
NO_LIMITS = "the sanitizer takes memory as it likes"
SHORT = {"blocks": 600, "documents": 40, "keys": 80}
MANIFEST = json.loads((JAVA / "manifest.json").read_text())


@pytest.fixture(scope="module", params=HARNESSES)
def harness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    kind = request.param
    return kind, HARNESSES[kind](tmp_path_factory.mktemp(kind))


def test_kept_inputs_do_what_they_must(harness: Any) -> None:
    kind, tested = harness
    inputs = kept(kind)
    assert inputs
    for stem, each in inputs.items():
        wrong = tested.run(tested.kept(each.name, each.data), each.way)
        assert wrong == [], f"{stem}: {each.why}"


@pytest.mark.long
@pytest.mark.skipif(HAS_ASAN, reason=NO_LIMITS)
def test_kept_inputs_take_little() -> None:
    """Kept inputs take little memory in a process whose memory is limited."""
    command = [sys.executable, "-m", "tests.fuzz", "--replay"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["cases"] == sum(len(kept(kind)) for kind in HARNESSES)


def test_a_short_run_finds_nothing(harness: Any) -> None:
    """A short run of fixed inputs finds nothing."""
    kind, tested = harness
    report = Report()
    for number in range(SHORT[kind] // (10 if HAS_ASAN else 1)):
        examine(tested, tested.case(f"short/{number}"), number, report)
    wrong = [each for each in report.violations if not (HAS_ASAN and "memory" in each.what)]
    assert wrong == []
    assert len(report.kinds) >= 5


# ---------------------------------------------------------------------- the oracle


@pytest.mark.parametrize(
    "described", MANIFEST["datasets"], ids=lambda d: f"{d['root']}/{d['path']}"
)
def test_the_oracle_reads_what_java_and_others_wrote(described: Any) -> None:
    """The decoder of these tests reproduces the checksums that Java computed."""
    array = read_files(JAVA / described["root"] / described["path"])
    stored = array.astype(array.dtype.newbyteorder(">")).tobytes()
    assert hashlib.sha256(stored).hexdigest() == described["sha256"]


VALUES = np.arange(6, dtype=">u2").reshape(2, 3)
SOUND = Expected(VALUES, np.ones((2, 3), bool), plain=True)


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        (VALUES + 1, SOUND, "other numbers"),
        (VALUES.T, SOUND, "other numbers"),
        (VALUES, None, "cannot be decoded"),
        (VALUES, Expected(VALUES, VALUES < 5, plain=False), "a part cannot be decoded"),
        (N5BlockError("no", kind="payload"), SOUND, "refused"),
    ],
)
def test_wrong_results_are_reported(found: Any, expected: Expected | None, message: str) -> None:
    (wrong,) = _compared("way", found, expected)
    assert message in wrong


def test_errors_that_say_nothing_are_seen() -> None:
    where = ("c.n5", "a/b", "block 0/1")
    sound = N5BlockError("no", kind="payload", where="/data/c.n5: a/b: block 0/1")
    assert judged("way", sound, where) == []
    assert judged("way", N5Error("no", kind="payload"), where)
    assert judged("way", MemoryError(), where)
    assert judged("way", ValueError("no"), where)


# ---------------------------------------------------------------------- the watch


class Hostile:
    """Inputs that end their process, hang, take memory, take time, or are sound."""

    def __init__(self, directory: Path) -> None:
        self.taken: list[bytes] = []
        self.start = 0.0

    def case(self, seed: str, data: bytes = b"") -> Case:
        return Case("input", seed.encode(), None)

    kept = case

    def run(self, case: Case, number: int) -> list[str]:
        self.start = time.process_time()
        match number:
            case 3:
                os.abort()
            case 5:
                self.taken = [bytes(bytearray(range(256)) * 2**20)]
                self.taken.clear()
            case 7:
                try:
                    bytearray(2**32)
                except MemoryError:
                    return ["too large a request"]
            case 9:
                while time.process_time() < self.start + SECONDS + 0.1:
                    pass
            case _:
                pass
        return []

    def allowed(self, case: Case) -> int:
        return 64 * 10**6


@pytest.mark.long
@pytest.mark.skipif(HAS_ASAN, reason=NO_LIMITS)
def test_inputs_that_harm_a_process_are_noted() -> None:
    total = Report()
    for report in run(Hostile, "s", range(11), seconds=600, n_workers=1):
        total.add(report)
    found = {each.number: each.what for each in total.violations}
    assert set(found) == {3, 5, 7, 9}
    assert "ended the process" in found[3]
    assert "bytes of memory" in found[5]
    assert found[7] == "too large a request"
    assert " s for " in found[9]
    # what a process has not told before it ends is not counted
    assert 8 <= total.n_inputs <= 11
    assert total.next == 11


def test_every_way_is_taken() -> None:
    numbers = range(4 * len(WAYS))
    assert {WAYS[number // 4 % len(WAYS)] for number in numbers if number % 4 == 0} == set(WAYS)
    assert set(ALWAYS) < set(ARRAYS)
