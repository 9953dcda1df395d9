"""Keep what an interrupted conversion has written, as far as its source is unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.foreign import ZARR_DOCUMENTS
from n5zarr.storage.files import is_unfinished
from n5zarr.storage.requests import Remove, request_each
from n5zarr.tools.jobs.incomplete import PARTS, read_incomplete
from n5zarr.tools.jobs.parts import Owned, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.tools.convert.files import Copy
    from n5zarr.tools.convert.target import Destination
    from n5zarr.tools.jobs.ledger import Piece

__all__ = ["check_made", "only_unchanged"]

_DOCUMENTS = {ATTRIBUTES_JSON, *ZARR_DOCUMENTS, ".zattrs"}


def only_unchanged(copies: Sequence[Copy], owned: Owned, target: Destination) -> Owned:
    """Return which written keys stay; remove the others, which are written anew or no more."""
    if not owned.written or owned.ledger is None:
        return owned
    stale, made = set[str](), set[str]()
    for piece in _pieces(copies, owned.part):
        made.update(piece.made)
        if not owned.ledger.knows(piece):
            stale |= owned.written.intersection(piece.made)
    if owned.part is None and all(copy.knows_files for copy in copies):
        stale |= {key for key in owned.written - made if _is_chunk(key)}
    target.storage.run(request_each(map(Remove, sorted(stale))))
    return owned._replace(written=owned.written - stale)


def check_made(copies: Sequence[Copy], owned: Owned, target: Destination) -> None:
    """Check that parts have copied everything as the source has it now.

    Raises
    ------
    N5Error
        The source has changed since (``kind="changed"``).
    """
    if owned.ledger is not None and any(copy.knows_files for copy in copies):
        of = int(str((read_incomplete(target.store, target.path) or {}).get(PARTS, 1)))
        each = ((Part.owner(piece.made[0], of), piece) for piece in _pieces(copies, None))
        owned.ledger.check(each, str(target))


def _pieces(copies: Sequence[Copy], part: Part | None) -> Iterator[Piece]:
    for copy in copies:
        for task in copy.tasks(Owned(part=part)) if copy.knows_files else ():
            yield from copy.pieces(task.part)


def _is_chunk(key: str) -> bool:
    """Whether a key that an interrupted run has written is that of a chunk."""
    name = key.rpartition("/")[2]
    return not (name in _DOCUMENTS or is_unfinished(name) or name.startswith("n5zarr-"))
