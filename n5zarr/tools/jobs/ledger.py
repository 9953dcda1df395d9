"""Note what an unfinished job has made, and how the files were that it was made from.

The job of an incomplete destination describes the arrays of its source. Beside it, each run or part
keeps a ledger: for each piece that it has made, 8 bytes that depend on the name of the piece, and
on the time and size of the local files that were read for it, before they were read. A run that
goes on keeps the pieces that it finds in the ledger again, and makes all others anew; the run that
ends all parts expects each piece that the source has then.

A ledger is written now and then: what is missing in that of a killed run stays if its files are
newer than those that it was made from.
"""

from __future__ import annotations

import re
import time
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from n5zarr.errors import N5Error
from n5zarr.format.path import join
from n5zarr.storage.files import is_unfinished, stamp
from n5zarr.storage.requests import (
    List,
    Remove,
    Update,
    put_each,
    read_each,
    request_each,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from n5zarr.storage.interface import Storage

__all__ = ["LEDGER_NAME", "Ledger", "Piece", "left_beside", "remove_left", "seal"]

LEDGER_NAME = re.compile(r"n5zarr-incomplete-made-([0-9]+)\.bin", re.ASCII)
"""Names of ledgers in an incomplete destination, by the number of the part."""

_N_BYTES = 8  # of a seal
_OFTEN, _SELDOM = 0.05, 1.0  # seconds between writes, at least: of local files, and others
_SHARE = 20  # of the time of a run: what is lost if it is killed


class Piece(NamedTuple):
    """What a job makes at once.

    Parameters
    ----------
    name : str
        The same in each run with the same options.
    made : sequence of str
        Keys of the destination.
    read : sequence of str
        The local files, or missing ones, that it is made from.
    owner : str, optional
        The name by which a part owns the piece, if it is not ``name``.
    """

    name: str
    made: Sequence[str]
    read: Sequence[str]
    owner: str = ""


def seal(piece: Piece) -> bytes:
    """Return what changes when a file that a piece is made from is written."""
    name = blake2b(piece.name.encode(errors="surrogateescape"), digest_size=_N_BYTES // 2)
    digest = blake2b(digest_size=_N_BYTES // 2)
    for found in map(stamp, piece.read):
        # inodes differ between the machines of some network file systems
        digest.update(b"-" if found is None else b"%d,%d;" % found[1:3])
    return name.digest() + digest.digest()


class Ledger:
    """The pieces that a run, or the parts of a job, have made; a context manager.

    Parameters
    ----------
    storage : Storage
        The keys of the destination.
    path : str
        The destination.
    names : collection of str
        Names of the files there, of which ledgers are read.
    part : int or None, optional
        Number of the part that this run does, 0 for the whole job; None for all parts together.
    is_checked : bool, optional
        Whether an earlier run has found that all parts have made everything.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        names: Collection[str],
        part: int | None = 0,
        *,
        is_checked: bool = False,
    ) -> None:
        self.storage, self._part, self.is_checked = storage, part, is_checked
        found = {int(m[1]): name for m in map(LEDGER_NAME.fullmatch, names) if m for name in [m[0]]}
        if part is not None:
            found = {part: found[part]} if part in found else {}
        keys = [join(path, name) for name in found.values()]
        self._key = join(path, f"n5zarr-incomplete-made-{part or 0}.bin")
        self._known = {
            data[at : at + _N_BYTES]
            for data in storage.run(read_each(keys))
            for at in range(0, len(data or b""), _N_BYTES)
            if data is not None
        }
        self._names = {found[: _N_BYTES // 2] for found in self._known}
        self.files = set(keys)  # to be removed at the end
        self._made = bytearray()
        self._begin = self._written = time.monotonic()
        self._n_written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None or self._part:  # all others end now
            self.write()

    def knows(self, piece: Piece) -> bool:
        """Whether a piece was made from the files as they are; if so, the ledger keeps it.

        A piece that is not noted, as the run was killed before, is judged by the times of files.
        """
        found = seal(piece)
        if self._part is None:
            return found in self._known
        is_noted = found[: _N_BYTES // 2] in self._names
        is_known = found in self._known if is_noted else self._is_newer(piece)
        self._made += found if is_known else b""
        return is_known

    def _is_newer(self, piece: Piece) -> bool:
        """Whether what is there of a piece was written after the files that it was made from."""
        root = self.storage.root
        made = [] if root is None else [stamp(f"{root}/{key}") for key in piece.made]
        there = [found[1] for found in made if found is not None]
        return bool(there and piece.read) and min(there) > max(map(_changed, piece.read))

    def note(self, seals: bytes) -> None:
        """Note pieces that are made, by their seals from before."""
        self._made += seals
        now = time.monotonic()
        least = _OFTEN if self.storage.root is not None else _SELDOM
        if seals and now - self._written >= max(least, (now - self._begin) / _SHARE):
            self.write()

    def write(self) -> None:
        """Write the ledger, unless it is written."""
        if len(self._made) > self._n_written:
            self.storage.run(put_each([(self._key, bytes(self._made))]))
            self.files.add(self._key)
        self._n_written, self._written = len(self._made), time.monotonic()

    def check(self, pieces: Iterable[tuple[int, Piece]], where: str) -> None:
        """Check that parts have made all pieces from the files as they are.

        Parameters
        ----------
        pieces : iterable of (int, Piece)
            All of them, with the number of the part that makes each.
        where : str
            The destination.

        Raises
        ------
        N5Error
            The source has changed since (``kind="changed"``).
        """
        stale = dict[int, str]()
        for part, piece in pieces:
            if piece.read and not self.knows(piece):
                stale.setdefault(part, piece.read[0])
        if stale:
            numbers = ", ".join(map(str, sorted(stale)))
            message = "expected the source as it was when parts have read it, got a changed one"
            raise N5Error(
                f"{message}: {stale[min(stale)]}; run part (--part) {numbers} again, then finish",
                kind="changed",
                where=where,
            )


def _changed(file: str) -> int:
    """Return when a file was written; when its folder lost or got one, if it is missing."""
    found = stamp(file)
    return _changed(str(Path(file).parent)) if found is None else found[1]


def left_beside(storage: Storage, documents: Iterable[str]) -> dict[str, list[str]]:
    """Return files that killed processes, or running ones, have left beside documents."""
    found: dict[str, list[str]] = {}
    for key in documents:
        folder, _, name = key.rpartition("/")
        (entries,) = storage.run(request_each([List(folder, unfinished=True)]))
        names = [e.name for e in entries or () if is_unfinished(e.name)]
        found[key] = [join(folder, each) for each in names if each.startswith(f"{name}.")]
    return {key: left for key, left in found.items() if left}


def remove_left(storage: Storage, left: Mapping[str, Sequence[str]]) -> None:
    """Remove files that :func:`left_beside` has found; a running writer has ended meanwhile."""
    for key, names in left.items():
        # writers hold the lock of the document while such a file is theirs
        storage.run(request_each([Update(key, lambda old: old)]))
        storage.run(request_each(map(Remove, names)))
