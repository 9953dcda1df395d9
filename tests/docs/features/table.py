"""Run the features in each library, and make the table of the README."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.docs.features.libraries import LIBRARIES
from tests.docs.features.rows import DATA, ERROR, FEATURES, SHOWN
from tests.docs.migration.compare import interpreter, outcomes
from tests.docs.migration.pages import with_tables
from tests.docs.migration.runner import Task
from tests.remote.servers import static

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.docs.features.libraries import Library
    from tests.docs.features.rows import Case, Feature

__all__ = ["README", "Found", "Results", "cell", "measure", "reasons", "with_table"]

README = Path(__file__).parents[3] / "README.md"
MARK = "<!-- made by `python -m tests.docs.features` -->"
OURS = {"FixtureError", "NameError", "SyntaxError"}  # errors of the lines, not of a library
SILENT = "†"


class Found(NamedTuple):
    """The result of a case: a value, or an error."""

    value: Any
    error: tuple[str, ...]
    message: str


Results = dict[tuple[str, str, str], Found]  # by feature, case and library


def processes() -> list[list[Library]]:
    """Group the libraries by the process they run in; n5zarr changes a default of zarr."""
    groups: dict[tuple[object, ...], list[Library]] = {}
    for library in LIBRARIES:
        groups.setdefault((library.name == "n5zarr", library.packages), []).append(library)
    return list(groups.values())


def measure(folder: Path) -> Results:
    found: Results = {}
    java = DATA / "java"
    with static(java) as url:
        places = (
            f"java, java4 = Path({str(java)!r}), Path({str(DATA / 'java4')!r})\nurl = {url!r}\n"
        )
        for n, libraries in enumerate(processes()):
            cases = [(library, f, c) for library in libraries for f in FEATURES for c in f.cases]
            tasks = [
                Task(str(folder / f"{n}/{i}"), library.before + places, case.code)
                for i, (library, _, case) in enumerate(cases)
            ]
            python = interpreter(libraries[0].packages, folder / f"with-{n}")
            results = outcomes(python, tasks, folder / f"run-{n}")
            for (library, feature, case), result in zip(cases, results, strict=True):
                found[feature.title, case.name, library.name] = Found(*result)
    return found


def as_lists(value: Any) -> Any:
    return [as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def verdict(case: Case, found: Found) -> str:
    """Return ``yes``, ``no``, or ``†``: another result than the right one, without an error."""
    assert not OURS & set(found.error), (case, found)
    if case.expected is ERROR:
        return "yes" if found.error else SILENT
    if found.error:
        return "no"
    is_right = as_lists(found.value) == as_lists(case.expected)
    return "yes" if is_right else SILENT


def cell(feature: Feature, results: Sequence[Found]) -> str:
    """Return whether a library has a feature, or which cases of it are missing, as a cell."""
    if feature.cases[0].expected is SHOWN:
        return str(results[0].value)
    verdicts = [verdict(case, found) for case, found in zip(feature.cases, results, strict=True)]
    if len(set(verdicts)) == 1:
        return verdicts[0].replace(SILENT, f"no{SILENT}")
    names = [case.name for case in feature.cases]
    missing = [
        f"{name}{SILENT}" if said == SILENT else name
        for name, said in zip(names, verdicts, strict=True)
        if said != "yes"
    ]
    return f"not {', '.join(missing)}" if "yes" in verdicts else "no"


def of(results: Results, feature: Feature, library: Library) -> list[Found]:
    return [results[feature.title, case.name, library.name] for case in feature.cases]


def reasons(results: Results) -> list[str]:
    """Return, for each case that is not right, the result of a library."""
    return [
        f"{library.name}: {feature.title}: {case.name}: {found.error[:1] or found.value}"
        f" {found.message}"[:300]
        for library in LIBRARIES
        for feature in FEATURES
        for case, found in zip(feature.cases, of(results, feature, library), strict=True)
        if case.expected is not SHOWN and verdict(case, found) != "yes"
    ]


def with_table(page: str, results: Results) -> str:
    rows = [["", *(library.name for library in LIBRARIES)], ["---"] * (len(LIBRARIES) + 1)]
    rows += [
        [feature.title, *(cell(feature, of(results, feature, library)) for library in LIBRARIES)]
        for feature in FEATURES
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows).replace("|  |", "| |")
    return with_tables(page, f"{table}\nRun with {versions()}.\n", MARK)


def versions() -> str:
    """Return the other libraries with their versions."""
    _, *others = LIBRARIES
    own = {each.name: f"{each.name} {version(each.distribution)}" for each in others}
    pinned = {each.name: each.packages[0].replace("==", " ") for each in others if each.packages}
    return ", ".join((own | pinned).values())
