"""Mark a destination as incomplete while it is written, so that an interrupted run can continue.

A run writes `n5zarr-incomplete.json` into the destination first, then blocks, then the documents
that make arrays of them, and removes the file at last. So nobody opens an array that lacks blocks,
and the next run finds what the interrupted one has written: each block is written at once, by a
rename or one request, so one that is there is whole. What the interrupted run was writing at
the end, under a name that nobody reads, is removed when the next run has written all blocks.

The file describes the arrays of the source. Beside it, each run or part keeps a ledger: for each
piece that it has made, 8 bytes that depend on the name of the piece, and on the time and size of
the local files that were read for it, before they were read. A run that goes on keeps the pieces
that it finds in the ledger again, and makes all others anew; the run that ends all parts expects
each piece that the source has then. A ledger is written now and then: what is missing in that of a
killed run stays if its files are newer than those that it was made from.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import batched, chain
from pathlib import Path
from typing import NamedTuple, Self

from zarr.abc.store import Store
from zarr.buffer import cpu

from n5zarr._zarr import sync
from n5zarr.arrays.stored_chunks import each_key
from n5zarr.container.foreign import INCOMPLETE_JSON
from n5zarr.container.options import require
from n5zarr.errors import N5Error, option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.rooms import Door
from n5zarr.storage.files import is_unfinished, stamp
from n5zarr.storage.interface import Storage
from n5zarr.storage.requests import (
    List,
    Remove,
    RemoveTree,
    Steps,
    Update,
    put_each,
    read_each,
    read_key,
    request_each,
)

__all__ = [
    "INCOMPLETE_JSON",
    "LEDGER_NAME",
    "MAX_MEMORY",
    "PARTS",
    "RUN",
    "SOURCE",
    "Ledger",
    "Piece",
    "begin",
    "confirm",
    "keys_below",
    "left_beside",
    "read_incomplete",
    "remove_left",
    "seal",
    "write_incomplete",
]

RUN = "run"
"""The member that names the run which holds the destination; it does not describe the job."""

PARTS = "parts"
"""The member that says into how many parts the job is divided."""

SOURCE = "source"
"""The member that describes the arrays of the source; their blocks depend on it."""

MAX_MEMORY = "max_memory"
"""The member of parts with the bytes on which their division depends."""

LEDGER_NAME = re.compile(r"n5zarr-incomplete-made-([0-9]+)\.bin", re.ASCII)
"""Names of ledgers in an incomplete destination, by the number of the part."""

_N_BYTES = 8  # of a seal
_TOGETHER = 2**12  # files that are asked for their stamps
_OFTEN, _SELDOM = 0.05, 1.0  # seconds between writes, at least: of local files, and others
_SHARE = 20  # of the time of a run: what is lost if it is killed


# ---------------------------------------------------------------------- the mark


_STAMPS: Door[Callable[[Sequence[str]], Sequence[tuple[int, int] | None] | None]] = Door(
    "speed", "stamps"
)


def read_incomplete(store: Store, path: str) -> dict[str, JSON] | None:
    """Return the job of an interrupted run, from its file; None if there is no file.

    Parameters
    ----------
    store : Store
        Where the destination is, with its keys as they are stored.
    path : str
        The destination in it.
    """
    data = sync(store.get(join(path, INCOMPLETE_JSON), cpu.buffer_prototype))
    return None if data is None else _parse(data.to_bytes())


def write_incomplete(store: Store, path: str, job: Mapping[str, JSON]) -> None:
    """Write the file of a run, see :func:`read_incomplete`."""
    data = cpu.Buffer.from_bytes(json.dumps(job, indent=2).encode())
    sync(store.set(join(path, INCOMPLETE_JSON), data))


def _parse(data: bytes) -> dict[str, JSON]:
    """Parse the file of a run; that of one that was killed while it wrote the file is empty."""
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def begin(
    store: Store, path: str, job: Mapping[str, JSON], *, resume: bool, run: str | None = None
) -> set[str]:
    """Mark a destination as incomplete, or return the keys that an interrupted run has written.

    Parameters
    ----------
    store : Store
        Where the destination is, with its keys as they are stored.
    path : str
        The destination in it.
    job : mapping
        The task and its options: only the same job resumes an interrupted run.
    resume : bool
        Whether to continue an interrupted run.
    run : str, optional
        A name of this run, which :func:`confirm` asks for.

    Returns
    -------
    set of str
        The keys below the destination, relative to it, that an interrupted run has written.

    Raises
    ------
    N5UnrepresentableError
        An interrupted run is not resumed, or did another job (``kind="option"``).
    N5Error
        The source has changed since the run began (``kind="changed"``).
    """
    before = read_incomplete(store, path)
    if before is not None:
        before.pop(RUN, None)
    where = join(str(store).removeprefix("file://"), path)
    require(
        not before or PARTS not in before or PARTS in job,
        f"{where}: expected no run in parts, got one of {(before or {}).get(PARTS)}; part=... "
        "(--part) does one of them, finish=True (--finish) ends the run, overwrite=True "
        "(--overwrite) starts again",
    )
    require(
        before is None or resume,
        f"{where}: holds the incomplete result of an interrupted run, or of one that is still at "
        "work; if none is, resume=True (--resume) continues it, overwrite=True (--overwrite) "
        "starts again",
    )
    job = json.loads(json.dumps(job))
    if before:
        _check_same(where, before, job)
    if before is None or run is not None:
        named = job if run is None else {**job, RUN: run}
        write_incomplete(store, path, named)
    return keys_below(store, path) - {INCOMPLETE_JSON}


def _check_same(where: str, before: Mapping[str, JSON], job: Mapping[str, JSON]) -> None:
    """Check that a job is that of an interrupted run; see :func:`begin`."""
    if before.get(SOURCE) != job.get(SOURCE):
        then, now = (
            {**s} if isinstance(s := each.get(SOURCE), dict) else {} for each in (before, job)
        )
        name = min(name for name in {*then, *now} if then.get(name) != now.get(name))
        raise N5Error(
            f"source {name}: expected the array that it was when the run began, {then.get(name)}, "
            f"got {now.get(name)}; {_way_to_start_again(job)}",
            kind="changed",
            where=where,
        )
    differing = sorted(k for k in {*before, *job} if before.get(k) != job.get(k))
    if differing:
        raise option_error(
            f"{where}: expected the options of the run that was interrupted, got others for "
            f"{', '.join(differing)}: {[before.get(k) for k in differing]} then, "
            f"{[job.get(k) for k in differing]} now; {_way_out(before, job, differing)}"
        )


def _way_out(before: Mapping[str, JSON], job: Mapping[str, JSON], differing: list[str]) -> str:
    """Say what a run with other options than an interrupted one can do."""
    if PARTS not in job:
        return _way_to_start_again(job)
    known = before.get(MAX_MEMORY)
    if differing == [MAX_MEMORY] and isinstance(known, int):
        return f"all parts need the same: max_memory={known} (--max-memory {known / 2**20:g})"
    return f"give the options of the other parts, or {_way_to_start_again(job)}"


def _way_to_start_again(job: Mapping[str, JSON]) -> str:
    if PARTS in job:
        return "remove the destination to start again"
    return "overwrite=True (--overwrite) starts again"


def confirm(name: str, path: str, run: str, keys: Iterable[str] = ()) -> Steps[None]:
    """Check that no other run has begun in the same destination: it may have removed blocks.

    Then remove the files that a killed run was writing, and nodes that it was removing.

    Parameters
    ----------
    name : str
        Of the storage, for messages.
    path : str
        The destination.
    run : str
        The name of this run.
    keys : iterable of str, optional
        Those that :func:`begin` has returned: what others write now has other names.

    Raises
    ------
    N5UnrepresentableError
        Another run has begun (``kind="option"``).
    """
    data = yield from read_key(join(path, INCOMPLETE_JSON))
    if data is None or _parse(data).get(RUN) != run:
        message = "expected one run at a time, but another one has begun to write there"
        raise option_error(message, where=join(name, path))
    for key in keys:
        names = key.split("/")
        n_names = next((n for n, name in enumerate(names, 1) if is_unfinished(name)), None)
        if n_names is not None:
            left = join(path, *names[:n_names])
            yield [Remove(left), RemoveTree(left)]


def keys_below(store: Store, path: str) -> set[str]:
    """List all keys below a path, relative to it."""
    return {key for keys in each_key(store, path) for key in keys}


# ---------------------------------------------------------------------- the ledger


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
    n = max(1, min(_TOGETHER, len(piece.read)))  # `batched` makes memory for as many
    for found in chain.from_iterable(map(_stamps, batched(piece.read, n))):
        digest.update(b"-" if found is None else b"%d,%d;" % found)
    return name.digest() + digest.digest()


def _stamps(paths: Sequence[str]) -> Iterable[tuple[int, int] | None]:
    """Return time of change, in nanoseconds, and size of local files; None of a missing one.

    Inodes are left out: they differ on the machines of some network file systems.
    """
    stamps = _STAMPS.found()
    found = None if stamps is None else stamps(paths)
    return found or [None if each is None else (each[1], each[2]) for each in map(stamp, paths)]


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
