"""Check the result of a hostile input: a value, or an ``N5Error`` with the place.

Inputs that once failed, or that reach more code, are kept in ``tests/data/fuzz``: a file has a line
of JSON, which says what the input is, and then its bytes.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from n5zarr import N5Error, N5Warning

__all__ = ["CORPUS", "OF_ZARR", "Case", "Kept", "judged", "keep", "kept", "said"]

OF_ZARR: tuple[type[Exception], ...] = (ValueError, OSError, EOFError, RuntimeError)
"""What zarr's own codecs raise, docs/errors.md, in zarr's own pipeline."""
OF_ZARR += (zlib.error, lzma.LZMAError)


class Case(NamedTuple):
    """One input."""

    name: str  # what it takes the place of
    data: bytes  # the bytes
    target: Any  # what the harness needs beside them


def said(function: Callable[..., object], *args: object) -> object:
    """Return a function's value, or its error; ``N5Warning`` is no error, nor is numpy's."""
    caught = _Caught()
    with warnings.catch_warnings(), caught:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", N5Warning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(*args)
    return caught.error


class _Caught:
    """A wrapper of an error, for a later check."""

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is not None:
            error.__cause__ = error.__context__ = None  # which keep memory
            self.error = error.with_traceback(None)
        return isinstance(error, Exception)


def judged(
    name: str, found: object, where: Sequence[str], others: tuple[type[Exception], ...] = ()
) -> list[str]:
    """Return the problems of an error.

    The message of an ``N5Error`` has to name what ``where`` has; ``others`` are right, too.
    """
    if isinstance(found, N5Error):
        missing = [part for part in where if part not in str(found)]
        if missing and not others:
            return [f"{name}: the message does not name {missing}: {found}"]
    elif isinstance(found, Exception) and not isinstance(found, others):
        return [f"{name}: {type(found).__name__}: {found}"]
    return []


# ---------------------------------------------------------------------- inputs that are kept

CORPUS = Path(__file__).parents[1] / "data" / "fuzz"
LARGEST = 2**14  # bytes of an input that is kept


class Kept(NamedTuple):
    """An input of the corpus."""

    name: str  # what it takes the place of
    way: int  # number that chooses the way in which it is tried
    why: str  # why it was kept
    data: bytes  # the input


def kept(kind: str) -> dict[str, Kept]:
    """Read the kept inputs of a kind, by the names of their files."""
    found = {}
    for file in sorted((CORPUS / kind).glob("*.bin")):
        head, _, data = file.read_bytes().partition(b"\n")
        found[file.stem] = Kept(**json.loads(head), data=data)
    return found


def keep(kind: str, case: Case, way: int, why: str) -> Path | None:
    """Write an input, if it is not too large."""
    if len(case.data) > LARGEST:
        return None
    stem = hashlib.sha256(case.name.encode() + case.data).hexdigest()[:12]
    file = CORPUS / kind / f"{stem}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"name": case.name, "way": way, "why": why})
    file.write_bytes(head.encode() + b"\n" + case.data)
    return file
