"""Describe the arrays of a conversion for its report, and refuse those that lack blocks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import zarr

from n5zarr.container.options import require
from n5zarr.container.walk import PathPatterns
from n5zarr.errors import N5Error
from n5zarr.format.path import join
from n5zarr.rooms import needed
from n5zarr.tools.convert.places import open_source
from n5zarr.tools.evidence.report import entry_of_run
from n5zarr.tools.evidence.sides import add_arrays, counted
from n5zarr.tools.jobs.nodes import for_reading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from n5zarr.images.source import ArraySource, SourceTree
    from n5zarr.storage.place import Place
    from n5zarr.tools.convert.copies import ArrayCopy
    from n5zarr.tools.jobs.run import RunOptions

_NAMED = 3  # blocks without a dataset


def check_complete(found: SourceTree) -> None:
    """Raise if an array lacks blocks, chunks or shards, or its document.

    Raises
    ------
    N5Error
        Arrays lack some, there are none, or a group holds blocks; the message names them
        (``kind="differs"``).
    N5UnrepresentableError
        The storage does not list what it holds (``kind="option"``).
    """
    lost = [] if found.arrays else ["there are no arrays"]
    lost += islice(_orphans(found), _NAMED)
    for path, source in found.arrays.items():
        n_blocks, n_stored = counted(source)
        message = "expect_complete (--expect-complete): expected storage that lists blocks, got"
        is_known = n_blocks is not None or not isinstance(source.values, zarr.Array)
        require(is_known, f"{message} one that does not", source.name)
        if n_missing := (n_blocks or 0) - (n_stored or 0):
            lost.append(f"/{path} lacks {n_missing} of {n_blocks}")
    if lost:
        raise N5Error(
            f"expected all blocks (expect_complete, --expect-complete): {'; '.join(lost)}; missing "
            "blocks read as the fill value, and n5zarr validate --expect-complete names some",
            kind="differs",
            where=found.name,
        )


def _orphans(found: SourceTree) -> Iterator[str]:
    """Name a block in each group of N5 that holds some: the document of a dataset is lost."""
    if found.container is not None:
        check_group_files = needed("step", "check of files")
        for path in found.groups:
            files = check_group_files(found.container.run, join(found.path, path))
            orphan = next((each.file for each in files if each.kind == "orphan-block"), None)
            if orphan is not None:
                yield f"/{orphan} is a block whose dataset has no document"


def describe_sources(
    copies: Mapping[str, ArrayCopy], others: Collection[object], options: RunOptions, place: Place
) -> None:
    """Add the arrays of a source to the report, if there is one, and those that are not copied."""
    entry = entry_of_run()
    if entry is None:
        return
    add_arrays({path: {"source": copy.source} for path, copy in copies.items()}, options)
    names = {name for copy in copies.values() for name in _names(copy.source)}
    with suppress(N5Error):  # what is not selected may be damaged
        for path, source in open_source(place, 3, PathPatterns()).arrays.items():
            if source.name not in names:
                entry["skipped"].append({"path": path, "reason": "not selected"})
    if others:
        reason = "blocks of objects are no array: copied byte for byte, and not hashed"
        entry["skipped"].append({"path": None, "reason": reason})


def describe_copies(
    copies: Mapping[str, ArrayCopy], options: RunOptions, max_memory: int, *, verified: bool
) -> None:
    """Add what is written to the report, and hashes: of the source, and of a verified copy."""
    entry = entry_of_run()
    if entry is None:
        return
    entry["result"] = {"verified": verified}
    both = {p: {"source": c.source, "destination": _written(c)} for p, c in copies.items()}
    n_hashed = 0 if options.division.part else 1 + verified
    hashed = ("source", "destination")[:n_hashed]
    add_arrays(both, options, hashed=hashed, max_memory=max_memory)


def _written(copy: ArrayCopy) -> ArraySource:
    values, chunks = for_reading(copy.target.encoded), copy.target.unit
    return replace(copy.source, name="", values=values, dtype=values.dtype, chunks=chunks)


def _names(source: ArraySource) -> set[str]:
    """Return the names of an array, and of those that it is put together from."""
    return {source.name, *(name for part in source.parts if part for name in _names(part))}
