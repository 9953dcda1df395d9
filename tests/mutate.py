"""Plant faults at random in modules, and list those that their tests do not notice.

``uv run python -m tests.mutate --package arrays --seed 7 -n 8`` changes one place at a time in a
copy of the repository: a comparison, a condition, the order of arguments, a call, a constant, or
what a function returns. It runs the tests that the table of tests (:mod:`tests.near.table`) names
for the line, nearest first, or what ``--tests`` names, until one fails.
``--package arrays/kernel.py`` plants in one module; a seed plants the same faults again. A fault
that survives is a missing test, or changes nothing that matters, such as speed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from tests.near.table import Table, Test, within
from tests.structure import PACKAGE, REPOSITORY

TURNED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",),
    ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
# log or warn, or only tell the type checker something
_QUIET = re.compile(
    r"(_log|self\._tell|_tell|tell|warnings|cast|TypeVar|super)\b(?!\.\w*(get|set))"
)
_COPIED = ("docs", "n5zarr", "tests", "pyproject.toml", "README.md")


@dataclass(frozen=True)
class Fault:
    """A piece of a module's text and what replaces it."""

    path: Path
    line: int
    function: str
    begin: int  # in bytes of the module
    before: str
    after: str

    def planted(self, text: bytes) -> bytes:
        """Return the module's text with the fault; its lines keep their numbers."""
        n_lines = self.before.count("\n") - self.after.count("\n")
        after = self.after.replace("\n", " ", -min(n_lines, 0)).encode()
        end = self.begin + len(self.before.encode())
        rest = text[end:].split(b"\n", 1)
        return text[: self.begin] + after + rest[0] + b"\n" * (n_lines + 1) + b"".join(rest[1:])

    def __str__(self) -> str:
        change = " ".join(f"{self.before} -> {self.after}".split())
        return f"{self.path}:{self.line} {self.function}: {change}"


def faults_in(path: Path, text: bytes) -> list[Fault]:
    starts = [0]
    for row in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    found = []
    for node, function, after in _changes(ast.parse(text), ""):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before = text[begin:end].decode()
        found.append(Fault(path, node.lineno, function or "module", begin, before, after))
    return found


type Change = tuple[ast.expr | ast.stmt, str, str]


