"""Divide a job into parts that several processes or machines do without a scheduler.

Each part writes the units that it owns, by a hash of their keys, so that the division depends on
nothing else: not on the order of a listing, nor on what was written before. All parts share the
mark of an incomplete destination; one that has ended leaves a file of its own beside it. When all
have ended, a last run writes the documents and removes these files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from uuid import uuid4

from zarr.abc.store import Store

from n5zarr.container.options import require
from n5zarr.errors import N5Error, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.storage.interface import Storage
from n5zarr.storage.requests import Remove, put_each, request_each
from n5zarr.tools.jobs.incomplete import (
    INCOMPLETE_JSON,
    PARTS,
    RUN,
    Ledger,
    Piece,
    begin,
    confirm,
    keys_below,
    read_incomplete,
    write_incomplete,
)

PART_NAME = re.compile(r"n5zarr-incomplete-part-([0-9]+)\.txt", re.ASCII)
"""Names of the files in an incomplete destination that parts leave when they end."""

WORKERS = 8
"""Workers of a part, at most: the tasks of a part must not depend on its machine."""

_ENDING = "the last of the parts"  # the name of the run that writes the documents
_MOST_NAMED = 8


class Part(NamedTuple):
    """A part of a job.

    Parameters
    ----------
    number : int
        From 1.
    of : int
        Number of parts.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, given: str | tuple[int, int]) -> Part:
        """Parse ``"3/100"``.

        Raises
        ------
        N5UnrepresentableError
            The text is no part, or its number is not from 1 to that of parts (``kind="option"``).
        """
        pattern = re.compile(r"\s*([0-9]+)\s*(?:/|\s+of\s+)\s*([0-9]+)\s*", re.ASCII)
        text = given if isinstance(given, str) else "/".join(map(str, given))
        found = pattern.fullmatch(text)
        require(found is not None, f"part: expected one such as '3/100', got {given!r}")
        part = cls(*map(int, found.groups())) if found else cls(0, 0)
        require(
            1 <= part.number <= part.of,
            f"part: expected a number from 1 to {max(1, part.of)}, got {part.number} in "
            f"{given!r}; the first part is 1/{max(1, part.of)}",
        )
        return part

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def owner(cls, key: str, of: int) -> int:
        """Return the number of the part that does what has a name."""
        digest = hashlib.blake2b(key.encode(errors="surrogateescape"), digest_size=8).digest()
        return int.from_bytes(digest) % of + 1

    def owns(self, key: str) -> bool:
        """Whether this part, and no other one, does what has a name."""
        return self.owner(key, self.of) == self.number


