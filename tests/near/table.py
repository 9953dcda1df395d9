"""The table of tests: which run the lines of each function, nearest first, and for how long.

A test is nearer to a line if it enters fewer modules. For each function the table keeps the
nearest tests of each of its lines, counted from the line of its ``def``, so that changes elsewhere
do not move them. It is text, and a file of the repository; CI says when it is old.
"""

from __future__ import annotations

import ast
import json
import pickle
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, reduce
from itertools import chain, zip_longest
from operator import or_
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PACKAGE = "n5zarr"
CORE = ("format", "codecs", "zarr_view", "container", "store", "storage", "arrays")
TABLE = REPOSITORY / "tests/data/near.json"
NEAREST = 12  # tests of a line
SECONDS = 60.0  # that the nearest tests of a file take
QUICK = 40.0  # processor seconds of the quick tests' files together
KERNEL = ("n5zarr/fast/_kernel.c", "n5zarr/fast/kernel.py")  # its caller stands for it

type Group = tuple[int, int, list[int]]  # lines from that of the def, and numbers of tests
type Lines = Mapping[str, tuple[float, Mapping[str, int]]]


@dataclass(frozen=True)
class Test:
    """A test function with all its cases."""

    name: str  # as pytest takes it
    seconds: float
    n_modules: int

    @property
    def is_there(self) -> bool:
        """Whether its function, or its class, is in its file still."""
        path, _, name = self.name.partition("::")
        return not path.startswith("tests/") or name.partition("::")[0] in _names_in(path)


@cache
def _names_in(path: str) -> frozenset[str]:
    """Return the names of functions and classes in a file of tests, none if it is gone."""
    text = (REPOSITORY / path).read_text(encoding="utf-8") if (REPOSITORY / path).exists() else ""
    return frozenset(re.findall(r"^(?:async )?(?:def|class) (\w+)", text, re.MULTILINE))


@dataclass(frozen=True)
class Table:
    """What is known of the tests."""

    document: Any  # that `table_of` returns

    @classmethod
    def read(cls) -> Table:
        return cls(json.loads(TABLE.read_text(encoding="utf-8")))

    @cached_property
    def tests(self) -> list[Test]:
        return [
            Test(f"{path}::{name}", seconds, n_modules)
            for path, tests in self.document["tests"].items()
            for name, seconds, n_modules in tests
        ]

    @property
    def seconds(self) -> dict[str, float]:
        found: dict[str, float] = self.document["seconds"]
        return found

    @property
    def quick(self) -> list[str]:
        found: list[str] = self.document["quick"]
        return found

    def near(self, path: str, lines: Iterable[int] | None = None) -> list[Test]:
        """Return the tests that run a file, or some of its lines.

        First the nearest of each line, then the second, and so on; among these the nearest first.
        """
        path = dict([KERNEL]).get(path, path)
        functions = self.document["lines"].get(path, {})
        wanted = None if lines is None else set(lines)
        found: list[Sequence[int]] = []
        for name, first, last in functions_of((REPOSITORY / path).read_text(encoding="utf-8")):
            own, span = functions.get(name, ()), range(first, last + 1)
            of_lines = [
                numbers
                for begin, end, numbers in own
                if wanted is None or not wanted.isdisjoint(range(first + begin, first + end + 1))
            ]
            if wanted is not None and not of_lines and not wanted.isdisjoint(span):
                of_lines = [numbers for *_, numbers in own]  # a new line
            found += of_lines
        if not found:  # lines outside functions: whatever runs the file
            found = [numbers for each in functions.values() for *_, numbers in each]
        ranks: dict[int, int] = {}
        for numbers in found:
            for rank, number in enumerate(numbers):
                ranks[number] = min(rank, ranks.get(number, rank))
        order = {k: (r, self.tests[k].n_modules, self.tests[k].seconds) for k, r in ranks.items()}
        return [self.tests[k] for k in sorted(order, key=order.__getitem__)]

    def nearest(self, lines: Mapping[str, Iterable[int] | None]) -> list[Test]:
        """Return the tests of some lines of files, and then the others of these files."""
        of_lines = (self.near(path, own) for path, own in lines.items())
        rows = chain(zip_longest(*of_lines), zip_longest(*map(self.near, lines)))
        found = dict.fromkeys(each for row in rows for each in row if each is not None)
        return [each for each in found if each.is_there]

    @property
    def age(self) -> float:
        """Return the part of the package's functions that are new since, or gone."""
        known = {(file, name) for file, each in self.document["lines"].items() for name in each}
        known |= {(file, name) for file, names in self.document["unrun"].items() for name in names}
        now = {
            (path.relative_to(REPOSITORY).as_posix(), name)
            for path in (REPOSITORY / PACKAGE).rglob("*.py")
            for name, *_ in functions_of(path.read_text(encoding="utf-8"))
        }
        return len(known ^ now) / len(now)