def _changes(node: ast.AST, function: str) -> Iterator[Change]:  # noqa: C901
    """Yield what can be replaced in a tree, the function that it is in, and by what."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.TypeAlias() | ast.Import() | ast.ImportFrom():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Call() if _QUIET.match(ast.unparse(node)):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            function = f"{function}.{node.name}".lstrip(".")
            inner: list[ast.AST] = [*node.body]
            if not isinstance(node, ast.ClassDef):
                arguments = node.args
                inner += [each for each in (*arguments.defaults, *arguments.kw_defaults) if each]
        case ast.AnnAssign(value=value):
            inner = [] if value is None else [value]
        case ast.arg():
            return
        case _:
            inner = [*ast.iter_child_nodes(node)]
    for changed, after in _changes_of(node):
        yield changed, function, after
    for each in inner:
        yield from _changes(each, function)


def _changes_of(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:  # noqa: C901, PLR0912
    match node:
        case ast.Compare(ops=[kind]):
            sides = ast.unparse(node.left), ast.unparse(node.comparators[0])
            for other in TURNED[type(kind)]:
                yield node, f"({sides[0]} {other} {sides[1]})"
        case ast.BoolOp(op=kind, values=values):
            word = " or " if isinstance(kind, ast.And) else " and "
            yield node, f"({word.join(f'({ast.unparse(each)})' for each in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield node, f"({number + 1})"
            yield node, f"({number - 1})"
        case ast.Call(func=ast.Name(id="max" | "min"), args=[_, _, *_]):
            pass  # their order does not matter
        case ast.Call(args=[first, second, *rest]) if not isinstance(first, ast.Starred):
            if not isinstance(second, ast.Starred) and ast.dump(first) != ast.dump(second):
                swapped = ast.Call(node.func, [second, first, *rest], node.keywords)
                yield node, ast.unparse(swapped)
        case ast.Call(args=[ast.expr() as only], keywords=[]) if not isinstance(only, ast.Starred):
            if not isinstance(only, ast.GeneratorExp):
                yield node, f"({ast.unparse(only)})"
        case _:
            pass
    match node:
        case ast.Expr(value=ast.Call() | ast.Await() as value):
            call = value.value if isinstance(value, ast.Await) else value
            if not _QUIET.match(ast.unparse(call)):
                yield node, "pass"
        case ast.Return(value=ast.Tuple(elts=[first, second, *rest])) if ast.dump(
            first
        ) != ast.dump(second):
            yield node, f"return {ast.unparse(ast.Tuple([second, first, *rest], ast.Load()))}"
        case ast.Return(value=ast.Constant(value=bool(value))):
            yield node, f"return {not value}"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield node, "return None"
        case ast.If(test=ast.expr() as test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield test, f"(not ({ast.unparse(test)}))"
        case _:
            pass


def copied(folder: Path) -> Path:
    """Copy what tests need of the repository, with the compiled kernel."""
    folder.mkdir()
    for name in _COPIED:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        copy(REPOSITORY / name, folder / name)
    return folder


_times = count(1)  # seconds; Python takes a compiled file of the same time and size


def _write(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    os.utime(path, (0, next(_times)))


def ending_with(fault: Fault | None, folder: Path, tests: list[str], seconds: float) -> str:
    """Run tests in a copy of the repository; return how they ended."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--tb=no", *tests]
    # the package of the copy comes before the installed one
    compiled = str(folder.with_name("compiled"))
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONPYCACHEPREFIX": compiled}
    text = b"" if fault is None else (REPOSITORY / fault.path).read_bytes()
    if fault is not None:
        _write(folder / fault.path, fault.planted(text))
    try:
        with subprocess.Popen(
            command, cwd=folder, env=environment, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timed out"
    finally:
        if fault is not None:
            _write(folder / fault.path, text)
    if process.returncode == 0:
        return "survived"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return f"found by {failed[1] if failed else output[-200:]}"


def main(given: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--package", required=True, help="a package of n5zarr, or a module in one")
    parser.add_argument("--seed", type=int, default=0, help="chooses the faults")
    parser.add_argument("-n", type=int, default=8, help="number of faults")
    parser.add_argument("-j", type=int, default=2, help="faults at the same time")
    parser.add_argument("--tests", nargs="+", help="by default the nearest of each line")
    parser.add_argument("--seconds", type=float, default=120, help="that the tests of one may take")
    options = parser.parse_args(given)
    table = Table.read()
    place = REPOSITORY / PACKAGE / options.package
    modules = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    each = [module.relative_to(REPOSITORY) for module in modules]
    known = [fault for path in each for fault in faults_in(path, (REPOSITORY / path).read_bytes())]
    chosen = random.Random(options.seed).sample(known, min(options.n, len(known)))  # noqa: S311
    folders: SimpleQueue[Path] = SimpleQueue()
    counts = Counter[str]()

    def near(fault: Fault | None) -> list[Test]:
        lines = defaultdict[str, list[int]](list)
        for each in chosen if fault is None else [fault]:
            lines[each.path.as_posix()].append(each.line)
        return table.nearest(lines)

    def run(fault: Fault | None) -> str:
        folder, begin = folders.get(), time.monotonic()
        tests = options.tests or [each.name for each in within(near(fault))[0]]
        try:
            ended = ending_with(fault, folder, tests, options.seconds) if tests else "survived"
        finally:
            folders.put(folder)
        if fault is not None:
            print(f"{fault}\n    {ended}, {time.monotonic() - begin:.1f} s", flush=True)  # noqa: T201
            counts[ended.partition(" by ")[0]] += 1
        return ended

    with tempfile.TemporaryDirectory() as top, ThreadPoolExecutor(options.j) as pool:
        for k in range(options.j):
            folders.put(copied(Path(top, str(k))))
        if (ended := run(None)) != "survived":
            sys.exit(f"without a fault, the tests fail: {ended}")
        list(pool.map(run, chosen))
    totals = ", ".join(f"{counts[word]} {word}" for word in ("found", "survived", "timed out"))
    print(f"{len(chosen)} of {len(known)} faults: {totals}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
