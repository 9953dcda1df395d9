"""Run tests of programs that use Zarr or N5 on stores of N5; write a table of a page.

The page is ``docs/design/results.md``:

    uv run python -m tests.peers.suites --anndata anndata-0.13.4 --z5 z5-3.0.2

dask and xarray have their tests in their wheels. The unpacked sources of the installed anndata and
z5py have theirs (``pip download --no-binary anndata --no-deps anndata==0.13.4``; a checkout of z5);
anndata's also need joblib, filelock, awkward, scikit-learn, boltons and pytest-mock. A suite
without its source keeps its row. Each runs plainly, too: what fails there is told apart.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from tests.docs.migration.pages import with_tables

Outcomes = dict[str, list[str]]  # of each test: outcome, and message of a failure or a skip

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "design" / "results.md"
MARK = "<!-- made by `python -m tests.peers.suites` -->"
ANNDATA = [
    "backed_dense", "backed_sparse", "concatenate_disk", "dask", "io_backwards_compat",
    "io_dispatched", "io_elementwise", "io_partial", "io_utils", "io_warnings", "readwrite",
    "structured_arrays", "x_layers_2d",
]  # fmt: skip
Z5 = ["asarray", "attributes", "compression", "dataset", "file", "group", "permissions", "pickle"]


@dataclass(frozen=True)
class Suite:
    """The tests of a program."""

    name: str  # as the page calls it
    package: str  # the installed one that is tested
    arguments: list[str]  # of pytest
    source: str = ""  # where the tests are, if they are not installed
    is_ours: bool = False  # the tests are of this project, in our words
    reasons: dict[str, str] = field(default_factory=dict)  # of failures, by patterns of messages


DASK = Suite(
    "`to_zarr` and `from_zarr` of dask", "dask",
    ["--pyargs", "dask.array.tests.test_array_core", "-k", "zarr",
     "-W", "error::dask.array.core.PerformanceWarning"],
)  # fmt: skip
DATATREE = Suite(
    "`DataTree` of xarray", "xarray",
    ["--pyargs", "xarray.tests.test_backends_datatree", "-k", "Zarr"],
    reasons={
        "compute_false": "The test looks for Zarr's files in the directory, which holds N5's.",
    },
)  # fmt: skip
ANNDATAS = Suite(
    "anndata's files", "anndata",
    ["-p", "testing.anndata._pytest", "--import-mode=importlib", "-k", "zarr or not h5ad",
     *(f"tests/test_{name}.py" for name in ANNDATA)],
    source="anndata",
    reasons={
        "test_zarr_context": "The test wants zarr's own pipeline as zarr's default.",
        "zip_path_suggests": "The test zips a directory, and reads the file as plain Zarr.",
    },
)  # fmt: skip
Z5PY = Suite(
    "z5py's tests of N5, over `n5zarr.compat.z5py`", "z5py",
    [*(f"test_{name}.py" for name in Z5),
     "-k", "N5 or Pathlib or Asarray or Permissions or Pickle"],
    source="z5",
    reasons={
        "negative out-of-bounds": "z5py selects nothing from far before the start; numpy cuts.",
    },
)  # fmt: skip
PROMISES = Suite(
    "zarr 2's promises for N5, in our words", "zarr 2.18.7",
    ["tests/peers/test_zarr2_promises.py"], is_ours=True,
)  # fmt: skip
TENSORSTORE = Suite(
    "tensorstore's cases for N5, in our words", "tensorstore",
    ["tests/peers/test_tensorstore_cases.py"], is_ours=True,
)  # fmt: skip
SUITES = [DASK, DATATREE, ANNDATAS, Z5PY, PROMISES, TENSORSTORE]


def prepare(suite: Suite, source: Path | None, folder: Path) -> None:
    """Copy the tests of a suite into an empty folder, in which they run."""
    marks = "gpu\n  zarr_io\n  dask_distributed\n  array_api"
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers =\n  {marks}\n")
    if source is None:
        return
    folders = {"anndata": {"tests": "tests", "src/testing": "testing"}}
    for place, name in folders.get(suite.source, {"src/python/test": ""}).items():
        shutil.copytree(source / place, folder / name, dirs_exist_ok=True)


def run(
    suite: Suite, *, on_n5: bool, source: Path | None = None, more: tuple[str, ...] = (),
    only: Iterable[str] = (),
) -> Outcomes:  # fmt: skip
    """Run a suite in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(suite, source, folder)
        report = folder / "report.json"
        options = ["--tb=no", "-p", "suites_plugin"]
        options += ["-n", "0"] if suite.is_ours else ["-W", "ignore", "-p", "no:randomly"]
        return outcomes_of(
            [*options, *suite.arguments, *more],
            ROOT if suite.is_ours else folder,
            report,
            PYTHONPATH=os.pathsep.join([str(folder), str(HERE), str(ROOT)]),
            N5ZARR_SUITE_STORE="1" if on_n5 and not suite.is_ours else "",
            N5ZARR_SUITE_Z5="1" if on_n5 and suite.source == "z5" else "",
            N5ZARR_SUITE_ONLY=json.dumps(sorted(only)),
        )


