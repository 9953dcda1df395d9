"""``n5zarr.clean_leftovers``: remove leftovers of killed writers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Remove, RemoveTree, Stamp, Steps
from n5zarr.tools.validate.files import open_to_repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from n5zarr.storage.place import Backend, Location
    from n5zarr.tools.validate.findings import Finding

__all__ = ["Cleaned", "clean_leftovers"]

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """What :func:`n5zarr.clean_leftovers` did.

    Parameters
    ----------
    removed : tuple of str
        The files that are gone, below the root of the container.
    kept : mapping of str to str
        Why others were kept, by file.
    """

    removed: tuple[str, ...]
    kept: Mapping[str, str]


def clean_leftovers(
    store: Location,
    findings: Iterable[Finding],
    *,
    min_age: float = _HOUR,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> Cleaned:
    """Remove leftovers that a check has found: unfinished files, and lock files of tensorstore.

    No program reads these files. Recently written files are kept, because a writer may be about to
    rename them. Empty blocks are not leftovers: :func:`n5zarr.quarantine_blocks` moves them.

    Parameters
    ----------
    store : path, URL or zarr store
        The container, or a location in it.
    findings : iterable of Finding
        Findings of :func:`n5zarr.validate`. Other kinds are ignored.
    min_age : float, optional
        Seconds since the last change of a local file; younger files are kept. On servers no writer
        makes such files, so they are copies, and are removed.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    N5UnsupportedError
        The container can only be read (``kind="read-only"``).

    Examples
    --------
    >>> import n5zarr
    >>> result = n5zarr.validate(n5zarr.sample_path())
    >>> n5zarr.clean_leftovers(n5zarr.sample_path(), result.findings).removed
    ()
    """
    place = place_of(store, storage_options, backend)
    opened, _ = open_to_repair(place, "")
    removed: list[str] = []
    kept: dict[str, str] = {}
    for each in findings:
        if each.repair != "clean" or each.file is None:
            continue
        age = _age(opened.ask(_stamp(each.file)))
        if age is not None and age < min_age:
            kept[each.file] = f"written {age:.0f} s ago: a program may be writing it"
        else:
            opened.ask(_remove(each.file))
            removed.append(each.file)
    return Cleaned(removed=tuple(removed), kept=kept)


def _age(stamp: object) -> float | None:
    """Return the seconds since a local file was written; None if unknown."""
    if not isinstance(stamp, tuple):
        return None
    return max(0.0, time.time() - int(stamp[1]) / 1e9)


def _stamp(key: str) -> Steps[object]:
    (answer,) = yield [Stamp(key)]
    return answer


def _remove(key: str) -> Steps[None]:
    yield [Remove(key), RemoveTree(key)]  # a file, or a directory that was being removed
