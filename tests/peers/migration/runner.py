"""Run calls of one library, each in a folder of its own, and keep what they give.

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
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

VALUES = np.arange(5 * 6 * 7, dtype="u2").reshape(5, 6, 7)


class Task(NamedTuple):
    """Lines to run in a folder, after others that prepare them."""

    folder: str
    before: str
    code: str


class Outcome:
    """What a task gives: a value, or the names of the error's class and of those it derives from."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: tuple[str, ...] = ()
        self.message = ""

    def __enter__(self) -> Outcome:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self.error = tuple(base.__name__ for base in kind.__mro__)
        self.message = str(error)
        return True


def plain(value: Any) -> Any:
    """Make what is compared of a value: of no library, and without what only one of them has."""
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic):
        return as_array(np.asarray(value))
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, np.dtype | type):
        return np.dtype(value).newbyteorder("=").name
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        return as_array(np.asarray(value[...]))
    if hasattr(kind, "group_keys") or hasattr(kind, "create_group"):
        return sorted(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Iterable):
        parts = [plain(part) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set) else parts
    return None  # stores and such


def as_array(array: np.ndarray) -> Any:
    native = array.astype(array.dtype.newbyteorder("="))
    return native.item() if not native.ndim else (native.dtype.name, native.shape, native.tolist())


def run(task: Task) -> Outcome:
    """Run the lines of a task; the value is that of the last one, if it is an expression."""
    outcome = Outcome()
    os.chdir(task.folder)
    names: dict[str, Any] = {"np": np, "values": VALUES.copy(), "Path": Path}
    *first, last = ast.parse(task.code).body
    with outcome, contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(task.before, names)
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(first, []), "row", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "row", "eval"), names)
            outcome.value = plain(value)
        else:
            exec(compile(ast.parse(task.code), "row", "exec"), names)
        outcome.value = printed.getvalue() or outcome.value
    return outcome


def main(tasks: str, results: str) -> None:
    warnings.simplefilter("ignore")  # old libraries warn of their own end
    found = [run(Task(*task)) for task in pickle.loads(Path(tasks).read_bytes())]
    Path(results).write_bytes(pickle.dumps([(o.value, o.error, o.message) for o in found]))


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
