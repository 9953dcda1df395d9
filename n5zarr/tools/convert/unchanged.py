"""Keep what an interrupted conversion has written, as far as its source is unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.storage.files import is_unfinished
from n5zarr.tools.jobs.parts import Owned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.tools.convert.files import Copy
    from n5zarr.tools.convert.target import Destination
    from n5zarr.tools.jobs.ledger import Piece
    from n5zarr.tools.jobs.parts import Part

__all__ = ["check_made", "only_unchanged"]

_DOCUMENTS = {ATTRIBUTES_JSON, *ZARR_DOCUMENTS, ".zattrs"}


def only_unchanged(copies: Sequence[Copy], owned: Owned, target: Destination) -> Owned:
    """Return which written keys stay; remove the others, which are written anew or no more."""
    is_stale = _is_chunk if owned.part is None and _know_files(copies) else None
    return owned.unchanged(_pieces(copies, owned.part), target.storage, is_stale)


def check_made(copies: Sequence[Copy], owned: Owned, target: Destination) -> None:
    """Check that parts have copied everything as the source has it now; remove what it lacks.

    Raises
    ------
    N5Error
        The source has changed since (``kind="changed"``).
    """
    if any(copy.knows_files for copy in copies):
        is_stale = _is_chunk if _know_files(copies) else None
        owned.check_made(_pieces(copies, None), target.store, target.path, is_stale)


def _know_files(copies: Sequence[Copy]) -> bool:
    return all(copy.knows_files for copy in copies)


def _pieces(copies: Sequence[Copy], part: Part | None) -> Iterator[Piece]:
    for copy in copies:
        for task in copy.tasks(Owned(part=part)) if copy.knows_files else ():
            yield from copy.pieces(task.part)


def _is_chunk(key: str) -> bool:
    """Whether a key that an interrupted run has written is that of a chunk."""
    name = key.rpartition("/")[2]
    return not (name in _DOCUMENTS or is_unfinished(name) or name.startswith("n5zarr-"))