class Owned(NamedTuple):
    """The keys that a run need not write: written before, or left to other parts.

    Parameters
    ----------
    written : set of str
        Keys that an interrupted run has written.
    part : Part or None, optional
        The part of this run; None for the whole job.
    ledger : Ledger or None, optional
        Notes what is made.
    """

    written: set[str] | frozenset[str] = frozenset()
    part: Part | None = None
    ledger: Ledger | None = None

    @property
    def is_all(self) -> bool:
        """Whether the run writes everything."""
        return self.part is None and not self.written

    def owns(self, key: str) -> bool:
        """Whether no other part writes a key."""
        return self.part is None or self.part.owns(key)

    def needs(self, key: str) -> bool:
        """Whether this run writes a key."""
        return key not in self.written and self.owns(key)

    def unchanged(
        self,
        pieces: Iterable[Piece],
        storage: Storage,
        is_stale: Callable[[str], bool] | None = None,
    ) -> Owned:
        """Return which written keys stay; remove the others, which are made anew or no more.

        Parameters
        ----------
        pieces : iterable of Piece
            All that this run makes, if nothing is written.
        storage : Storage
            The keys of the destination.
        is_stale : callable, optional
            Whether a key that belongs to no piece goes, too.
        """
        if not self.written or self.ledger is None:
            return self
        stale, left = set[str](), set(self.written)
        for piece in pieces:
            left.difference_update(piece.made)
            if not self.ledger.knows(piece):
                stale |= self.written.intersection(piece.made)
        if is_stale is not None:
            stale.update(filter(is_stale, left))
        storage.run(request_each(map(Remove, sorted(stale))))
        return self._replace(written=self.written - stale)

    def check_made(
        self,
        pieces: Iterable[Piece],
        store: Store,
        path: str,
        is_stale: Callable[[str], bool] | None = None,
    ) -> None:
        """Check that parts have made all pieces from the source as it is now.

        Parameters
        ----------
        pieces : iterable of Piece
            Those of all parts.
        store, path : Store, str
            The destination.
        is_stale : callable, optional
            Whether a written key that belongs to no piece, as the source lacks it now, goes.

        Raises
        ------
        N5Error
            The source has changed since (``kind="changed"``).
        """
        if self.ledger is None or self.ledger.is_checked:
            return
        mark = read_incomplete(store, path) or {}
        of, left = int(str(mark.get(PARTS, 1))), set(self.written)

        def owned(piece: Piece) -> tuple[int, Piece]:
            left.difference_update(piece.made)
            return Part.owner(piece.owner or piece.name, of), piece

        try:
            self.ledger.check(map(owned, pieces), join(str(store).removeprefix("file://"), path))
        except N5Error:
            write_incomplete(store, path, {**mark, RUN: _of_parts(of)})  # which may go on
            raise
        if is_stale is not None:
            self.ledger.storage.run(request_each(map(Remove, sorted(filter(is_stale, left)))))


