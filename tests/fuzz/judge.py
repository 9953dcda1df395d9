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
    """One input.

    Parameters
    ----------
    name : str
        What it takes the place of.
    data : bytes
        The bytes.
    target : tuple
        What the harness needs beside them.
    """

    name: str
    data: bytes
    target: Any


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

    Parameters
    ----------
    name : str
        The way that was taken.
    found : object
        What :func:`said` gave.
    where : sequence of str
        What the message of an ``N5Error`` has to name.
    others : tuple of type, optional
        Other errors that are right.
    """
    if isinstance(found, N5Error):
        missing = [part for part in where if part not in str(found)]
        if missing and not others:
            return [f"{name}: the message does not name {missing}: {found}"]
    elif isinstance(found, Exception) and not isinstance(found, others):
        return [f"{name}: {type(found).__name__}: {found}"]
    return []
