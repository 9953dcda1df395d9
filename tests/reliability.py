"""Run faults, kills, power cuts, state machines and fuzzing; write the table of a page.

``uv run python -m tests.reliability [--long] [PART ...]`` writes those rows of the list in
``docs/design/results.md`` that it has run, and leaves the others. It writes nothing if a test
fails.
Each test tells what it has counted by pytest's ``record_property``: a kind, and how often each
outcome was seen.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from tests.docs.migration.pages import with_tables

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "design" / "results.md"
FAULTS = ROOT / "tests" / "faults"
PARTS = {
    "store": [FAULTS / "test_inject_store.py"],
    "system": [FAULTS / "test_os_calls.py"],
    "limits": [FAULTS / "test_environment.py"],
    "kills": [FAULTS / "test_kills.py"],
    "conversions": [
        ROOT / "tests" / "contract" / "test_convert.py::test_a_killed_run_goes_on_where_it_stopped"
    ],
    "servers": [ROOT / "tests" / "remote" / "test_inject.py"],
    "states": [ROOT / "tests" / "property" / "test_states.py", FAULTS / "test_histories.py"],
    "fuzz": [],
}
LONG = {"N5ZARR_STRESS": "1", "N5ZARR_KILLS": "50"}
INPUTS = {False: (2_000, 500, 200), True: (1_000_000, 100_000, 20_000)}  # blocks, documents, keys
ROW = re.compile(r"^- ([^:]+): (.+) \(([0-9-]+)\)$", re.MULTILINE)
MARK = "<!-- made by `python -m tests.reliability` -->"


def counted(report: Path) -> dict[str, Counter[str]]:
    """Add up the counts of the tests in a report of pytest, by kind.

    Raises
    ------
    ValueError
        A test failed.
    """
    found: dict[str, Counter[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - our own
        if case.find("failure") is not None or case.find("error") is not None:
            message = f"{case.attrib['classname']}: {case.attrib['name']} failed"
            raise ValueError(message)
        for each in case.iter("property"):
            kind, counts = each.attrib["name"], ast.literal_eval(each.attrib["value"])
            found.setdefault(kind, Counter()).update(counts)
    return found


def text_of(counts: Mapping[str, float]) -> str:
    """Return how often each outcome was seen, as text.

    Examples
    --------
    >>> text_of({"fails: OSError": 7, "half: right": 1200, "half: OSError": 5})
    '12 OSError; 1 200 right'
    """
    outcomes = Counter[str]()
    for name, n in counts.items():
        outcomes[name.rpartition(": ")[2]] += n  # type: ignore[assignment] # seconds and MB, too
    return "; ".join(f"{n:,} {name}".replace(",", " ") for name, n in sorted(outcomes.items()))


def run_tests(files: Iterable[Path], *, is_long: bool) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-n", "0", "-o", "junit_family=xunit1", f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *map(str, files)]
        subprocess.run(command, cwd=ROOT, env=os.environ | (LONG if is_long else {}), check=False)
        return {kind: text_of(counts) for kind, counts in counted(report).items()}


def run_fuzzer(*, is_long: bool) -> dict[str, str]:
    """Fuzz the readers; return a row for each kind of input."""
    options = zip(("--blocks", "--documents", "--keys"), INPUTS[is_long], strict=True)
    command = [sys.executable, "-m", "tests.fuzz"]
    command += [str(word) for option in options for word in option]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {f"fuzzed {line['kind']}": fuzzed(line) for line in lines}  # the last of each counts


def fuzzed(line: Mapping[str, float]) -> str:
    counts = {"inputs": line["cases"], "violations": line["violations"]}
    slowest, largest = line["seconds_per_mb"], line["largest_mb"]
    return f"{text_of(counts)}; at most {slowest:.1f} s a MB, {largest:.0f} MB"


def updated(page: str, found: Mapping[str, str], day: str) -> str:
    """Return a page with the rows of its list replaced by new ones.

    Examples
    --------
    >>> rows = "- a: 1 right (2026-01-01)\\n- b: 2 right (2026-01-01)\\n"
    >>> print(updated(f"{MARK}\\n\\n{rows}\\n<!-- end -->\\n", {"b": "3 right"}, "2026-02-02"))
    <!-- made by `python -m tests.reliability` -->
    <BLANKLINE>
    - a: 1 right (2026-01-01)
    - b: 3 right (2026-02-02)
    <BLANKLINE>
    <!-- end -->
    <BLANKLINE>
    """
    old = page.partition(MARK)[2].partition("<!-- end -->")[0]
    rows = {what: (outcome, on) for what, outcome, on in ROW.findall(old)}
    rows |= {what: (outcome, day) for what, outcome in found.items()}
    lines = [f"- {what}: {outcome} ({on})\n" for what, (outcome, on) in sorted(rows.items())]
    return with_tables(page, "".join(lines), MARK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all by default")
    parser.add_argument("--long", action="store_true", help="hours instead of minutes")
    given = parser.parse_args()
    for part in given.parts or PARTS:
        if PARTS[part]:
            found = run_tests(PARTS[part], is_long=given.long)
        else:
            found = run_fuzzer(is_long=given.long)
        day = datetime.now(UTC).date().isoformat()
        PAGE.write_text(updated(PAGE.read_text(), found, day))


if __name__ == "__main__":
    main()