def within(tests: Iterable[Test], seconds: float = SECONDS) -> tuple[list[Test], list[Test]]:
    """Return the first tests that end in time together, and those that do not fit.

    >>> tests = [Test("a", 1.0, 2), Test("b", 9.0, 3), Test("c", 2.0, 4)]
    >>> [[each.name for each in part] for part in within(tests, 4.0)]
    [['a', 'c'], ['b']]
    """
    kept, left, total = list[Test](), list[Test](), 0.0
    for each in tests:
        fits = total + each.seconds <= seconds
        (kept if fits else left).append(each)
        total += each.seconds if fits else 0.0
    return kept, left


def functions_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each function of a module, and its first and last line.

    >>> list(functions_of("class A:\\n    def f(self):\\n        def g(): ...\\n"))
    [('A.f', 2, 3), ('A.f.g', 3, 3)]
    """

    def walk(node: ast.AST, above: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            name = above
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{above}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    yield name, child.lineno, child.end_lineno or child.lineno
            yield from walk(child, name)

    yield from walk(ast.parse(text), "")


def _git(*arguments: str, check: bool = True) -> list[str]:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=check)
    return done.stdout.splitlines()


def _base() -> str:
    """Return the commit at which the branch began, the last one if it is main."""
    names = ("origin/main", "main")  # of which a clone may lack one
    begins = (_git("merge-base", "HEAD", each, check=False) for each in names)
    return next((found[0] for found in begins if found), "HEAD")


def changed_tests() -> list[str]:
    """Return the files of tests that the branch and the working tree change, or add."""
    names = _git("diff", "--name-only", "--diff-filter=d", _base(), "--", "tests")
    names += _git("ls-files", "--others", "--exclude-standard", "--", "tests")
    return [each for each in names if Path(each).match("test_*.py")]


def changed_lines() -> dict[str, set[int] | None]:
    """Return the lines of each module that the branch and the working tree change; None if new."""
    found: dict[str, set[int] | None] = {}
    path = ""
    for line in _git("diff", _base(), "--unified=0", "--no-color", "--", PACKAGE):
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif line.startswith("@@ ") and path.endswith((".py", ".c")):
            begin, _, n_lines = line.split()[2].lstrip("+").partition(",")
            first = int(begin)
            lines = found.setdefault(path, set())
            if lines is not None:
                lines |= {*range(first, first + max(int(n_lines or 1), 1))}
    new = _git("ls-files", "--others", "--exclude-standard", "--", PACKAGE)
    return found | dict.fromkeys(each for each in new if each.endswith(".py"))


def recorded(folder: Path) -> dict[str, tuple[float, dict[str, int]]]:
    """Join what processes have recorded: seconds and lines of each test."""
    known: dict[str, tuple[float, dict[str, int]]] = {}
    for path in sorted(folder.iterdir()):
        for name, (seconds, lines) in pickle.loads(path.read_bytes()).items():
            before, all_lines = known.setdefault(name, (0.0, {}))
            for file, bits in lines.items():
                own = Path(file).relative_to(REPOSITORY).as_posix()
                all_lines[own] = all_lines.get(own, 0) | bits
            known[name] = before + seconds, all_lines
    return known


def table_of(known: Lines) -> dict[str, Any]:
    tests = sorted(known, key=lambda name: (len(known[name][1]), known[name][0], name))
    lines: dict[str, Any] = {}
    unrun: dict[str, list[str]] = {}
    for path in sorted((REPOSITORY / PACKAGE).rglob("*.py")):
        file = path.relative_to(REPOSITORY).as_posix()
        # the bits of the lines of the file, of each test that enters it, the nearest first
        runs = [(k, known[name][1][file]) for k, name in enumerate(tests) if file in known[name][1]]
        found = {
            name: _grouped(runs, first, last)
            for name, first, last in functions_of(path.read_text(encoding="utf-8"))
        }
        lines[file] = {name: groups for name, groups in found.items() if groups}
        unrun[file] = [name for name, groups in found.items() if not groups]
    unrun = {file: names for file, names in unrun.items() if names}
    return _numbered(known, tests, lines) | {"quick": quick_files(known), "unrun": unrun}


def _grouped(runs: Sequence[tuple[int, int]], first: int, last: int) -> list[Group]:
    """Return the numbers of the nearest tests of a function's lines, equal neighbours joined."""
    groups: list[Group] = []
    for line in range(first, last + 1):
        near = _spread(tuple((k, bits) for k, bits in runs if bits >> line & 1))
        if near and groups and groups[-1][2] == near:
            groups[-1] = groups[-1][0], line - first, near
        elif near:
            groups.append((line - first, line - first, near))
    return groups