class Division(NamedTuple):
    """Which part of a job a run does.

    Parameters
    ----------
    part : Part or None
        The part; None for the whole job, or what is left when all parts have ended.
    ends : bool
        Whether all parts have ended, and the run writes the documents.
    """

    part: Part | None = None
    ends: bool = False

    @classmethod
    def of(
        cls, part: str | tuple[int, int] | None, *, finish: bool, overwrite: bool = False
    ) -> Division:
        """Check the options of a job.

        Raises
        ------
        N5UnrepresentableError
            ``part`` is given with ``finish``, or either with ``overwrite`` (``kind="option"``).
        """
        found = cls(None if part is None else Part.parse(part), finish)
        require(
            part is None or not finish,
            "expected part (--part) or finish (--finish), got both; finish when all parts have "
            "ended",
        )
        require(
            found.is_whole or not overwrite,
            "overwrite (--overwrite): expected none with part or finish, as each part would remove "
            "what others have written; remove the destination first",
        )
        return found

    @property
    def is_whole(self) -> bool:
        """Whether the run does all of the job."""
        return self.part is None and not self.ends

    @property
    def resuming(self) -> str:
        """How a run that failed goes on; empty for the whole job."""
        if self.part is not None:
            return f"part={str(self.part)!r} (--part {self.part}) again continues this part"
        return "finish=True (--finish) again ends the run" if self.ends else ""

    @contextmanager
    def running(
        self,
        storage: Storage,
        paths: Sequence[str],
        job: Mapping[str, JSON],
        *,
        resume: bool,
        commit: Callable[[], None],
    ) -> Iterator[tuple[str, list[set[str]], Ledger]]:
        """Mark destinations as incomplete until they are written, or this part of them is.

        Parameters
        ----------
        storage : Storage
            The keys of the destinations.
        paths : sequence of str
            The destinations; the first one holds the files of parts that have ended.
        job : mapping
            The task and its options: only the same job goes on.
        resume : bool
            Whether to continue an interrupted run of the whole job; parts always do.
        commit : callable
            Writes the documents, when all parts have ended.

        Yields
        ------
        tuple
            The name of the run, for each destination the keys that are written already, and the
            ledger.

        Raises
        ------
        N5UnrepresentableError
            Parts have not ended, or all have; the destination is that of another job, or another
            run has begun to write there (``kind="option"``).
        """
        run, there = self._begin(storage, paths, job, resume=resume)
        number = 0 if self.part is None else self.part.number
        whose = None if self.ends else number
        is_checked = self.ends and not _names_of(there[0])  # which are removed after the check
        with Ledger(storage, paths[0], there[0], whose, is_checked=is_checked) as ledger:
            yield run, there, ledger
        for path, keys in zip(paths, there, strict=True):
            # other parts may be writing the files that this one takes for unfinished
            storage.run(confirm(str(storage), path, run, () if self.part is not None else keys))
        if self.part is not None:
            key = join(paths[0], f"n5zarr-incomplete-part-{self.part.number}.txt")
            storage.run(put_each([(key, f"{self.part}\n".encode())]))
            return
        commit()
        names = keys_below(storage.store, paths[0]) if self.ends else set()
        of_parts = [join(paths[0], name) for name in _names_of(names).values()]
        for left in (of_parts, sorted(ledger.files)):  # ledgers are complete while there are parts
            storage.run(request_each(map(Remove, left)))
        for path in reversed(paths):  # the mark of the first destination goes last
            storage.run(request_each([Remove(join(path, INCOMPLETE_JSON))]))

    def _begin(
        self, storage: Storage, paths: Sequence[str], job: Mapping[str, JSON], *, resume: bool
    ) -> tuple[str, list[set[str]]]:
        """Return the name of the run, and the keys that are written; see :meth:`running`."""
        run, store = uuid4().hex, storage.store.with_read_only(read_only=False)
        if not self.is_whole:
            before = read_incomplete(store, paths[0]) or {}
            where = join(str(store).removeprefix("file://"), paths[0])
            run = self._name_of_run(before, where)
            of = before.get(PARTS) if self.part is None else self.part.of
            job, resume = {**job, PARTS: of}, True
            if self.ends and before.get(RUN) != run:
                ended = [Part(n, int(str(of))) for n in _names_of(keys_below(store, paths[0]))]
                check_ended(where, ended)
        return run, [begin(store, path, job, resume=resume, run=run) for path in paths]

    def _name_of_run(self, before: Mapping[str, JSON], where: str) -> str:
        if self.part is None:
            require(
                PARTS in before,
                f"{where}: expected parts to finish, got none; part='1/8' (--part 1/8) writes the "
                "first of eight",
            )
            return _ENDING
        require(
            before.get(RUN) != _ENDING,
            f"{where}: expected parts that are still written, got all of them; finish=True "
            "(--finish) ends the run",
        )
        return _of_parts(self.part.of)


WHOLE = Division()
"""The whole job."""


def _of_parts(n: int) -> str:
    """Return the name of the run of all parts."""
    return f"parts of {n}"


def _names_of(names: Collection[str]) -> dict[int, str]:
    """Return the files of parts that have ended, by number, among names of files."""
    found = ((name, PART_NAME.fullmatch(name)) for name in names)
    return {int(match[1]): name for name, match in found if match}


def check_ended(where: str, ended: Collection[Part]) -> None:
    """Raise unless there are parts, of one job, and all of them have ended.

    Raises
    ------
    N5UnrepresentableError
        No part has ended, some have not, or they are of several jobs (``kind="option"``).
    """
    sizes = sorted({part.of for part in ended})
    if len(sizes) != 1:
        found = " and ".join(f"parts of {n}" for n in sizes)
        way = (
            "remove the files of the others" if found else "part='1/8' (--part 1/8) does the first"
        )
        raise option_error(f"{where}: expected all parts of one job, got {found or 'none'}; {way}")
    (of,) = sizes
    missing = sorted({*range(1, of + 1)} - {part.number for part in ended})
    if missing:
        named = ", ".join(map(str, missing[:_MOST_NAMED]))
        more = f", and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        raise option_error(
            f"{where}: expected {of} parts that have ended, got {of - len(missing)}; run part "
            f"(--part) {named}{more} of {of} again, then finish"
        )
