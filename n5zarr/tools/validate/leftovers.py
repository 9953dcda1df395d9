"""``n5zarr.clean_leftovers``: remove leftovers of killed writers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Remove, RemoveTree, Stamp, request_each
from n5zarr.tools.validate.files import open_to_repair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from n5zarr.storage.place import Backend, Location
    from n5zarr.tools.validate.findings import Finding

__all__ = ["Cleanup", "clean_leftovers"]

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cleanup:
    """The result of :func:`n5zarr.clean_leftovers`.

    Parameters
    ----------
    removed : tuple of str
        The removed files, below the root of the container.
    kept : mapping of str to str
        Reasons why other files were kept, by file.
    """

    removed: tuple[str, ...]
    kept: Mapping[str, str]


def clean_leftovers(
    location: Location,
    findings: Iterable[Finding],
    *,
    min_age: float = _HOUR,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> Cleanup:
    """Remove leftovers that a check has found: unfinished files, and lock files of tensorstore.

    No program reads these files. Recently written files are kept, because a writer may be about to
    rename them. Empty blocks are not leftovers: :func:`n5zarr.quarantine_blocks` moves them.

    Parameters
    ----------
    location : path, URL or zarr store
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
    place = place_of(location, storage_options, backend)
    opened, _ = open_to_repair(place, "")
    removed: list[str] = []
    kept: dict[str, str] = {}
    for each in findings:
        if each.repair != "clean" or each.file is None:
            continue
        (stamp,) = opened.run(request_each([Stamp(each.file)]))  # of local files with their time
        age = max(0.0, time.time() - int(stamp[1]) / 1e9) if isinstance(stamp, tuple) else min_age
        if age < min_age:
            kept[each.file] = f"written {age:.0f} s ago: a program may be writing it"
        else:
            # a file, or a directory that was being removed
            opened.run(request_each([Remove(each.file), RemoveTree(each.file)]))
            removed.append(each.file)
    return Cleanup(removed=tuple(removed), kept=kept)
