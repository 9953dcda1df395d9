"""Describe the arrays of a conversion for its report, and refuse those that lack blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import zarr

from n5zarr.container.options import require
from n5zarr.errors import N5Error
from n5zarr.tools.evidence.sides import Side, counted, described, hash_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from n5zarr.images.source import ArraySource, SourceTree
    from n5zarr.tools.convert.copies import ArrayCopy
    from n5zarr.tools.jobs.run import RunOptions

__all__ = ["add_results", "check_complete", "describe_sources"]


def check_complete(found: SourceTree) -> None:
    """Raise if an array lacks blocks, chunks or shards.

    Raises
    ------
    N5Error
        Arrays lack some; the message names them (``kind="differs"``).
    N5UnrepresentableError
        The storage does not list what it holds (``kind="option"``).
    """
    lost = []
    for path, source in found.arrays.items():
        n_blocks, n_stored, _ = counted(Side.of(source))
        if n_blocks is not None and n_stored is not None and n_stored < n_blocks:
            lost.append(f"/{path} lacks {n_blocks - n_stored} of {n_blocks}")
        is_known = n_blocks is not None or not isinstance(source.values, zarr.Array)
        message = "expect_complete (--expect-complete): expected storage that lists blocks"
        require(is_known, f"{message}, got one that does not", source.name)
    if lost:
        raise N5Error(
            f"expected all blocks (expect_complete, --expect-complete): {'; '.join(lost)}; missing "
            "blocks read as the fill value, and n5zarr validate --expect-complete names some",
            kind="differs",
            where=found.name,
        )


def describe_sources(
    entry: dict[str, Any],
    copies: Mapping[str, ArrayCopy],
    found: tuple[SourceTree, SourceTree],
    folders: Iterable[str],
) -> None:
    """Add the arrays to a report, and those that are not copied.

    Parameters
    ----------
    entry : dict
        What the report says of the run.
    copies : mapping
        The copy of each array by path.
    found : (SourceTree, SourceTree)
        What there is, and what the user selects.
    folders : iterable of str
        The paths of nodes whose files are copied unchanged.
    """
    for path, copy in copies.items():
        array, of_source = copy.target.array, {"source": Side.of(copy.source)}
        layout = {"way": copy.way, "chunks": array.chunks, "shards": array.shards}
        entry["datasets"].append({**described(path, copy.source.shape, of_source), **layout})
    names = {name for copy in copies.values() for name in _names(copy.source)}
    everything, selected = found
    reasons = {
        path: "no part of an image" if path in selected.arrays else "not selected"
        for path, source in everything.arrays.items()
        if source.name not in names
    }
    objects = "no array: blocks of objects are copied byte for byte, and not hashed"
    reasons |= dict.fromkeys(folders, objects)
    entry["skipped"] = [{"path": path, "reason": reason} for path, reason in reasons.items()]


def add_results(
    entry: dict[str, Any],
    copies: Mapping[str, ArrayCopy],
    options: RunOptions,
    max_memory: int,
    *,
    verified: bool,
) -> None:
    """Add what is written to a report, and hashes: of the source, and of a verified copy."""
    pairs = []
    for copy, dataset in zip(copies.values(), entry["datasets"], strict=True):
        source, target = Side.of(copy.source), copy.target
        array, blocks = target.readable, getattr(target, "blocks", None)
        written = Side(array, array.dtype, target.unit, blocks, target, source.is_labels)
        dataset["destination"] = written.described()
        sides = {"source": source, **({"destination": written} if verified else {})}
        pairs.append((dataset, sides))
    if options.division.part is None:
        hash_each(pairs, options, max_memory)


def _names(source: ArraySource) -> set[str]:
    """Return the names of an array, and of those that it is put together from."""
    return {source.name, *(name for part in source.parts if part for name in _names(part))}
