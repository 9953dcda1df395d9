"""Check the result of a hostile input: a value, or an ``N5Error`` with the place."""

from __future__ import annotations

import lzma
import warnings
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from n5zarr import N5Error, N5Warning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["OF_ZARR", "Case", "judged", "said"]

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
