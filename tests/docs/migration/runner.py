"""Run calls of one library, each in a folder of its own, and keep their results.

``python runner.py TASKS RESULTS`` runs where a library is installed that cannot be installed beside
n5zarr, too: only numpy is imported.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import pickle
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

VALUES = np.arange(5 * 6 * 7, dtype="u2").reshape(5, 6, 7)


class Task(NamedTuple):
    """Lines to run in a folder, after others that prepare them."""

    folder: str
    before: str
    code: str


class Outcome:
    """The result of a task: a value, or the names of its error's class and the bases of that."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: tuple[str, ...] = ()
        self.message = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self.error = tuple(base.__name__ for base in type(error).__mro__)
        self.message = str(error)
        return True


def plain(value: Any) -> Any:
    """Convert a value for the comparison, without properties that only one library has."""
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic):
        return as_array(np.asarray(value))
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, np.dtype | type):
        return np.dtype(value).newbyteorder("=").name
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        return as_array(np.asarray(value[...]))
    return parts_of(value)


def parts_of(value: Any) -> Any:
    """Convert a group, a mapping or a list for the comparison; None for stores and such."""
    if hasattr(type(value), "create_group"):
        return sorted(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Iterable):
        return [plain(part) for part in value]
    return None


def as_array(array: np.ndarray) -> Any:
    native = array.astype(array.dtype.newbyteorder("="))
    return native.item() if not native.ndim else (native.dtype.name, native.shape, native.tolist())


def run(task: Task) -> Outcome:
    """Run the lines of a task; the value is that of the last one, if it is an expression."""
    outcome = Outcome()
    os.chdir(task.folder)
    names: dict[str, Any] = {"np": np, "values": VALUES.copy(), "Path": Path}
    *first, last = ast.parse(task.code).body
    is_value = isinstance(last, ast.Expr)
    value = last.value if isinstance(last, ast.Expr) else ast.Constant(None)
    lines = ast.Module(first if is_value else [*first, last], [])
    with outcome, contextlib.redirect_stdout(io.StringIO()):
        exec(task.before, names)  # noqa: S102 - our own rows
        exec(compile(lines, "row", "exec"), names)  # noqa: S102
        last_line = compile(ast.Expression(ast.fix_missing_locations(value)), "row", "eval")
        outcome.value = plain(eval(last_line, names))  # noqa: S307
    return outcome


def main(tasks: str, results: str) -> None:
    found = [run(Task(*task)) for task in pickle.loads(Path(tasks).read_bytes())]
    Path(results).write_bytes(pickle.dumps([(o.value, o.error, o.message) for o in found]))


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