@lru_cache(maxsize=16)  # neighbouring lines are run by the same tests
def _spread(runs: tuple[tuple[int, int], ...]) -> list[int]:
    """Choose tests of a line: the nearest, and then those that run most other lines of its file.

    >>> _spread(tuple((k, 0b1) for k in range(20)) + ((20, 0b11),))
    [0, 1, 2, 3, 4, 5, 20, 6, 7, 8, 9, 10]
    """
    chosen, rest = list(runs[: NEAREST // 2]), list(runs[NEAREST // 2 :])
    covered = reduce(or_, (bits for _, bits in chosen), 0)
    while rest and len(chosen) < NEAREST:
        chosen.append(max(rest, key=lambda run: (run[1] & ~covered).bit_count()))
        rest.remove(chosen[-1])
        covered |= chosen[-1][1]
    return [k for k, _ in chosen]


def _numbered(
    known: Lines, tests: list[str], lines: dict[str, dict[str, list[Group]]]
) -> dict[str, Any]:
    """Number the tests that are used by their files, and say their seconds and modules."""
    used = {k for each in lines.values() for groups in each.values() for g in groups for k in g[2]}
    by_file = defaultdict[str, list[int]](list)
    for number in sorted(used):
        by_file[tests[number].partition("::")[0]].append(number)
    new = {old: k for k, old in enumerate(n for path in sorted(by_file) for n in by_file[path])}
    named = {
        path: [
            [tests[n].partition("::")[2], round(known[tests[n]][0], 2), len(known[tests[n]][1])]
            for n in by_file[path]
        ]
        for path in sorted(by_file)
    }
    numbered = {
        file: {
            name: [[a, b, [new[n] for n in near]] for a, b, near in groups]
            for name, groups in functions.items()
        }
        for file, functions in lines.items()
    }
    return {"tests": named, "seconds": seconds_of(known), "lines": numbered}


def seconds_of(known: Lines) -> dict[str, float]:
    seconds = defaultdict[str, float](float)
    for name, (taken, _) in known.items():
        seconds[name.partition("::")[0]] += taken
    return {path: round(taken, 1) for path, taken in sorted(seconds.items())}


def quick_files(known: Lines) -> list[str]:
    """Choose files whose tests run most lines of the core in little time, the best first."""
    files: dict[str, tuple[float, dict[str, int]]] = {}
    for name, (seconds, lines) in known.items():
        before, own = files.setdefault(name.partition("::")[0], (0.5, {}))  # to collect a file
        for file, bits in lines.items():
            if file.split("/")[1] in CORE:
                own[file] = own.get(file, 0) | bits
        files[name.partition("::")[0]] = before + seconds, own
    chosen, total, covered = list[str](), 0.0, dict[str, int]()

    def gain(path: str) -> float:
        seconds, lines = files[path]
        new = sum((bits & ~covered.get(file, 0)).bit_count() for file, bits in lines.items())
        return new / seconds

    while files:
        seconds, lines = files.pop(best := max(files, key=gain))
        if total + seconds <= QUICK:
            chosen.append(best)
            total += seconds
            covered |= {file: bits | covered.get(file, 0) for file, bits in lines.items()}
    return chosen