def outcomes_of(arguments: list[str], cwd: Path, report: Path, **variables: str) -> Outcomes:
    """Run pytest, without the options and the worker of the tests that run this."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "outcomes_plugin", *arguments], cwd=cwd,
        env={**kept, **variables, "N5ZARR_OUTCOMES": str(report.resolve())},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert report.exists(), done.stdout + done.stderr
    found: Outcomes = json.loads(report.read_text(encoding="utf-8"))
    return found


def failures(outcomes: Outcomes) -> dict[str, str]:
    """Return the messages of the tests that have failed unexpectedly."""
    good = ("passed", "skipped", "xfailed")
    return {name: text for name, (outcome, text) in outcomes.items() if outcome not in good}


def reason(reasons: dict[str, str], name: str, message: str) -> str:
    text = f"{name} {message}".replace("\n", " ")
    return next((why for what, why in reasons.items() if re.search(what, text)), "Other.")


def row(suite: Suite, on_n5: Outcomes, plain: Outcomes) -> str:
    counts = Counter(outcome for outcome, _ in on_n5.values())
    skipped = counts["skipped"] + counts["xfailed"]
    failed = failures(on_n5)
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name in sorted(failed):
        too = name in failures(plain)
        why = "Fails with plain Zarr, too." if too else reason(suite.reasons, name, failed[name])
        by_reason[why].append(name.partition("[")[0].rpartition("::")[2])
    reasons = [
        f"{why} ({len(names)}: {', '.join(f'`{test}`' for test in sorted(set(names))[:4])})"
        for why, names in by_reason.items()
    ]
    package, _, number = suite.package.partition(" ")
    numbers = (counts["passed"], len(failed) or "", skipped or "")
    cells = [suite.name, f"{package} {number or version(package)}", *map(str, numbers)]
    return f"| {' | '.join([*cells, ' '.join(reasons)])} |"


def part(rows: list[str]) -> str:
    head = "| suite | version | passed | failed | skipped | why tests fail |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows]) + "\n"


def old_row(suite: Suite) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.startswith(f"| {suite.name} |")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anndata", type=Path, help="the unpacked source of anndata")
    parser.add_argument("--z5", type=Path, help="a checkout of z5")
    parser.add_argument("--only", nargs="+", help="packages; the other rows stay")
    options = parser.parse_args()
    sources = {"anndata": options.anndata, "z5": options.z5}
    rows: list[str] = []
    n_unexplained = 0
    for suite in SUITES:
        source = sources.get(suite.source)
        is_wanted = not options.only or suite.package.partition(" ")[0] in options.only
        if not is_wanted or (suite.source and source is None):
            rows += old_row(suite)
            continue
        on_n5 = run(suite, on_n5=True, source=source)
        failed = failures(on_n5)
        again = failed and not suite.is_ours
        plain = run(suite, on_n5=False, source=source, only=failed) if again else {}
        new = failed.keys() - failures(plain).keys()
        n_unexplained += sum(reason(suite.reasons, k, failed[k]) == "Other." for k in new)
        for name in sorted(new):
            sys.stdout.write(f"{name}: {failed[name]}\n")
        rows.append(row(suite, on_n5, plain))
    page = with_tables(PAGE.read_text(encoding="utf-8"), part(rows), MARK)
    PAGE.write_text(page, encoding="utf-8")
    return 1 if n_unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
